"""Amounts in people's units, as sentences need them."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.flavor_names import flavor_label
from scheduler.core.resources import CPU_FLAVOR, WHOLE_MILLI
from scheduler.services.stored import stored_time
from telemetry import units

KILO = 1000.0

Numbers: TypeAlias = Mapping[str, Any]
Sentence: TypeAlias = Callable[[Numbers], str]


def amount(flavor: str, milli: int) -> str:
    """Return `4 cores` or `2.5 × a100-80gb` from thousandths of a core or device."""
    if flavor == CPU_FLAVOR:
        return cores_text(milli)
    return f"{units.format_devices_milli(milli)} × {flavor_label(flavor)}"


def flavors_text(flavors: Any) -> str:
    """Return the labels of flavors, in one line."""
    return joined(flavor_label(str(flavor)) for flavor in flavors)


def request(asked: Numbers) -> str:
    """Return what a job asks for, such as `2 × (4 cores, 16 GiB, 8 devices)`."""
    parts = [
        cores_text(int(asked.get("cpu_milli", 0))),
        units.format_memory(int(asked.get("memory_mib", 0))),
    ]
    devices, part = int(asked.get("devices", 0)), int(asked.get("gpu_milli", WHOLE_MILLI))
    if devices and part < WHOLE_MILLI:
        parts.append(_("%(part)s of a device") % {"part": units.format_devices_milli(part)})
    elif devices:
        parts.append(devices_text(devices))
    replicas, one = int(asked.get("replicas", 1)), joined(parts)
    return one if replicas == 1 else f"{replicas} × ({one})"


def cores_text(milli: int) -> str:
    """Return `4 cores` from thousandths of a core."""
    text = ngettext("%(count)s core", "%(count)s cores", 1 if milli == WHOLE_MILLI else 2)
    return text % {"count": units.format_cpu(milli)}


def devices_text(count: int) -> str:
    """Return `8 devices`."""
    return ngettext("%(count)s device", "%(count)s devices", count) % {"count": count}


def devices_milli_text(milli: int) -> str:
    """Return `2.5 devices` from thousandths of a device."""
    text = ngettext("%(count)s device", "%(count)s devices", 1 if milli == WHOLE_MILLI else 2)
    return text % {"count": units.format_devices_milli(milli)}


def nodes_text(count: int) -> str:
    """Return `3 nodes`."""
    return ngettext("%(count)s node", "%(count)s nodes", count) % {"count": count}


def joined(values: Any) -> str:
    """Return values in one line, as the language separates them."""
    return _(", ").join(str(value) for value in values)


def watts_text(amount: Any) -> str:
    """Return `2.4 kW` or `700 W`."""
    watts = float(amount or 0)
    return f"{watts / 1000:.1f} kW" if watts >= KILO else f"{watts:.0f} W"


def percent_text(fraction: Any) -> str:
    """Return `31` or `0.5`, the percent of a fraction in 0..1 without their sign."""
    return f"{100 * float(fraction or 0):.3g}"


def moment_text(at_s: float) -> str:
    """Return `2026-03-01 14:20 UTC`, in the site's zone: a sentence can't follow a browser's.

    "" where the time is absurd.
    """
    at = stored_time(at_s)
    return localtime(at).strftime("%Y-%m-%d %H:%M %Z") if at else ""
