"""Why a job that may run does not run now: the first reason that holds, with its numbers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scheduler.core.reasons import WaitReason
from scheduler.core.resources import ONE_PER_NODE
from scheduler.core.snapshot import JobSpec
from scheduler.decide.admission import asked
from scheduler.decide.feasibility import ANY
from scheduler.decide.foes import ANYBODY
from scheduler.decide.power import MICRO
from scheduler.decide.quota import Charge
from scheduler.decide.session import WHATEVER_RESERVED_S, Session, Shortage
from scheduler.decide.standing import above_quota
from scheduler.decide.topology import reach

MOST_RESERVATIONS = 3
"""So many reservations are named to a job that waits for them."""


class Blocked(NamedTuple):
    """Why a job is blocked at its turn, with the numbers."""

    code: WaitReason
    evidence: dict[str, object]


def blocked(session: Session, job: JobSpec) -> Blocked:
    """Return why `session.fit_now(job)` found nothing, seen from this moment of the cycle."""
    with_quota = [
        flavor
        for flavor in session.allowed(job)
        if session.allowance.by_quota(job, flavor, 0, 1) >= job.replicas_min
    ]
    if not with_quota:
        return Blocked(WaitReason.WAITING_FOR_QUOTA, quota_evidence(session, job))
    with_power = [
        flavor
        for flavor in with_quota
        if session.allowance.by_power(job, flavor, 0, 1) >= job.replicas_min
    ]
    if not with_power:
        return Blocked(WaitReason.WAITING_FOR_POWER, power_evidence(session, job, with_quota))
    short = _shortage(session, job, with_power)
    if short.replicas >= job.replicas_min:
        return _kept_for_others(session, job, with_power, short)
    return Blocked(short.code, {**short.evidence, **_slower_evidence(session, job, short)})


def _kept_for_others(
    session: Session, job: JobSpec, flavors: Sequence[int], short: Shortage
) -> Blocked:
    """Return why a job waits that would fit now, but not until its end.

    One that may not be evicted has its tenant's own quota only: where others of that kind are
    planned to hold it, more quota would help, and no place would.
    """
    rows = session.window(session.now_s + job.time_limit_s)
    firm, by_quota = not job.preemptible, session.allowance.by_quota
    if firm and all(by_quota(job, flavor, 0, rows) < job.replicas_min for flavor in flavors):
        return Blocked(WaitReason.WAITING_FOR_QUOTA, quota_evidence(session, job, rows))
    return Blocked(WaitReason.RESERVED, {**short.evidence, **reserved_evidence(session, job)})


def _shortage(session: Session, job: JobSpec, flavors: list[int]) -> Shortage:
    """Return what is wrong with the free capacity; kept until something is taken of it."""
    key = (session.kind(job), tuple(flavors))
    known = session.explained.get(key)
    if known and known[0] == session.profile.version:
        return known[1]
    replicas = max(session.room_now(job, flavor, 1) for flavor in flavors)
    evidence = free_evidence(session, job, flavors, replicas)
    if _fits_on_unavailable(session, job, flavors):
        code, evidence = WaitReason.NODES_UNAVAILABLE, evidence | unavailable_evidence(session)
    elif "replicas_anywhere" in evidence or _enough_in_sum(session, job, flavors):
        code = WaitReason.FRAGMENTED
    else:
        code = WaitReason.WAITING_FOR_CAPACITY
    short = Shortage(code, evidence, replicas)
    session.explained[key] = (session.profile.version, short)
    return short


def quota_evidence(
    session: Session, job: JobSpec, rows: int = 1, *, flavors: Sequence[int] | None = None
) -> dict[str, object]:
    """Return the flavor that is short of quota: asked, used, nominal, lent, available, missing.

    Args:
        session: the state at the job's turn.
        job: the job.
        rows: in one of so many rows.
        flavors: to choose from; the allowed ones by default.
    """
    short = least_missing(session, job, rows, flavors or session.allowed(job))
    if not short:
        return {"asked": asked(job)}
    return {"asked": asked(job), **_quota_numbers(session, job, *short[0])}


def least_missing(
    session: Session, job: JobSpec, rows: int, flavors: Sequence[int]
) -> list[tuple[Charge, int]]:
    """Return what a job would be charged and what is left of it, where that is less.

    On the flavor that comes first of those on which it misses anything; [] where it never does.
    Order of criteria: those of which its tenant owns what it would hold, then those of which it
    misses least, then the job's own order.

    Args:
        session: the state at the job's turn.
        job: the job.
        rows: in one of so many rows.
        flavors: to choose from.
    """
    short = []
    for position, flavor in enumerate(flavors):
        missing = [
            (charge, left)
            for charge in session.charges(job, flavor, job.replicas_min)
            if (left := session.allowance.left(job, charge.flavor, 0, rows)) < charge.amount
        ]
        if missing:
            borrows = not session.allowance.owns(job, [flavor])
            sum_milli = sum(charge.amount - left for charge, left in missing)
            short.append(((borrows, sum_milli, position), missing))
    return min(short, key=lambda one: one[0])[1] if short else []


def _quota_numbers(session: Session, job: JobSpec, charge: Charge, left: int) -> dict[str, object]:
    """Return the standing of the tenant itself: what it holds of what it owns, and what others do.

    Who those are is not said: what lenders and borrowers hold together is no one's in particular.
    What is left now and planned for jobs ahead before it would end is told apart.
    With those below it, it holds more than its quota only after a cut.
    """
    ledger, tenant, flavor = session.profile.ledger, job.tenant, charge.flavor
    used, nominal = ledger.own(tenant, flavor), session.allowance.nominal(tenant, flavor)
    lent = nominal - used - max(0, ledger.available(tenant, flavor, slice(1)))
    above = above_quota(ledger, tenant, flavor)
    numbers: dict[str, object] = {
        "flavor": flavor,
        "asked_milli": charge.amount,
        "used_milli": used,
        "nominal_milli": nominal,
        "available_milli": max(0, left),
        "missing_milli": charge.amount - left,
        "may_borrow": job.preemptible,
    }
    numbers |= {"held_by_others_milli": lent} if lent > 0 else {}
    planned = session.allowance.left(job, flavor, 0, 1) - left
    numbers |= {"planned_milli": planned} if planned > 0 else {}
    return numbers | ({"above_milli": above} if above else {})


def power_evidence(session: Session, job: JobSpec, flavors: Sequence[int]) -> dict[str, object]:
    """Return the watts that are missing on the flavor that needs fewest: asked, held, the cap."""
    held_w = session.profile.power_uw(0, 1) / MICRO
    asked_w = session.power.least_w(job, flavors)
    cap_w = session.policy.power_cap_w
    return {"asked": asked(job), "asked_w": asked_w, "held_w": held_w, "cap_w": cap_w}


def free_evidence(
    session: Session, job: JobSpec, flavors: list[int], replicas: int
) -> dict[str, object]:
    """Return what is free now on nodes that the job may use: in sum, and the most on one node.

    The largest block of devices is looked for where CPU and memory are left for a replica, too.

    Args:
        session: the state at the job's turn.
        job: the job.
        flavors: that it may use.
        replicas: how many of them fit now.
    """
    shape = job.shape
    pools = [session.pool(session.demand(job, flavor)) for flavor in flavors]
    numbers: dict[str, object] = {
        "cpu_milli": pools[0].sums.cpu,
        "memory_mib": pools[0].sums.memory,
        "largest_cpu_milli": pools[0].most.cpu,
        "largest_memory_mib": pools[0].most.memory,
    }
    if flavors[0] != ANY:
        node = pools[0].nodes
        roomy = (node.cpu >= shape.cpu_milli) & (node.memory >= shape.memory_mib)
        block = np.sum([pool.nodes.takes for pool in pools], axis=0) * roomy
        numbers |= {
            "gpu_milli": sum(pool.sums.milli for pool in pools),
            "devices": sum(pool.sums.takes for pool in pools),
            "largest_block": int(block.max(initial=0)),
            "largest_share_milli": max(pool.most.share for pool in pools),
            "largest_gpu_memory_mib": max(pool.most.share_memory for pool in pools),
        }
    evidence: dict[str, object] = {"asked": asked(job), "free": numbers}
    evidence["replicas_that_fit"] = replicas
    enough = replicas >= job.replicas_min
    return evidence if enough else evidence | _wish_evidence(session, job, flavors)


def _wish_evidence(session: Session, job: JobSpec, flavors: Sequence[int]) -> dict[str, object]:
    """Return what alone keeps a job from starting that would fit without it.

    That all replicas are in one domain or on a node each, that no other of its group is on a node,
    or that it can't bear who shares devices.
    """
    wishes: dict[str, tuple[object, JobSpec]] = {}
    if job.topology and job.topology.required:
        wishes["topology"] = (job.topology.level.value, replace(job, topology=None))
    if job.placement_wish == ONE_PER_NODE:
        wishes["placement_wish"] = (ONE_PER_NODE, replace(job, placement_wish=""))
    if job.anti_affinity:
        wishes["anti_affinity"] = (job.anti_affinity, replace(job, anti_affinity=""))
    if session.layout.foes.of(job) != ANYBODY:
        wishes["interference"] = (job.interference, replace(job, interference=""))
    for name, (wish, without) in wishes.items():
        most = max(session.room_now(without, flavor, 1) for flavor in flavors)
        if most >= job.replicas_min:
            return {name: wish, "replicas_anywhere": most}
    return {}


def _slower_evidence(session: Session, job: JobSpec, short: Shortage) -> dict[str, object]:
    """Return the least throughput where it alone keeps a job from what is free on slower flavors.

    Not kept with the shortage: that is shared with jobs of other least throughputs and tenants.
    """
    if not job.min_throughput or short.code is not WaitReason.WAITING_FOR_CAPACITY:
        return {}
    without, allowance = replace(job, min_throughput=0.0), session.allowance
    most = max(
        min(allowance.replicas(without, flavor, 0, 1), session.room_now(without, flavor, 1))
        for flavor in session.allowed(without)
    )
    if most < job.replicas_min:
        return {}
    return {"min_throughput": job.min_throughput, "replicas_anywhere": most}


def unavailable_evidence(session: Session) -> dict[str, object]:
    """Return how many nodes may not be used, by the reason noted, and how many sick devices."""
    notes: dict[str, int] = {}
    fleet = session.snapshot.fleet
    for node in np.flatnonzero(~fleet.node_ready).tolist():
        note = fleet.node_note[node] or "unknown"
        notes[note] = notes.get(note, 0) + 1
    sick, hot = int((~fleet.device_healthy).sum()), int(fleet.device_throttled.sum())
    evidence: dict[str, object] = {"unavailable_nodes": dict(sorted(notes.items()))}
    evidence["unhealthy_devices"] = sick
    return evidence | {"throttled_devices": hot} if hot else evidence


def reserved_evidence(session: Session, job: JobSpec) -> dict[str, object]:
    """Return the first reservations that the job would get into if it started now.

    Nothing where it is only the planned start of a job ahead that is in the way.
    """
    mine, end_s = session.kind(job).mine, session.now_s + job.time_limit_s
    met = session.calendar.in_the_way(mine, session.now_s, end_s)
    if not met:
        return {}
    first = [
        {
            "id": one.id,
            "start_s": one.start_s,
            "end_s": one.end_s,
            "nodes": len(one.nodes),
            "maintenance": one.is_maintenance,
        }
        for one in met[:MOST_RESERVATIONS]
    ]
    return {"reservations": first}


def _fits_on_unavailable(session: Session, job: JobSpec, flavors: list[int]) -> bool:
    """Return whether what is free would do if every node and device could be used."""
    nodes = session.layout.impaired
    if not len(nodes):
        return False
    for flavor in flavors:
        usable = session.counted(session.demand(job, flavor), 1)
        whatever = session.counted(session.demand(job, flavor, whatever_health=True), 1)
        counts = usable.counts.copy()
        counts[nodes] = whatever.counts[nodes]
        counts[session.closed(session.kind(job), session.now_s, WHATEVER_RESERVED_S)] = 0
        if reach(session.layout, counts, job.topology) >= job.replicas_min:
            return True
    return False


def _enough_in_sum(session: Session, job: JobSpec, flavors: list[int]) -> bool:
    """Return whether enough is free over all nodes together, so that only its pieces are wrong."""
    shape, replicas = job.shape, job.replicas_min
    for flavor in flavors:
        demand = session.demand(job, flavor)
        free, least_mib = session.pool(demand).sums, session.filter(demand).least_memory_mib
        enough = (
            free.cpu >= shape.cpu_milli * replicas
            and free.memory >= shape.memory_mib * replicas
            and free.milli >= shape.device_milli * replicas
            and free.device_memory >= least_mib * shape.devices * replicas
        )
        if enough:
            return True
    return False
