"""What would help a waiting job: the smallest changes that were tried and work.

Each change is tried on the session at the job's own turn, without changing the session, so it is
true of this job at this place in the queue, and stays so for a while if nothing else changes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from scheduler.core.reasons import Remedy, WaitReason
from scheduler.core.snapshot import JobSpec, QuotaLine, Snapshot
from scheduler.decide.admission import Refusal, refusal
from scheduler.decide.explain import Blocked, unavailable_evidence
from scheduler.decide.session import Session

LEAST_TIME_LIMIT_S = 60.0
"""Nobody is advised to ask for less time than this."""

LASTING_S = 60.0
"""What would help has to help for so long: people need time to act (Slurm's bf_resolution)."""

Change: TypeAlias = tuple[Remedy, JobSpec]


def for_blocked(
    session: Session, job: JobSpec, why: Blocked, *, contested: bool
) -> tuple[Remedy, ...]:
    """Return the changes that would start the job at this moment of the cycle.

    Args:
        session: the state at the job's turn.
        job: the job.
        why: why it is blocked.
        contested: somebody ahead would take more quota, too, so that more of it need not reach
            this job.
    """
    helps = list(_first_that_work(session, job, must_start=True))
    helps += _shorter(session, job)
    if why.code is WaitReason.WAITING_FOR_QUOTA:
        helps += _more_quota_now(session, job, contested=contested)
    if why.code is WaitReason.NODES_UNAVAILABLE:
        helps.append(Remedy("ask_admin_for_nodes", unavailable_evidence(session)))
    return tuple(helps)


def for_refused(session: Session, job: JobSpec, why: Refusal) -> tuple[Remedy, ...]:
    """Return the changes that would make a job possible that can never run as it is."""
    if why.code is WaitReason.EXCEEDS_MAX_QUOTA:
        quota = _more_quota_ever(session, job)
        return (*_first_that_work(session, job, must_start=False), *quota)
    if why.code in {WaitReason.NO_MATCHING_FLAVOR, WaitReason.NEVER_FITS}:
        changes = tuple(_first_that_work(session, job, must_start=False))
        return (*changes, *_toleration(session, job))
    return ()


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
    match code:
        case "other_flavor":
            return replace(job, flavors=(params["flavor"],))
        case "fewer_replicas":
            least = params["replicas"]
            return replace(job, replicas_min=least, replicas_max=least)
        case "shorter_time_limit":
            return replace(job, time_limit_s=params["time_limit_s"])
        case "ask_admin_for_toleration":
            return replace(job, tolerations=job.tolerations | set(params["taints"]))
    amounts = {name: value for name, value in params.items() if name != "starts_now"}
    return replace(job, shape=replace(job.shape, **amounts))


def _with_all_nodes(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with every node ready and every device healthy."""
    ready = np.ones(len(snapshot.fleet.node_names), dtype=np.bool_)
    healthy = np.ones(len(snapshot.fleet.device_uids), dtype=np.bool_)
    fleet = replace(snapshot.fleet, node_ready=ready, device_healthy=healthy)
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


def _first_that_work(session: Session, job: JobSpec, *, must_start: bool) -> Iterator[Remedy]:
    """Give, of each kind of change, the first that works."""
    for kind in (_other_flavor, _fewer_devices, _fewer_replicas, _less_cpu, _less_memory):
        for remedy, changed in kind(session, job):
            starts_now = starts(session, changed)
            if starts_now or (not must_start and refusal(session, changed) is None):
                yield Remedy(remedy.code, {**remedy.params, "starts_now": starts_now})
                break


def _other_flavor(session: Session, job: JobSpec) -> Iterator[Change]:
    if job.shape.devices and job.flavors:
        for name in sorted(session.flavor_of.keys() - set(job.flavors)):
            yield Remedy("other_flavor", {"flavor": name}), replace(job, flavors=(name,))


def _fewer_devices(session: Session, job: JobSpec) -> Iterator[Change]:
    del session
    for devices in _smaller(job.shape.devices):
        shape = replace(job.shape, devices=devices)
        yield Remedy("fewer_devices", {"devices": devices}), replace(job, shape=shape)


def _fewer_replicas(session: Session, job: JobSpec) -> Iterator[Change]:
    del session
    for replicas in _smaller(job.replicas_min):
        changed = replace(job, replicas_min=replicas, replicas_max=replicas)
        yield Remedy("fewer_replicas", {"replicas": replicas}), changed


def _less_cpu(session: Session, job: JobSpec) -> Iterator[Change]:
    free = int(session.profile.row(0).cpu.max(initial=0))
    for cpu_milli in _less(job.shape.cpu_milli, free, least=1000):
        shape = replace(job.shape, cpu_milli=cpu_milli)
        yield Remedy("less_cpu", {"cpu_milli": cpu_milli}), replace(job, shape=shape)


def _less_memory(session: Session, job: JobSpec) -> Iterator[Change]:
    free = int(session.profile.row(0).memory.max(initial=0))
    for memory_mib in _less(job.shape.memory_mib, free, least=256):
        shape = replace(job.shape, memory_mib=memory_mib)
        yield Remedy("less_memory", {"memory_mib": memory_mib}), replace(job, shape=shape)


def _smaller(amount: int) -> Sequence[int]:
    """Return a handful of smaller amounts, largest first: one less, then powers of two."""
    powers = [1 << k for k in range(min(amount, 64).bit_length()) if 1 << k < amount]
    return sorted({*powers, *([amount - 1] if amount > 1 else [])}, reverse=True)


def _less(asked: int, free: int, *, least: int) -> Sequence[int]:
    """Return a handful of smaller amounts, largest first: what is free, a half, a quarter."""
    amounts = {free, asked // 2, asked // 4}
    return sorted((amount for amount in amounts if least <= amount < asked), reverse=True)


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


def _more_quota_now(session: Session, job: JobSpec, *, contested: bool) -> list[Remedy]:
    """Return the quota that is missing for a start now, if quota is all that is missing."""
    end_s = session.now_s + job.time_limit_s + LASTING_S
    rows = session.window(end_s)
    at = session.profile.quota_rows(0, rows)
    for flavor in session.allowed(job):
        if session.room_now(job, flavor, rows, end_s) < job.replicas_min:
            continue
        missing = {
            charge.flavor: charge.amount - available
            for charge in session.charges(job, flavor, job.replicas_min)
            if (available := session.profile.ledger.available(job.tenant, charge.flavor, at))
            < charge.amount
        }
        if all(session.tree.may_use(job.tenant, name) for name in missing):
            params = {"missing_milli": missing, "starts_now": not contested}
            return [Remedy("ask_for_quota", params)]
    return []


def _more_quota_ever(session: Session, job: JobSpec) -> list[Remedy]:
    """Return the quota without which the job can never run, on the flavor that needs least."""
    wanted = []
    for flavor in session.allowed(job):
        if session.empty_room(job, flavor) >= job.replicas_min:
            missing = {
                charge.flavor: charge.amount - most
                for charge in session.charges(job, flavor, job.replicas_min)
                if (most := session.tree.potential(job.tenant, charge.flavor)) < charge.amount
            }
            wanted.append((sum(missing.values()), sorted(missing.items())))
    if not wanted:
        return []
    return [Remedy("ask_for_quota", {"missing_milli": dict(min(wanted)[1]), "starts_now": False})]


def _toleration(session: Session, job: JobSpec) -> list[Remedy]:
    """Return the taints that keep a job off every node that could hold it."""
    taints = frozenset[str]().union(*session.layout.taints) - job.tolerations
    changed = replace(job, tolerations=job.tolerations | taints)
    if not taints or refusal(session, changed) is not None:
        return []
    starts_now = starts(session, changed)
    return [
        Remedy("ask_admin_for_toleration", {"taints": sorted(taints), "starts_now": starts_now})
    ]
