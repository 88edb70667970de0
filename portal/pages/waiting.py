"""Why a job waits, as a page shows it: sentence, numbers, what would help, when it may start."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from portal import reasons
from portal.flavor_names import flavor_label
from portal.pages.amounts import UNKNOWN, cpu_text, devices_text, duration_text, memory_text
from portal.pages.forms.request import duration_as_typed, memory_as_typed
from scheduler.choices import PlacementWish, TopologyLevel
from scheduler.core.resources import CPU_FLAVOR
from telemetry import units

Pending = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Help:
    """One change that would help.

    Attributes:
        text: what to do.
        changes: field of the request form -> what to type; empty where a person must be asked.
    """

    text: str
    changes: dict[str, Any]

    @property
    def changes_json(self) -> str:
        """Return the changes for the script of the form."""
        return json.dumps(self.changes)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A waiting reason.

    Attributes:
        code: as the engine gave it.
        sentence: the same in words.
        evidence: (what, how much) behind it.
        helps: what would help, best first.
        p50, p90: expected start; None = no estimate.
        position: place in the queue, 1 = first; 0 = not in it.
        parts: (name, points) of its priority.
    """

    code: str
    sentence: str
    evidence: list[tuple[str, str]]
    helps: list[Help]
    p50: datetime | None
    p90: datetime | None
    position: int
    parts: list[tuple[str, float]]


def waiting(pending: Pending | None) -> Waiting | None:
    """Return what a page shows of a stored waiting reason; None where there is none."""
    if not pending or not pending.get("code"):
        return None
    return Waiting(
        code=str(pending["code"]),
        sentence=reasons.sentence(pending),
        evidence=evidence_rows(pending.get("evidence") or {}),
        helps=[
            Help(text=reasons.remedy_sentence(r), changes=remedy_changes(r))
            for r in pending.get("remedies") or ()
        ],
        p50=_time(pending.get("expected_start_p50")),
        p90=_time(pending.get("expected_start_p90")),
        position=int(pending.get("position") or 0),
        parts=priority_rows(pending.get("priority_parts") or {}),
    )


def priority_rows(parts: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the parts of a job's place in the order, named, largest first."""
    return sorted(
        ((_name(name), float(points)) for name, points in parts.items()),
        key=lambda part: (-part[1], part[0]),
    )


def remedy_changes(remedy: Mapping[str, Any]) -> dict[str, Any]:
    """Return field -> text to type for a remedy that the form itself can carry out."""
    change = _CHANGES.get(str(remedy.get("code", "")))
    return change(remedy.get("params") or {}) if change else {}


def evidence_rows(evidence: Mapping[str, Any], above: str = "") -> list[tuple[str, str]]:
    """Return the numbers behind a reason as (what, how much), nested ones flattened.

    A database keeps no order of keys, so they come in the order of their names below. What was not
    asked for is left out.
    """
    rows: list[tuple[str, str]] = []
    amounts = _CORES if evidence.get("flavor") == CPU_FLAVOR else _AMOUNTS
    for key in sorted(evidence, key=lambda key: (_PLACES.get(key, len(_PLACES)), key)):
        value = evidence[key]
        if key in _UNSAID or (key in _OPTIONAL and not value):
            continue
        name = _name(f"{above}.{key}", key)
        if key == "asked" and "cpu_milli" in value:
            rows.append((name, reasons.request(value)))
        elif isinstance(value, Mapping):
            rows += [(f"{name} · {inner}", text) for inner, text in evidence_rows(value, key)]
        else:
            rows.append((name, _shown(key, value, amounts)))
    return rows


def _shown(key: str, value: Any, amounts: "Amounts") -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, (list, tuple)):
        return ", ".join(flavor_label(str(one)) for one in value) or UNKNOWN
    if key == "flavor":
        return flavor_label(str(value))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _VALUES[value]() if value in _VALUES else str(value)
    for ending, text in amounts:
        if key.endswith(ending):
            return text(value)
    return f"{value:g}"


def _name(*keys: str) -> str:
    """Return the words of the first key that has some, else the last key itself."""
    found = next((_NAMES[key] for key in keys if key in _NAMES), None)
    return found() if found else flavor_label(keys[-1]).replace("_", " ")


def _time(text: Any) -> datetime | None:
    return parse_datetime(text) if isinstance(text, str) else None


_NAMES = {
    "asked": lambda: _("asks for"),
    "flavor": lambda: _("flavor"),
    "flavors": lambda: _("flavors"),
    "nominal_milli": lambda: _("owned"),
    "used_milli": lambda: _("used"),
    "held_by_others_milli": lambda: _("held by others"),
    "planned_milli": lambda: _("kept for jobs ahead"),
    "available_milli": lambda: _("available"),
    "asked_milli": lambda: _("asked"),
    "missing_milli": lambda: _("missing"),
    "above_milli": lambda: _("above the quota"),
    "free": lambda: _("free"),
    "most_milli": lambda: _("most ever"),
    "cpu_milli": lambda: _("CPU"),
    "memory_mib": lambda: _("memory"),
    "devices": lambda: _("devices"),
    "free.devices": lambda: _("whole devices"),
    "free.gpu_milli": lambda: _("devices in sum"),
    "gpu_milli": lambda: _("part of each device"),
    "gpu_memory_mib": lambda: _("device memory"),
    "replicas": lambda: _("replicas"),
    "largest_cpu_milli": lambda: _("most CPU on one node"),
    "largest_memory_mib": lambda: _("most memory on one node"),
    "largest_block": lambda: _("most devices on one node"),
    "largest_gpu_memory_mib": lambda: _("most memory on one device"),
    "largest_share_milli": lambda: _("largest free share"),
    "largest_node": lambda: _("largest on one node"),
    "replicas_that_fit": lambda: _("replicas that fit"),
    "ahead": lambda: _("jobs ahead"),
    "unavailable_nodes": lambda: _("nodes not available"),
    "unhealthy_devices": lambda: _("devices not healthy"),
    "time_limit_s": lambda: _("time limit"),
    "priority_class": lambda: _("priority class"),
    "fair_share": lambda: _("fair share"),
    "age": lambda: _("age"),
    "size": lambda: _("size"),
    "qos": lambda: _("quality of service"),
    "present": lambda: _("present"),
    "mistake": lambda: _("field"),
    "min_throughput": lambda: _("least throughput"),
    "replicas_when_empty": lambda: _("replicas that fit when empty"),
    "unavailable_nodes.cordoned": lambda: _("cordoned"),
    "unavailable_nodes.draining": lambda: _("draining"),
    "unavailable_nodes.unknown": lambda: _("unreachable"),
    "expected_start_basis": lambda: _("start expected from"),
    "topology": lambda: _("all replicas in"),
    "placement_wish": lambda: _("its place"),
    "interference": lambda: _("interference class"),
    "anti_affinity": lambda: _("never on a node with"),
    "replicas_anywhere": lambda: _("replicas that fit anywhere"),
    "throttled_devices": lambda: _("devices throttled for heat"),
}
"""Keys of evidence and priority parts -> words, in the order in which evidence is shown."""

_PLACES = {key: place for place, key in enumerate(_NAMES)}

_OPTIONAL = frozenset({"min_throughput", "flavors", "gpu_memory_mib", "unhealthy_devices"})
"""Evidence that says nothing where it is none."""

_UNSAID = frozenset({"hold", "named", "not_before_s", "may_borrow"})
"""Evidence that the sentence says already."""

_VALUES: dict[Any, Callable[[], str]] = {
    "plan": lambda: _("the plan of the queue"),
    "rate": lambda: _("the pace of those ahead"),
    **{level.value: partial(str, level.label) for level in (*TopologyLevel, *PlacementWish)},
}
"""Values of `expected_start_basis`, `topology` and `placement_wish` -> words."""

Amounts: TypeAlias = tuple[tuple[str, Callable[[float], str]], ...]

_AMOUNTS: Amounts = (
    ("_mib", memory_text),
    ("cpu_milli", cpu_text),
    ("_milli", devices_text),
    ("_s", duration_text),
)
"""End of a key -> how its amount reads; the first that fits."""

_CORES: Amounts = (("_milli", cpu_text),)
"""The same for amounts of the CPU flavor."""

_CHANGES: dict[str, Callable[[Pending], dict[str, Any]]] = {
    "other_flavor": lambda p: {"flavors": [p["flavor"]]},
    "fewer_devices": lambda p: {"devices": str(p["devices"])},
    "fewer_replicas": lambda p: {"replicas": str(p["replicas"]), "replicas_min": ""},
    "less_cpu": lambda p: {"cpu_milli": units.format_cpu(int(p["cpu_milli"]))},
    "smaller_share": lambda p: {"gpu_milli": units.format_devices_milli(int(p["gpu_milli"]))},
    "less_gpu_memory": lambda p: {"gpu_memory_mib": memory_as_typed(int(p["gpu_memory_mib"]))},
    "less_memory": lambda p: {"memory_mib": memory_as_typed(int(p["memory_mib"]))},
    "prefer_topology": lambda p: {"required_topology": "", "preferred_topology": p["topology"]},
    "lower_min_throughput": lambda p: {
        "min_throughput": f"{p['min_throughput']:g}" if p["min_throughput"] else ""
    },
    "drop_anti_affinity": lambda _p: {"anti_affinity": ""},
    "share_nodes": lambda _p: {"placement_wish": PlacementWish.SPREAD.value},
    "shorter_time_limit": lambda p: {"time_limit_s": duration_as_typed(float(p["time_limit_s"]))},
}
"""Code of a remedy -> field of the form and what to type."""
