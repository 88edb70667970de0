"""Lets elastic jobs grow into room that nobody else could use.

A resize begins a job anew from its last checkpoint, so it must be worth it. A job grows only where

- it is preemptible, has fewer replicas than it may have, and was not told anything yet;
- it has run for `PreemptionPolicy.min_runtime_s` since its last start or resize, so that it is
  disturbed no more often than it could be by others;
- no job waits that could use the same flavor (for a job without devices: any flavor). Those of its
  own tenant count always; those of others where their quota would do if all jobs that may grow gave
  back what they hold: else not these are in their way;
- places and quota are there until its time limit, whatever is reserved for others;
- it gains more than it loses: replicas added, times the time that is left, against the replicas it
  has, times the time since its last checkpoint.

What it borrows so can be reclaimed, at once, and it is shrunk again before anybody is evicted.

Source: KAI docs/elastic (min and max pods); torchrun --nnodes=MIN:MAX (all workers restart).
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache

from scheduler.core.plan import Resize
from scheduler.core.resources import ONE_PER_NODE
from scheduler.core.snapshot import JobSpec, RunningJob
from scheduler.decide.fairness import FairShares
from scheduler.decide.feasibility import ANY
from scheduler.decide.holdings import by_limit
from scheduler.decide.quota import Charge, QuotaLedger
from scheduler.decide.session import Session

ALL = ""
"""Stands for all tenants; none has that slug."""

MOST_GROWN = 8
"""So many jobs grow in one cycle."""


def grow(
    session: Session, shares: FairShares, waiting: Sequence[JobSpec], told: Collection[str]
) -> list[Resize]:
    """Return what grows now, and take the room for it.

    Order of criteria: higher priority first, then whose tenant holds less of its fair share, then
    who started first, then uid.

    Args:
        session: the state after every job had its turn.
        shares: the tenants' standing.
        waiting: the jobs that were not started.
        told: uids of jobs that are evicted or shrunk in this cycle.
    """
    candidates = [job for job in session.snapshot.running if may_grow(job)]
    contested = _contested(session, candidates, waiting) if candidates else set()
    flavors = sorted(session.flavor_of)

    def order(job: RunningJob) -> tuple[int, float, float, str]:
        standing = shares.factor(job.spec.tenant, flavors)
        return -job.spec.priority, -standing, job.started_s, job.spec.uid

    found: list[Resize] = []
    for job in sorted(candidates, key=order):
        if len(found) == MOST_GROWN:
            break
        flavor = session.held.flavor_held(job)
        free = all(
            tenant not in {ALL, job.spec.tenant} or flavor not in {wanted, ANY}
            for tenant, wanted in contested
        )
        due = grows_from_s(session, job) <= session.now_s
        if free and due and job.spec.uid not in told:
            found += _grown(session, job, flavor)
    return found


def _contested(
    session: Session, growers: Sequence[RunningJob], waiting: Sequence[JobSpec]
) -> set[tuple[str, int]]:
    """Return whose jobs must not take which flavor, as somebody waits for it: tenant and flavor.

    Watts are for all alike: who waits for those waits for what a growth would take.
    """
    ledger = QuotaLedger(session.tree)
    ledger.usage[0] = session.profile.ledger.usage[0]
    for held in map(session.hold_of, growers):
        for name, amount in held.charges:
            ledger.add(held.tenant, Charge(name, -amount))
    left = cache(ledger.available)
    found = set[tuple[str, int]]()
    for job in waiting:
        for flavor in session.allowed(job):
            charges = session.charges(job, flavor, job.replicas_min)
            may = all(left(job.tenant, name) >= amount for name, amount in charges)
            found |= {(job.tenant, flavor), (ALL if may else job.tenant, flavor)}
    return found


def may_grow(job: RunningJob) -> bool:
    """Return whether a job could have more replicas than it has.

    One whose replicas must stand to each other or to other jobs in some way keeps those it has.
    """
    spec = job.spec
    stands = spec.placement_wish == ONE_PER_NODE or spec.anti_affinity
    if stands or (spec.topology and spec.topology.required):
        return False
    elastic = 0 < len(job.replicas) < spec.replicas_max
    return elastic and spec.preemptible and job.ending_s is None


def grows_from_s(session: Session, job: RunningJob) -> float:
    """Return from when on a job may grow, epoch seconds."""
    return job.started_s + session.policy.preemption.min_runtime_s


def _grown(session: Session, job: RunningJob, flavor: int) -> list[Resize]:
    """Return the resize of one job to as many replicas as there is room for, [] if not worth it."""
    spec, now_s, has = job.spec, session.now_s, len(job.replicas)
    left_s = by_limit(now_s)(spec, job.started_s) - session.notice_s
    known = spec.tenant in session.tree.index
    if left_s <= 0 or job.started_s + spec.time_limit_s <= now_s or not known:
        return []
    more = replace(
        spec,
        replicas_min=max(1, spec.replicas_min - has),
        replicas_max=spec.replicas_max - has,
        time_limit_s=job.started_s + spec.time_limit_s - now_s,
    )
    fit = session.fit_now(more, [flavor])
    if fit is None or fit.replicas * left_s <= has * _unsaved_s(job, now_s):
        return []
    added, _ = session.take(more, fit)
    return [Resize(spec.uid, (*job.replicas, *added))]


def _unsaved_s(job: RunningJob, now_s: float) -> float:
    """Return for how long a job has saved nothing."""
    safe_s = job.started_s if job.checkpointed_s is None else job.checkpointed_s
    return max(0.0, now_s - max(safe_s, job.started_s))
