"""What would help a waiting job, in words."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.flavor_names import flavor_label
from portal.reasons.amounts import (
    Numbers,
    Sentence,
    amount,
    cores_text,
    devices_text,
    joined,
    moment_text,
    percent_text,
)
from scheduler.choices import TopologyLevel
from telemetry import units


def _later(moment: str) -> str:
    if not moment:
        return _("Leave it as it is: planned for a distant future")
    return _("Leave it as it is: planned to start by %(time)s") % {"time": moment}


def _ask_for_quota(params: Numbers) -> str:
    missing = params.get("missing_milli") or {}
    return _("Ask for %(missing)s more quota") % {
        "missing": joined(amount(name, int(milli)) for name, milli in missing.items())
    }


REMEDIES: dict[str, Sentence] = {
    "other_flavor": lambda p: (
        _("Allow %(flavor)s") % {"flavor": flavor_label(str(p.get("flavor", "")))}
    ),
    "fewer_devices": lambda p: (
        _("Ask for %(count)s per replica") % {"count": devices_text(int(p.get("devices", 0)))}
        if p.get("devices")
        else _("Ask for no device")
    ),
    "fewer_replicas": lambda p: (
        ngettext(
            "Ask for %(count)s replica", "Ask for %(count)s replicas", int(p.get("replicas", 1))
        )
        % {"count": int(p.get("replicas", 1))}
    ),
    "less_cpu": lambda p: (
        _("Ask for %(count)s per replica") % {"count": cores_text(int(p.get("cpu_milli", 0)))}
    ),
    "less_memory": lambda p: (
        _("Ask for %(amount)s per replica")
        % {"amount": units.format_memory(int(p.get("memory_mib", 0)))}
    ),
    "smaller_share": lambda p: (
        _("Ask for %(part)s of a device")
        % {"part": units.format_devices_milli(int(p.get("gpu_milli", 0)))}
    ),
    "less_gpu_memory": lambda p: (
        _("Ask for %(amount)s of device memory")
        % {"amount": units.format_memory(int(p.get("gpu_memory_mib", 0)))}
    ),
    "prefer_topology": lambda p: (
        _("Prefer %(level)s instead of requiring it")
        % {"level": TopologyLevel(p.get("topology", TopologyLevel.NODE)).label}
    ),
    "lower_min_throughput": lambda p: (
        _("Ask for at least %(percent)s %% of full speed")
        % {"percent": percent_text(p["min_throughput"])}
        if p.get("min_throughput")
        else _("Ask for no least throughput")
    ),
    "drop_anti_affinity": lambda _p: _("Let it share nodes with the others of its group"),
    "share_nodes": lambda _p: _("Spread the replicas, but let some share a node"),
    "preemptible": lambda _p: _("Choose a priority class whose jobs may be evicted"),
    "later": lambda p: _later(moment_text(float(p.get("start_s", 0)))),
    "shorter_time_limit": lambda p: (
        _("Set the time limit to %(time)s or less")
        % {"time": units.format_duration(float(p.get("time_limit_s", 0)))}
    ),
    "ask_for_quota": _ask_for_quota,
    "ask_admin_for_nodes": lambda _p: _("Ask an admin to bring the nodes back"),
    "ask_admin_for_toleration": lambda p: (
        _("Ask an admin whether it may tolerate %(taints)s")
        % {"taints": joined(p.get("taints") or ())}
    ),
}
"""Code of a remedy (scheduler/decide/remedies.py) -> what to do, without the full stop."""
