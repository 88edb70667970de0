"""What would help a waiting job: of each kind of change the smallest that was tried and works.

Each change is tried on the session at the job's own turn, without changing the session. Amounts
are searched by halving, as less of anything never fits worse. What is found is true of this job at
this place in the queue, and stays so for a while if nothing else changes; whether the changed job
would stand at this place is asked in `turns`.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from scheduler.core.reasons import Remedy, WaitReason
from scheduler.core.resources import ONE_PER_NODE, SPREAD, WHOLE_MILLI, may_be_given
from scheduler.core.snapshot import JobSpec, QuotaLine, Snapshot
from scheduler.decide.admission import Refusal, refusal
from scheduler.decide.explain import Blocked, least_missing, unavailable_evidence
from scheduler.decide.session import Session
from scheduler.decide.taints import needed_taints

LEAST_TIME_LIMIT_S = 60.0
"""Nobody is advised to ask for less time than this."""

LASTING_S = 60.0
"""What would help has to help for so long: people need time to act (Slurm's bf_resolution)."""

CORE_MILLI, MEMORY_STEP_MIB, SHARE_STEP_MILLI = 1000, 256, 50
"""Amounts are advised in whole cores, in these parts of memory and of a device."""

OF_OTHERS = frozenset({"ask_for_quota", "ask_admin_for_nodes", "ask_admin_for_toleration"})
"""Changes that the user cannot make alone."""

Works: TypeAlias = Callable[[JobSpec], bool]


@dataclass(frozen=True, slots=True)
class _Amount:
    """An amount of the request that may be made smaller.

    Attributes:
        code: of the remedy.
        name: of the parameter.
        asked: what the job asks for.
        step: amounts are multiples of it, and the least is one step.
        changed: the job with another amount.
    """

    code: str
    name: str
    asked: int
    step: int
    changed: Callable[[int], JobSpec]


def for_blocked(session: Session, job: JobSpec, why: Blocked) -> tuple[Remedy, ...]:
    """Return the changes that would start the job at this moment of the cycle, smallest first.

    Args:
        session: the state at the job's turn.
        job: the job.
        why: why it is blocked.
    """
    helps = list(_smallest_changes(session, job, lambda changed: starts(session, changed)))
    helps += _shorter(session, job)
    if why.code is WaitReason.WAITING_FOR_QUOTA:
        helps += _more_quota_now(session, job)
    if why.code is WaitReason.NODES_UNAVAILABLE:
        helps.append(Remedy("ask_admin_for_nodes", unavailable_evidence(session)))
    return tuple(sorted(helps, key=lambda remedy: _size_of(job, remedy)))


def for_refused(session: Session, job: JobSpec, why: Refusal) -> tuple[Remedy, ...]:
    """Return the changes that would make a job possible that can never run as it is."""
    if why.code is WaitReason.EXCEEDS_MAX_QUOTA:
        more = _more_quota_ever(session, job)
    elif why.code in {WaitReason.NO_MATCHING_FLAVOR, WaitReason.NEVER_FITS}:
        more = _toleration(session, job)
    elif why.code is WaitReason.EXCEEDS_POWER_CAP:
        more = []
    else:
        return ()
    helps = _smallest_changes(session, job, lambda changed: refusal(session, changed) is None)
    return tuple(sorted([*helps, *more], key=lambda remedy: _size_of(job, remedy)))


def starts(session: Session, job: JobSpec) -> bool:
    """Return whether the engine would start this job now, and still a while later."""
    lasting = replace(job, time_limit_s=job.time_limit_s + LASTING_S)
    return refusal(session, job) is None and session.fit_now(lasting) is not None


def apply(snapshot: Snapshot, job: JobSpec, remedy: Remedy) -> tuple[Snapshot, JobSpec]:
    """Return the world and the job as they would be with a remedy applied.

    The job is not put into the snapshot's queue.
    """
    params: Mapping[str, Any] = remedy.params
    if remedy.code == "ask_for_quota":
        return _with_quota(snapshot, job.tenant, params["missing_milli"]), job
    if remedy.code == "ask_admin_for_nodes":
        return _with_all_nodes(snapshot), job
    return snapshot, _changed(job, remedy.code, params)


def _changed(job: JobSpec, code: str, params: Mapping[str, Any]) -> JobSpec:
    changes: dict[str, Any]
    match code:
        case "other_flavor":
            changes = {"flavors": (params["flavor"],)}
        case "preemptible":
            changes = {"preemptible": True}
        case "prefer_topology":
            changes = {"topology": job.topology and replace(job.topology, required=False)}
        case "lower_min_throughput":
            changes = {"min_throughput": params["min_throughput"]}
        case "drop_anti_affinity":
            changes = {"anti_affinity": ""}
        case "share_nodes":
            changes = {"placement_wish": SPREAD}
        case "fewer_replicas":
            changes = dict.fromkeys(("replicas_min", "replicas_max"), params["replicas"])
        case "shorter_time_limit":
            changes = {"time_limit_s": params["time_limit_s"]}
        case "ask_admin_for_toleration":
            changes = {"tolerations": job.tolerations | set(params["taints"])}
        case _:
            amounts = {name: value for name, value in params.items() if name in _asked(job)}
            changes = {"shape": replace(job.shape, **amounts)}
    return replace(job, **changes)


def _with_all_nodes(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with every node ready and every device healthy."""
    ready = np.ones(len(snapshot.fleet.node_names), dtype=np.bool_)
    healthy = np.ones(len(snapshot.fleet.device_uids), dtype=np.bool_)
    cool = np.zeros_like(snapshot.fleet.device_throttled)
    fleet = replace(snapshot.fleet, node_ready=ready, device_healthy=healthy, device_throttled=cool)
    return replace(snapshot, fleet=fleet)


def _with_quota(snapshot: Snapshot, tenant: str, missing: Mapping[str, int]) -> Snapshot:
    """Return the snapshot with a tenant's nominal quota raised."""
    changed = []
    for node in snapshot.tenants:
        quotas = dict(node.quotas)
        if node.slug == tenant:
            for flavor, milli in missing.items():
                line = quotas.get(flavor, QuotaLine(0))
                quotas[flavor] = replace(line, nominal=line.nominal + milli)
        changed.append(replace(node, quotas=quotas))
    return replace(snapshot, tenants=tuple(changed))


def _size_of(job: JobSpec, remedy: Remedy) -> tuple[bool, bool, float, str]:
    """Return how large a change is: what starts it now and is in the user's hands comes first.

    Where an amount is made smaller, the part of it that is given up counts.
    """
    given_up = 0.0
    for name, value in remedy.params.items():
        asked = _asked(job).get(name)
        if asked and isinstance(value, int | float):
            given_up = max(given_up, 1.0 - value / asked)
    waits = not remedy.params.get("starts_now")
    return waits, remedy.code in OF_OTHERS, given_up, remedy.code


def _asked(job: JobSpec) -> Mapping[str, float]:
    shape = job.shape
    return {
        "devices": shape.devices,
        "gpu_milli": shape.gpu_milli,
        "gpu_memory_mib": shape.gpu_memory_mib,
        "cpu_milli": shape.cpu_milli,
        "memory_mib": shape.memory_mib,
        "replicas": job.replicas_min,
        "time_limit_s": job.time_limit_s,
        "min_throughput": job.min_throughput,
    }


# -- changes of the request ------------------------------------------------------------------


def _smallest_changes(session: Session, job: JobSpec, works: Works) -> Iterator[Remedy]:
    """Give, of each kind of change, the smallest that works, and whether it starts the job now."""
    for remedy, changed in _candidates(session, job, works):
        yield replace(remedy, params={**remedy.params, "starts_now": starts(session, changed)})


def _candidates(session: Session, job: JobSpec, works: Works) -> Iterator[tuple[Remedy, JobSpec]]:
    for choices in (_other_flavors(session, job), _lower_speeds(session, job)):
        tried = ((one, _changed(job, one.code, one.params)) for one in choices)
        yield from islice((pair for pair in tried if works(pair[1])), 1)
    if not job.preemptible:
        changed = replace(job, preemptible=True)
        if works(changed):
            yield Remedy("preemptible"), changed
    for remedy in _softer(job):
        changed = _changed(job, remedy.code, remedy.params)
        if works(changed):
            yield remedy, changed
    for amount in _amounts(job):
        most = _most_that_works(amount, works)
        if most:
            yield Remedy(amount.code, {amount.name: most}), amount.changed(most)


def _other_flavors(session: Session, job: JobSpec) -> list[Remedy]:
    """Return the flavors that a job did not name, those first which are as fast as its first one.

    Order of criteria: by how much the job's throughput is another one, then name. Where the cluster
    has none that was named, as fast as the fastest.
    """
    devices, allowed = job.shape.devices, session.allowed(job)
    if not devices or not job.flavors:
        return []
    wanted = session.kinds.throughput(job, allowed[0]) if allowed else 1.0

    def order(name: str) -> tuple[float, str]:
        return abs(session.kinds.throughput(job, session.flavor_of[name]) - wanted), name

    others = (
        name
        for name in session.flavor_of
        if may_be_given(name, (), devices) and not may_be_given(name, job.flavors, devices)
    )
    return [Remedy("other_flavor", {"flavor": name}) for name in sorted(others, key=order)]


def _lower_speeds(session: Session, job: JobSpec) -> list[Remedy]:
    """Return the throughputs below the least that a job asks for which a flavor has, best first.

    Rounded down to two digits, as people type them.
    """
    shape, kinds = job.shape, session.kinds
    if not shape.devices or not job.min_throughput:
        return []
    found = {
        rounded_down(kinds.throughput(job, flavor))
        for name, flavor in session.flavor_of.items()
        if may_be_given(name, job.flavors, shape.devices)
    }
    slower = sorted((speed for speed in found if speed < job.min_throughput), reverse=True)
    return [Remedy("lower_min_throughput", {"min_throughput": speed}) for speed in slower]


def rounded_down(amount: float) -> float:
    """Return an amount of 0 or more with its first two digits that are not zeros, never more."""
    if amount <= 0:
        return 0.0
    digits = 1 - math.floor(math.log10(amount))
    near = round(amount, digits)
    return near if near <= amount else round(near - 10.0**-digits, digits)


def _softer(job: JobSpec) -> Iterator[Remedy]:
    """Give what the job could wish instead of what it insists on."""
    if job.topology and job.topology.required:
        yield Remedy("prefer_topology", {"topology": job.topology.level.value})
    if job.placement_wish == ONE_PER_NODE:
        yield Remedy("share_nodes")
    if job.anti_affinity:
        yield Remedy("drop_anti_affinity")


def _amounts(job: JobSpec) -> Iterator[_Amount]:
    """Give what the job could ask less of."""
    shape = job.shape

    def shaped(name: str) -> Callable[[int], JobSpec]:
        return lambda n: replace(job, shape=replace(shape, **{name: n}))

    yield _Amount("fewer_devices", "devices", shape.devices, 1, shaped("devices"))
    if shape.devices == 1:
        share = shaped("gpu_milli")
        yield _Amount("smaller_share", "gpu_milli", shape.gpu_milli, SHARE_STEP_MILLI, share)
    if shape.gpu_memory_mib and shape.gpu_milli < WHOLE_MILLI:
        memory = shaped("gpu_memory_mib")
        asked = shape.gpu_memory_mib
        yield _Amount("less_gpu_memory", "gpu_memory_mib", asked, MEMORY_STEP_MIB, memory)
    yield _Amount(
        "fewer_replicas",
        "replicas",
        job.replicas_min,
        1,
        lambda n: replace(job, replicas_min=n, replicas_max=n),
    )
    yield _Amount("less_cpu", "cpu_milli", shape.cpu_milli, CORE_MILLI, shaped("cpu_milli"))
    memory = shaped("memory_mib")
    yield _Amount("less_memory", "memory_mib", shape.memory_mib, MEMORY_STEP_MIB, memory)


def _most_that_works(amount: _Amount, works: Works) -> int:
    """Return the largest smaller amount that works, 0 if none does."""
    low, high = 1, max(0, amount.asked - 1) // amount.step  # in steps
    if high < low or not works(amount.changed(amount.step)):
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if works(amount.changed(middle * amount.step)):
            low = middle
        else:
            high = middle - 1
    return low * amount.step


def _shorter(session: Session, job: JobSpec) -> list[Remedy]:
    """Return the longest time limit with which the job would slip in before a reservation."""
    times = session.profile.times
    low, high = 0, session.profile.until(session.now_s + job.time_limit_s)  # low fit, high do not
    while high - low > 1:
        middle = (low + high) // 2
        if session.fit_now(job, rows=middle):
            low = middle
        else:
            high = middle
    limit_s = times[low] - session.now_s - LASTING_S
    if limit_s < LEAST_TIME_LIMIT_S:
        return []
    if not starts(session, replace(job, time_limit_s=limit_s)):
        return []
    return [Remedy("shorter_time_limit", {"time_limit_s": limit_s, "starts_now": True})]


# -- changes of others -----------------------------------------------------------------------


def _more_quota_now(session: Session, job: JobSpec) -> list[Remedy]:
    """Return the quota that is missing for a start now, if quota is all that is missing.

    Of the flavors with room the one that a reason would name (`explain.least_missing`).
    """
    end_s = session.now_s + job.time_limit_s + LASTING_S
    rows, least = session.window(end_s), job.replicas_min

    def lacks_quota_only(flavor: int) -> bool:
        named = (charge.flavor for charge in session.charges(job, flavor, least))
        return (
            all(session.tree.may_use(job.tenant, name) for name in named)
            and session.allowance.by_power(job, flavor, 0, rows) >= least
            and session.room_now(job, flavor, rows, end_s) >= least
        )

    roomy = [flavor for flavor in session.allowed(job) if lacks_quota_only(flavor)]
    short = least_missing(session, job, rows, roomy)
    if not short:
        return []
    missing = {charge.flavor: charge.amount - left for charge, left in short}
    return [Remedy("ask_for_quota", {"missing_milli": missing, "starts_now": True})]


def _more_quota_ever(session: Session, job: JobSpec) -> list[Remedy]:
    """Return the quota without which the job can never run, on the flavor that needs least."""
    wanted = []
    for flavor in session.allowed(job):
        powered = session.power.ever(job, flavor)
        if powered and session.empty_room(job, flavor) >= job.replicas_min:
            missing = {
                charge.flavor: charge.amount - most
                for charge in session.charges(job, flavor, job.replicas_min)
                if (most := session.allowance.most(job, charge.flavor)) < charge.amount
            }
            wanted.append((sum(missing.values()), sorted(missing.items())))
    if not wanted:
        return []
    return [Remedy("ask_for_quota", {"missing_milli": dict(min(wanted)[1]), "starts_now": False})]


def _toleration(session: Session, job: JobSpec) -> list[Remedy]:
    """Return taints that let the job run some day when tolerated, none of them needless."""

    def tolerant(taints: frozenset[str]) -> JobSpec:
        return replace(job, tolerations=job.tolerations | taints)

    taints = needed_taints(session, job, lambda some: refusal(session, tolerant(some)) is None)
    if not taints:
        return []
    starts_now = starts(session, tolerant(taints))
    return [
        Remedy("ask_admin_for_toleration", {"taints": sorted(taints), "starts_now": starts_now})
    ]
