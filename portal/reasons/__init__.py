"""The catalogue of reasons: every code of the engine and the executors as one plain sentence.

The engine yields codes and numbers; this is the one place that gives them words, translated, in
people's units, for pages, API and websockets alike.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.flavor_names import flavor_label
from portal.reasons.endings import (
    ENDINGS,
    EVICTIONS,
    end_sentence,
    event_sentence,
    eviction_sentence,
    news_word,
)
from scheduler.choices import TopologyLevel
from scheduler.core.resources import CPU_FLAVOR, WHOLE_MILLI
from telemetry import units

KILO = 1000.0
__all__ = [
    "ENDINGS",
    "EVICTIONS",
    "REMEDIES",
    "WAITING",
    "amount",
    "end_sentence",
    "event_sentence",
    "eviction_sentence",
    "fields_at_fault",
    "news_word",
    "pending_view",
    "remedy_sentence",
    "request",
    "sentence",
]

Numbers: TypeAlias = Mapping[str, Any]
Sentence: TypeAlias = Callable[[Numbers], str]


def sentence(pending: Numbers) -> str:
    """Return why a job waits or can never run.

    Args:
        pending: a waiting reason as stored with a job: code and evidence.
    """
    say = WAITING.get(str(pending.get("code", "")))
    if say is None:
        return _("It waits; the reason is not known.")
    return say(pending.get("evidence") or {})


def remedy_sentence(remedy: Numbers) -> str:
    """Return what would help, and whether the job would start at once.

    Args:
        remedy: code and params, as stored with a job.
    """
    params = remedy.get("params") or {}
    say = REMEDIES.get(str(remedy.get("code", "")))
    if say is None:
        return _("Ask an admin.")
    if params.get("starts_now"):
        return _("%(change)s, and it starts now.") % {"change": say(params)}
    return _("%(change)s.") % {"change": say(params)}


def pending_view(pending: Numbers | None) -> dict[str, Any] | None:
    """Return a stored waiting reason as people get it, None where there is none.

    Returns:
        code, message, evidence, remedies ({code, message, params}), expected_start_p50,
        expected_start_p90 (ISO 8601 or None) and position (1 = first; 0 = not in the queue).
    """
    if not pending or not pending.get("code"):
        return None
    return {
        "code": pending["code"],
        "message": sentence(pending),
        "evidence": pending.get("evidence") or {},
        "remedies": [
            {"code": r["code"], "message": remedy_sentence(r), "params": r.get("params") or {}}
            for r in pending.get("remedies") or ()
        ],
        "expected_start_p50": pending.get("expected_start_p50"),
        "expected_start_p90": pending.get("expected_start_p90"),
        "position": pending.get("position", 0),
    }


_FIELD_OF_MISTAKE = {
    "unknown_tenant": "tenant",
    "fraction_of_many": "gpu_milli",
    "topology": "required_topology",
}


def fields_at_fault(pending: Numbers) -> tuple[str, ...]:
    """Return the fields of a request to change so that a job that never fits might."""
    code, evidence = str(pending.get("code", "")), pending.get("evidence") or {}
    if code == "no_matching_flavor":
        return ("flavors",) if evidence.get("asked", {}).get("flavors") else ("devices",)
    if code == "exceeds_max_quota":
        return ("cpu_milli",) if evidence.get("flavor") == CPU_FLAVOR else ("devices",)
    if code == "exceeds_power_cap":
        return ("devices",)
    if code == "misconfigured":
        mistake = str(evidence.get("mistake", ""))
        return (_FIELD_OF_MISTAKE.get(mistake, mistake),)
    if code == "never_fits":
        return _larger_than_a_node(evidence)
    return ()


def _larger_than_a_node(evidence: Numbers) -> tuple[str, ...]:
    asked, largest = evidence.get("asked", {}), evidence.get("largest_node", {})
    most = dict(largest, devices=max(largest.get("devices", {}).values(), default=0))
    names = tuple(
        name
        for name in ("cpu_milli", "memory_mib", "devices", "gpu_memory_mib")
        if asked.get(name, 0) > most.get(name, 0)
    )
    if names:
        return names
    if "topology" in evidence:
        return ("required_topology",)
    return ("replicas",) if asked.get("replicas", 1) > 1 else ("devices",)


# -- amounts ---------------------------------------------------------------------------------


def amount(flavor: str, milli: int) -> str:
    """Return `4 cores` or `2.5 × a100-80gb` from thousandths of a core or device."""
    if flavor == CPU_FLAVOR:
        return _cores(milli)
    return f"{units.format_devices_milli(milli)} × {flavor_label(flavor)}"


def _flavor_names(flavors: Any) -> str:
    return _names(flavor_label(str(flavor)) for flavor in flavors)


def request(asked: Numbers) -> str:
    """Return what a job asks for, such as `2 × (4 cores, 16 GiB, 8 devices)`."""
    parts = [
        _cores(int(asked.get("cpu_milli", 0))),
        units.format_memory(int(asked.get("memory_mib", 0))),
    ]
    devices, part = int(asked.get("devices", 0)), int(asked.get("gpu_milli", WHOLE_MILLI))
    if devices and part < WHOLE_MILLI:
        parts.append(_("%(part)s of a device") % {"part": units.format_devices_milli(part)})
    elif devices:
        parts.append(_devices(devices))
    replicas, one = int(asked.get("replicas", 1)), _names(parts)
    return one if replicas == 1 else f"{replicas} × ({one})"


def _cores(milli: int) -> str:
    text = ngettext("%(count)s core", "%(count)s cores", 1 if milli == WHOLE_MILLI else 2)
    return text % {"count": units.format_cpu(milli)}


def _devices(count: int) -> str:
    return ngettext("%(count)s device", "%(count)s devices", count) % {"count": count}


def _devices_milli(milli: int) -> str:
    text = ngettext("%(count)s device", "%(count)s devices", 1 if milli == WHOLE_MILLI else 2)
    return text % {"count": units.format_devices_milli(milli)}


def _nodes(count: int) -> str:
    return ngettext("%(count)s node", "%(count)s nodes", count) % {"count": count}


def _names(values: Any) -> str:
    return _(", ").join(str(value) for value in values)


# -- why it waits ----------------------------------------------------------------------------


def _misconfigured(evidence: Numbers) -> str:
    return _("The request contradicts itself: look at %(field)s.") % {
        "field": evidence.get("mistake", "")
    }


def _no_matching_flavor(evidence: Numbers) -> str:
    asked, present = evidence.get("asked", {}).get("flavors") or (), evidence.get("present") or ()
    if not present:
        return _("This cluster has no accelerators.")
    if not asked:
        return _(
            "No accelerator here reaches the throughput asked for; there are: %(present)s."
        ) % {"present": _flavor_names(present)}
    return _("This cluster has no %(asked)s; it has: %(present)s.") % {
        "asked": _flavor_names(asked),
        "present": _flavor_names(present),
    }


def _never_fits(evidence: Numbers) -> str:
    asked, largest = evidence.get("asked", {}), evidence.get("largest_node", {})
    memory, most = int(asked.get("gpu_memory_mib", 0)), int(largest.get("gpu_memory_mib", 0))
    if memory > most > 0:
        return _("It asks for %(asked)s of device memory; the largest device has %(most)s.") % {
            "asked": units.format_memory(memory),
            "most": units.format_memory(most),
        }
    replicas = int(asked.get("replicas", 1))
    fits = int(evidence.get("replicas_when_empty", 0))
    if replicas > 1 and fits:
        return _(
            "%(replicas)s replicas can never run together: "
            "the whole cluster, empty, holds %(fits)s of them."
        ) % {"replicas": replicas, "fits": fits}
    return _(
        "No node is large enough, even empty: each replica asks for %(asked)s; "
        "the largest amounts on one node are %(largest)s."
    ) % {"asked": request({**asked, "replicas": 1}), "largest": _largest(largest)}


def _largest(largest: Numbers) -> str:
    parts = [
        _cores(int(largest.get("cpu_milli", 0))),
        units.format_memory(int(largest.get("memory_mib", 0))),
        *(
            f"{count} × {flavor_label(name)}"
            for name, count in sorted(largest.get("devices", {}).items())
        ),
    ]
    return _names(parts)


def _exceeds_max_quota(evidence: Numbers) -> str:
    flavor = str(evidence.get("flavor", CPU_FLAVOR))
    if evidence.get("named") is False:
        return _("The tenant has no quota of %(flavor)s and may not borrow any.") % {
            "flavor": flavor_label(flavor)
        }
    numbers = {
        "asked": amount(flavor, int(evidence.get("asked_milli", 0))),
        "most": amount(flavor, int(evidence.get("most_milli", 0))),
    }
    if evidence.get("may_borrow") is False:
        return (
            _(
                "It asks for %(asked)s; the tenant owns %(most)s, and a job that may not be "
                "evicted may not borrow."
            )
            % numbers
        )
    return (
        _("It asks for %(asked)s; with all that it may borrow, the tenant gets %(most)s.") % numbers
    )


def _watts(amount: Any) -> str:
    """Return `2.4 kW` or `700 W`."""
    watts = float(amount or 0)
    return f"{watts / 1000:.1f} kW" if watts >= KILO else f"{watts:.0f} W"


def _exceeds_power_cap(evidence: Numbers) -> str:
    return _("It needs %(asked)s of board power; the cluster's cap is %(cap)s.") % {
        "asked": _watts(evidence.get("asked_w")),
        "cap": _watts(evidence.get("cap_w")),
    }


def _waiting_for_power(evidence: Numbers) -> str:
    return _(
        "The cluster's power cap is in the way: it needs %(asked)s, and %(held)s of %(cap)s "
        "are allocated."
    ) % {name: _watts(evidence.get(f"{name}_w")) for name in ("asked", "held", "cap")}


def _waiting_for_quota(evidence: Numbers) -> str:
    if "flavor" not in evidence:
        return _("The tenant's quota is in use; it starts when jobs of the tenant end.")
    flavor = str(evidence["flavor"])
    if evidence.get("above_milli"):
        return _(
            "The tenant holds %(above)s more than its quota allows since that was cut; it starts "
            "when jobs of the tenant end."
        ) % {"above": amount(flavor, int(evidence["above_milli"]))}
    return _(
        "The tenant's quota of %(flavor)s is in use: it asks for %(asked)s, and %(available)s "
        "are left (%(used)s used, %(nominal)s owned)."
    ) % {
        "flavor": flavor_label(flavor),
        **{
            name: units.format_devices_milli(int(evidence.get(f"{name}_milli", 0)))
            for name in ("asked", "available", "used", "nominal")
        },
    }


def _nodes_unavailable(evidence: Numbers) -> str:
    away = evidence.get("unavailable_nodes") or {}
    sick = int(evidence.get("unhealthy_devices", 0))
    notes = _names(
        _("%(nodes)s %(note)s") % {"nodes": _nodes(int(count)), "note": _note(note)}
        for note, count in away.items()
    )
    if away and sick:
        return _("It would fit, but not all may be used: %(notes)s, %(sick)s not healthy.") % {
            "notes": notes,
            "sick": _devices(sick),
        }
    if sick:
        return _("It would fit, but %(sick)s are not healthy.") % {"sick": _devices(sick)}
    return _("It would fit, but not all may be used: %(notes)s.") % {"notes": notes}


def _note(note: str) -> str:
    return {"cordoned": _("cordoned"), "draining": _("draining")}.get(note, _("unreachable"))


def _reserved(evidence: Numbers) -> str:
    ahead = int(evidence.get("ahead", 0))
    return ngettext(
        "It would fit now, but what is free is kept for a job ahead of it (%(ahead)s ahead).",
        "It would fit now, but what is free is kept for jobs ahead of it (%(ahead)s ahead).",
        ahead,
    ) % {"ahead": ahead}


def _fragmented(evidence: Numbers) -> str:
    if "placement_wish" in evidence:
        return _(
            "Enough is free, but not one node for each replica: %(near)s find a node of their own."
        ) % {"near": evidence.get("replicas_that_fit", 0)}
    if "interference" in evidence:
        return _(
            "Enough is free, but beside jobs that would slow it down or that it would: "
            "%(name)s does not share a device with them."
        ) % {"name": evidence["interference"]}
    if "topology" in evidence:
        return _(
            "Enough is free, but not in %(level)s: that has room for %(near)s of its replicas, "
            "the whole cluster for %(anywhere)s."
        ) % {
            "level": TopologyLevel(evidence["topology"]).label,
            "near": evidence.get("replicas_that_fit", 0),
            "anywhere": evidence.get("replicas_anywhere", 0),
        }
    free, asked = evidence.get("free", {}), evidence.get("asked", {})
    if asked.get("devices"):
        return _(
            "Enough is free in sum (%(free)s), but not in one piece: "
            "the fullest node with room has %(block)s, and each replica asks for %(asked)s."
        ) % {
            "free": _devices_milli(int(free.get("gpu_milli", 0))),
            "block": _devices_milli(_block_milli(asked, free)),
            "asked": request({**asked, "replicas": 1}),
        }
    return _(
        "Enough is free in sum, but no node has it in one piece: the most on one node are "
        "%(cpu)s cores and %(memory)s, and each replica asks for %(asked)s."
    ) % {
        "cpu": units.format_cpu(int(free.get("largest_cpu_milli", 0))),
        "memory": units.format_memory(int(free.get("largest_memory_mib", 0))),
        "asked": request({**asked, "replicas": 1}),
    }


def _block_milli(asked: Numbers, free: Numbers) -> int:
    """Return the largest free piece: of one device where a share is asked for, else of a node."""
    if int(asked.get("gpu_milli", WHOLE_MILLI)) < WHOLE_MILLI and not free.get("devices"):
        return int(free.get("largest_share_milli", 0))
    return WHOLE_MILLI * int(free.get("largest_block", 0))


def _waiting_for_capacity(evidence: Numbers) -> str:
    free = evidence.get("free", {})
    parts = [
        _cores(int(free.get("cpu_milli", 0))),
        units.format_memory(int(free.get("memory_mib", 0))),
    ]
    if "devices" in free:
        parts.append(_devices(int(free["devices"])))
    return _("Too little is free: it asks for %(asked)s, and %(free)s are free.") % {
        "asked": request(evidence.get("asked", {})),
        "free": _names(parts),
    }


WAITING: dict[str, Sentence] = {
    "on_hold": lambda _e: _("It is on hold until somebody lets it go."),
    "misconfigured": _misconfigured,
    "no_matching_flavor": _no_matching_flavor,
    "never_fits": _never_fits,
    "exceeds_max_quota": _exceeds_max_quota,
    "exceeds_power_cap": _exceeds_power_cap,
    "awaiting_approval": lambda _e: _("It waits for somebody to approve it."),
    "budget_spent": lambda _e: _("The tenant's budget is spent."),
    "backing_off": lambda _e: _("The last start failed; it is tried again in a moment."),
    "waiting_for_quota": _waiting_for_quota,
    "waiting_for_power": _waiting_for_power,
    "nodes_unavailable": _nodes_unavailable,
    "reserved": _reserved,
    "fragmented": _fragmented,
    "waiting_for_preempted_jobs": lambda _e: _("Jobs that make room for it are being stopped."),
    "waiting_for_capacity": _waiting_for_capacity,
    "starting": lambda _e: _("It has its place and is about to start."),
    "pending_evaluation": lambda _e: _("It was just queued; the scheduler is about to look at it."),
}
"""Code of `scheduler.core.reasons.WaitReason` -> its sentence from the evidence."""


# -- what would help -------------------------------------------------------------------------


def _ask_for_quota(params: Numbers) -> str:
    missing = params.get("missing_milli") or {}
    return _("Ask for %(missing)s more quota") % {
        "missing": _names(amount(name, int(milli)) for name, milli in missing.items())
    }


def _moment(at_s: float) -> str:
    """Return a moment in the viewer's zone."""
    return date_format(localtime(datetime.fromtimestamp(at_s, UTC)), "SHORT_DATETIME_FORMAT")


REMEDIES: dict[str, Sentence] = {
    "other_flavor": lambda p: (
        _("Allow %(flavor)s") % {"flavor": flavor_label(str(p.get("flavor", "")))}
    ),
    "fewer_devices": lambda p: (
        _("Ask for %(count)s per replica") % {"count": _devices(int(p.get("devices", 0)))}
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
        _("Ask for %(count)s per replica") % {"count": _cores(int(p.get("cpu_milli", 0)))}
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
    "share_nodes": lambda _p: _("Spread the replicas, but let some share a node"),
    "preemptible": lambda _p: _("Choose a priority class whose jobs may be evicted"),
    "later": lambda p: (
        _("Leave it as it is: planned to start by %(time)s")
        % {"time": _moment(float(p.get("start_s", 0)))}
    ),
    "shorter_time_limit": lambda p: (
        _("Set the time limit to %(time)s or less")
        % {"time": units.format_duration(float(p.get("time_limit_s", 0)))}
    ),
    "ask_for_quota": _ask_for_quota,
    "ask_admin_for_nodes": lambda _p: _("Ask an admin to bring the nodes back"),
    "ask_admin_for_toleration": lambda p: (
        _("Ask an admin whether it may tolerate %(taints)s")
        % {"taints": _names(p.get("taints") or ())}
    ),
}
"""Code of a remedy (scheduler/decide/remedies.py) -> what to do, without the full stop."""
