"""What rules a job out before capacity is looked at: holds, mistakes, and what can never be.

The order of the questions is the order of `WaitReason`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.core.reasons import WaitReason
from scheduler.core.resources import CPU_FLAVOR, PLACEMENT_WISHES, WHOLE_MILLI
from scheduler.core.snapshot import JobSpec
from scheduler.core.topology import WITHIN_NODE
from scheduler.decide.bounds import JOB, SHAPE, stray
from scheduler.decide.feasibility import ANY
from scheduler.decide.session import Session

_LATER_HOLDS = {
    WaitReason.AWAITING_APPROVAL.value: WaitReason.AWAITING_APPROVAL,
    WaitReason.BUDGET_SPENT.value: WaitReason.BUDGET_SPENT,
}

_TOGETHER = {"replicas_min": "replicas", "replicas_max": "replicas"}
"""Fields of which the mistake has one name."""


class Refusal(NamedTuple):
    """Why a job is not even tried, with the numbers."""

    code: WaitReason
    evidence: Mapping[str, object]


def refusal(session: Session, job: JobSpec) -> Refusal | None:
    """Return the first reason that rules the job out whatever is free, None if there is none."""
    if job.hold and job.hold not in _LATER_HOLDS:
        return Refusal(WaitReason.ON_HOLD, {"hold": job.hold})
    mistake = _mistake(session, job)
    if mistake:
        return Refusal(WaitReason.MISCONFIGURED, {"mistake": mistake})
    never = _never(session, job)
    if never:
        return never
    if job.hold:
        return Refusal(_LATER_HOLDS[job.hold], {"hold": job.hold})
    if job.not_before_s > session.now_s:
        return Refusal(WaitReason.BACKING_OFF, {"not_before_s": job.not_before_s})
    return None


def _mistake(session: Session, job: JobSpec) -> str:
    """Return what is wrong with the request itself, "" if nothing."""
    shape, wish = job.shape, job.topology
    if wrong := stray(shape, SHAPE) or stray(job, JOB):
        return _TOGETHER.get(wrong, wrong)
    checks = {
        "unknown_tenant": job.tenant in session.tree.index,
        "fraction_of_many": shape.gpu_milli == WHOLE_MILLI or shape.devices <= 1,
        "replicas": job.replicas_min <= job.replicas_max,
        "topology": bool(shape.devices) or not (wish and wish.level in WITHIN_NODE),
        "placement_wish": job.placement_wish in PLACEMENT_WISHES,
    }
    return next((name for name, good in checks.items() if not good), "")


def _never(session: Session, job: JobSpec) -> Refusal | None:
    """Return why time alone will not help: no flavor, no node large enough, no quota ever."""
    like = (session.kind(job), job.tenant, job.preemptible)
    if like in session.possible:
        return None
    allowed = session.allowed(job)
    if not allowed:
        present = sorted(session.flavor_of)
        wanted = {
            "flavors": list(job.flavors),
            "min_throughput": job.min_throughput,
            "devices": job.shape.devices,
        }
        return Refusal(WaitReason.NO_MATCHING_FLAVOR, {"asked": wanted, "present": present})
    room = {flavor: session.empty_room(job, flavor) for flavor in allowed}
    large = [flavor for flavor in allowed if room[flavor] >= job.replicas_min]
    if not large:
        return Refusal(WaitReason.NEVER_FITS, never_fits_evidence(session, job, room))
    most = {flavor: session.allowance.replicas_ever(job, flavor) for flavor in large}
    best = max(large, key=most.__getitem__)
    if most[best] < job.replicas_min:
        return Refusal(WaitReason.EXCEEDS_MAX_QUOTA, quota_ever_evidence(session, job, best))
    owned = [flavor for flavor in large if most[flavor] >= job.replicas_min]
    if not any(session.power.ever(job, flavor) for flavor in owned):
        return Refusal(WaitReason.EXCEEDS_POWER_CAP, power_ever_evidence(session, job, owned))
    session.possible.add(like)
    return None


def never_fits_evidence(
    session: Session, job: JobSpec, room: Mapping[int, int]
) -> dict[str, object]:
    """Return what was asked and the most that the empty cluster could hold."""
    capacity = session.layout.capacity
    of_flavors = np.isin(session.layout.flavor, [flavor for flavor in room if flavor != ANY])
    largest = {
        "cpu_milli": int(capacity.cpu.max(initial=0)),
        "memory_mib": int(capacity.memory.max(initial=0)),
        "devices": {
            session.flavor_name(flavor): session.layout.largest_node(flavor)
            for flavor in room
            if flavor != ANY
        },
        "gpu_memory_mib": int(capacity.device_memory[of_flavors].max(initial=0)),
    }
    evidence = {
        "asked": asked(job),
        "largest_node": largest,
        "replicas_when_empty": max(room.values()),
    }
    if job.topology and job.topology.required:
        evidence["topology"] = job.topology.level.value
    return evidence


def quota_ever_evidence(session: Session, job: JobSpec, flavor: int) -> dict[str, object]:
    """Return the flavor whose quota can never hold the job, and its numbers."""
    for charge in session.charges(job, flavor, job.replicas_min):
        most = session.allowance.most(job, charge.flavor)
        if most < charge.amount:
            return {
                "flavor": charge.flavor,
                "asked_milli": charge.amount,
                "most_milli": most,
                "named": session.tree.may_use(job.tenant, charge.flavor),
                "may_borrow": job.preemptible,
            }
    return {"flavor": CPU_FLAVOR}


def power_ever_evidence(
    session: Session, job: JobSpec, flavors: Sequence[int]
) -> dict[str, object]:
    """Return the fewest watts that the job would add, and the cap."""
    asked_w = session.power.least_w(job, flavors)
    return {"asked": asked(job), "asked_w": asked_w, "cap_w": session.policy.power_cap_w}


def asked(job: JobSpec) -> dict[str, object]:
    """Return the request in numbers."""
    return {
        "replicas": job.replicas_min,
        "cpu_milli": job.shape.cpu_milli,
        "memory_mib": job.shape.memory_mib,
        "devices": job.shape.devices,
        "gpu_milli": job.shape.gpu_milli,
        "gpu_memory_mib": job.shape.gpu_memory_mib,
    }
