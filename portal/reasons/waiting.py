"""Why a job waits or can never run, in words."""

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from portal.flavor_names import flavor_label
from portal.reasons.amounts import (
    Numbers,
    Sentence,
    amount,
    cores_text,
    devices_milli_text,
    devices_text,
    flavors_text,
    joined,
    nodes_text,
    percent_text,
    request,
    watts_text,
)
from scheduler.choices import TopologyLevel
from scheduler.core.resources import CPU_FLAVOR, WHOLE_MILLI, is_slice
from scheduler.core.topology import WITHIN_NODE
from telemetry import units


def _misconfigured(evidence: Numbers) -> str:
    return _("The request contradicts itself: look at %(field)s.") % {
        "field": evidence.get("mistake", "")
    }


def _no_matching_flavor(evidence: Numbers) -> str:
    asked, present = evidence.get("asked", {}).get("flavors") or (), evidence.get("present") or ()
    if not present:
        return _("This cluster has no accelerators.")
    devices = int(evidence.get("asked", {}).get("devices", 0))
    if not asked and devices > 1 and all(map(is_slice, present)):
        return _(
            "A replica of several devices is not put on MIG slices, of which a process sees one, "
            "unless the job names them; there are: %(present)s."
        ) % {"present": flavors_text(present)}
    if not asked:
        return _(
            "No accelerator here reaches the throughput asked for; there are: %(present)s."
        ) % {"present": flavors_text(present)}
    return _("This cluster has no %(asked)s; it has: %(present)s.") % {
        "asked": flavors_text(asked),
        "present": flavors_text(present),
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
    each = request({**asked, "replicas": 1})
    level = evidence.get("topology")
    if level in WITHIN_NODE or (level and fits):  # else the replica is larger than any node
        return _(
            "All replicas must be in %(level)s: even empty, it has room for %(fits)s of "
            "%(replicas)s, each of %(asked)s."
        ) % {
            "level": TopologyLevel(level).label,
            "fits": fits,
            "replicas": replicas,
            "asked": each,
        }
    if replicas > 1 and fits:
        return _(
            "%(replicas)s replicas can never run together: "
            "the whole cluster, empty, holds %(fits)s of them."
        ) % {"replicas": replicas, "fits": fits}
    return _(
        "No node is large enough, even empty: each replica asks for %(asked)s; "
        "the largest amounts on one node are %(largest)s."
    ) % {"asked": each, "largest": _largest(largest)}


def _largest(largest: Numbers) -> str:
    parts = [
        cores_text(int(largest.get("cpu_milli", 0))),
        units.format_memory(int(largest.get("memory_mib", 0))),
        *(
            f"{count} × {flavor_label(name)}"
            for name, count in sorted(largest.get("devices", {}).items())
        ),
    ]
    return joined(parts)


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


def _exceeds_power_cap(evidence: Numbers) -> str:
    return _("It needs %(asked)s of board power; the cluster's cap is %(cap)s.") % {
        "asked": watts_text(evidence.get("asked_w")),
        "cap": watts_text(evidence.get("cap_w")),
    }


def _waiting_for_power(evidence: Numbers) -> str:
    return _(
        "The cluster's power cap is in the way: it needs %(asked)s, and %(held)s of %(cap)s "
        "are allocated."
    ) % {name: watts_text(evidence.get(f"{name}_w")) for name in ("asked", "held", "cap")}


def _waiting_for_quota(evidence: Numbers) -> str:
    if "flavor" not in evidence:
        return _("The tenant's quota is in use; it starts when jobs of the tenant end.")
    flavor = str(evidence["flavor"])
    if evidence.get("above_milli"):
        return _(
            "The tenant holds %(above)s more than its quota allows since that was cut; it starts "
            "when jobs of the tenant end."
        ) % {"above": amount(flavor, int(evidence["above_milli"]))}
    names = ("asked", "available", "used", "nominal", "held_by_others")
    numbers = {
        name: units.format_devices_milli(int(evidence.get(f"{name}_milli", 0))) for name in names
    }
    return _quota_sentence(evidence) % {"flavor": flavor_label(flavor), **numbers}


def _quota_sentence(evidence: Numbers) -> str:
    """Return the sentence, to be filled: planned for others, lent, none owned, or in use."""
    if evidence.get("planned_milli"):
        return _(
            "The tenant's quota of %(flavor)s is kept for a job ahead of it: it asks for "
            "%(asked)s, and %(available)s are left until its end (%(used)s used now, %(nominal)s "
            "owned)."
        )
    if evidence.get("held_by_others_milli"):
        return _(
            "The tenant's quota of %(flavor)s is lent to others: it asks for %(asked)s, and "
            "%(available)s are left (%(used)s used, %(nominal)s owned, %(held_by_others)s of "
            "that held by others)."
        )
    if evidence.get("nominal_milli") == 0:
        return _(
            "The tenant owns no quota of %(flavor)s: it asks for %(asked)s, and %(available)s "
            "are left to borrow (%(used)s used)."
        )
    return _(
        "The tenant's quota of %(flavor)s is in use: it asks for %(asked)s, and %(available)s "
        "are left (%(used)s used, %(nominal)s owned)."
    )


def _nodes_unavailable(evidence: Numbers) -> str:
    away = evidence.get("unavailable_nodes") or {}
    sick = int(evidence.get("unhealthy_devices", 0))
    notes = joined(
        _("%(nodes)s %(note)s") % {"nodes": nodes_text(int(count)), "note": _note(note)}
        for note, count in away.items()
    )
    if away and sick:
        return _("It would fit, but not all may be used: %(notes)s, %(sick)s not healthy.") % {
            "notes": notes,
            "sick": devices_text(sick),
        }
    if sick:
        return _("It would fit, but %(sick)s are not healthy.") % {"sick": devices_text(sick)}
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
    if "anti_affinity" in evidence:
        return _(
            "Enough is free, but on nodes where other jobs of the group %(name)s are; without "
            "them there is room for %(near)s of its replicas."
        ) % {"name": evidence["anti_affinity"], "near": evidence.get("replicas_that_fit", 0)}
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
            "free": devices_milli_text(int(free.get("gpu_milli", 0))),
            "block": devices_milli_text(_block_milli(asked, free)),
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
    if evidence.get("min_throughput"):
        return _(
            "Too little is free that is fast enough: it asks for at least %(percent)s %% of full "
            "speed; on any device there is room for %(anywhere)s of its replicas."
        ) % {
            "percent": percent_text(evidence["min_throughput"]),
            "anywhere": evidence.get("replicas_anywhere", 0),
        }
    free = evidence.get("free", {})
    parts = [
        cores_text(int(free.get("cpu_milli", 0))),
        units.format_memory(int(free.get("memory_mib", 0))),
    ]
    if "devices" in free:
        parts.append(devices_text(int(free["devices"])))
    return _("Too little is free: it asks for %(asked)s, and %(free)s are free.") % {
        "asked": request(evidence.get("asked", {})),
        "free": joined(parts),
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
    "backing_off": lambda _e: _(
        "It has lost its node more than once, so it pauses before it is tried again."
    ),
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
