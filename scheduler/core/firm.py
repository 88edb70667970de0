"""The part of the verifier that looks at jobs that may not be evicted; no code of the engine.

Such a job is firm: it lives within what its tenant owns itself, with the other firm ones of it.
"""

from collections.abc import Iterator, Mapping, Sequence

from scheduler.core.errors import require
from scheduler.core.held import Held, charge, options_of
from scheduler.core.plan import Plan
from scheduler.core.snapshot import JobSpec, Snapshot


def check_firm(snapshot: Snapshot, jobs: Mapping[str, JobSpec], plan: Plan) -> None:
    """Check that no firm job starts beyond what its tenant owns.

    Args:
        snapshot: the frozen world.
        jobs: uid -> job, of all that wait.
        plan: what is to be carried out.

    Raises:
        InvalidPlanError: names the tenant and the flavor.
    """
    firm, added = Held(), Held()
    for job in snapshot.running:
        if not job.spec.preemptible:
            charge(firm, job.spec, snapshot.fleet.flavor_held(job.replicas), len(job.replicas))
    for start in plan.starts:
        if not jobs[start.uid].preemptible:
            charge(added, jobs[start.uid], start.flavor, len(start.replicas))
    firm.update(added)
    for slug, name in _beyond(snapshot, firm, added):
        require(False, f"{slug!r} keeps from eviction more {name!r} than it owns")


def room_options(
    snapshot: Snapshot, plan: Plan, takers: Sequence[JobSpec], room_s: float
) -> dict[str, list[str]]:
    """Return uid -> the flavors on which room may be made for each beneficiary, "" for none.

    A firm one needs a flavor of which its tenant owns enough for it beside what its other firm jobs
    hold then: those that run on or start now, and beneficiaries that have no choice. Nobody can be
    made to give that.

    Args:
        snapshot: the frozen world.
        plan: whose starts count.
        takers: the beneficiaries, all of which are to start at that time.
        room_s: when those told to go are gone, epoch seconds.
    """
    options = {taker.uid: options_of(snapshot, taker) for taker in takers}
    firm = [taker for taker in takers if not taker.preemptible]
    certain = _certain(snapshot, plan, room_s) if firm else Held()
    for taker in firm:
        others = Held(certain)
        for other in firm:
            if other.uid != taker.uid and len(options[other.uid]) == 1:
                charge(others, other, options[other.uid][0], other.replicas_min)
        options[taker.uid] = [
            flavor
            for flavor in options_of(snapshot, taker)
            if _is_owned(snapshot, taker, flavor, others)
        ]
    return options


def _certain(snapshot: Snapshot, plan: Plan, at_s: float) -> Held:
    """Return the least that firm jobs hold at a time: what runs or starts now and ends later."""
    held, jobs = Held(), {job.uid: job for job in snapshot.pending}
    for job in snapshot.running:
        stays = job.ending_s is None and job.started_s + job.spec.time_limit_s > at_s
        if stays and not job.spec.preemptible:
            charge(held, job.spec, snapshot.fleet.flavor_held(job.replicas), len(job.replicas))
    for start in plan.starts:
        spec = jobs[start.uid]
        if not spec.preemptible and plan.now_s + spec.time_limit_s > at_s:
            charge(held, spec, start.flavor, len(start.replicas))
    return held


def _is_owned(snapshot: Snapshot, job: JobSpec, flavor: str, others: Held) -> bool:
    """Return whether a firm job's tenant owns what it would hold on a flavor beside others."""
    added = Held()
    charge(added, job, flavor, job.replicas_min)
    return not any(_beyond(snapshot, others + added, added))


def _beyond(snapshot: Snapshot, held: Held, added: Held) -> Iterator[tuple[str, str]]:
    """Give (tenant, flavor) of what is added where more is held than the tenant owns itself."""
    limited = {name for tenant in snapshot.tenants for name in tenant.quotas}
    lines = {tenant.slug: tenant.quotas for tenant in snapshot.tenants}
    for (slug, name), amount in added.items():
        if amount and name in limited:
            owned = lines[slug][name].nominal if name in lines[slug] else 0
            if held[slug, name] > owned:
                yield slug, name
