"""Lets elastic jobs grow into room that nobody else could use.

A resize begins a job anew from its last checkpoint, so it must be worth it. A job grows only where

- it is preemptible, has fewer replicas than it may have, and was not told anything yet;
- it has run for `PreemptionPolicy.min_runtime_s` since its last start or resize, so that it is
  disturbed no more often than it could be by others;
- no job waits that could use the same flavor (for a job without devices: any flavor) on that very
  node, or the quota or the watts that the growth would take. Those of its own tenant count always;
  those of others where their quota would do if all jobs that may grow gave back what they hold:
  else not these are in their way. A node that is too small for a waiting job is not kept for it;
  what is planned for it elsewhere is held on the profile;
- places and quota are there until its time limit, whatever is reserved for others;
- it gains more than it loses: replicas added, times the time that is left, against the replicas it
  has, times the time since its last checkpoint.

What it borrows so can be reclaimed, at once, and it is shrunk again before anybody is evicted.

Source: KAI docs/elastic (min and max pods); torchrun --nnodes=MIN:MAX (all workers restart).
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from scheduler.core.plan import Resize
from scheduler.core.resources import ONE_PER_NODE
from scheduler.core.snapshot import BoolArray, JobSpec, RunningJob
from scheduler.decide.fairness import FairShares
from scheduler.decide.feasibility import ANY, Demand
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
    contested = _contested(session, candidates, waiting) if candidates else {}
    flavors = sorted(session.flavor_of)

    def order(job: RunningJob) -> tuple[int, float, float, str]:
        standing = shares.factor(job.spec.tenant, flavors)
        return -job.spec.priority, -standing, job.started_s, job.spec.uid

    found: list[Resize] = []
    for job in sorted(candidates, key=order):
        if len(found) == MOST_GROWN:
            break
        flavor = session.held.flavor_held(job)
        free = np.ones(session.layout.nodes, dtype=np.bool_)
        for (tenant, wanted), nodes in contested.items():
            if tenant in {ALL, job.spec.tenant} and flavor in {wanted, ANY}:
                free &= ~nodes
        due = grows_from_s(session, job) <= session.now_s
        if free.any() and due and job.spec.uid not in told:
            found += _grown(session, job, flavor, free)
    return found


def _contested(
    session: Session, growers: Sequence[RunningJob], waiting: Sequence[JobSpec]
) -> dict[tuple[str, int], BoolArray]:
    """Return whose jobs must not take which flavor where, as somebody waits for it.

    By tenant and flavor, (nodes,) each: the nodes that the waiting jobs could use; all where growth
    could use up their quota. Watts are for all alike: under a cap all nodes, too.
    """
    left, most = cache(_without(session, growers).available), _most_growth(session, growers)
    nodes = cache(lambda demand: _usable(session, demand))
    found = dict[tuple[str, int], BoolArray]()
    for job in waiting:
        for flavor in session.allowed(job):
            charges = session.charges(job, flavor, job.replicas_min)
            may = all(left(job.tenant, name) >= amount for name, amount in charges)
            keys = {(job.tenant, flavor), (ALL if may else job.tenant, flavor)}
            if all(key in found and found[key].all() for key in keys):
                continue
            where = np.ones(session.layout.nodes, dtype=np.bool_)
            if session.power.cap_uw is None and all(
                session.allowance.left(job, name, 0, 1) - most.get(name, 0) >= amount
                for name, amount in charges
            ):
                where = nodes(session.demand(job, flavor, whatever_health=True))
            for key in keys:
                found[key] = found[key] | where if key in found else where
    return found


def _without(session: Session, growers: Sequence[RunningJob]) -> QuotaLedger:
    """Return what tenants would hold if all jobs that may grow gave back what they hold."""
    ledger = QuotaLedger(session.tree)
    ledger.usage[0] = session.profile.ledger.usage[0]
    for held in map(session.hold_of, growers):
        for name, amount in held.charges:
            ledger.add(held.tenant, Charge(name, -amount))
    return ledger


def _most_growth(session: Session, growers: Sequence[RunningJob]) -> Counter[str]:
    """Return flavor -> milli-units that all growth together could take."""
    most = Counter[str]()
    for job in growers:
        flavor, more = session.held.flavor_held(job), job.spec.replicas_max - len(job.replicas)
        for name, amount in session.charges(job.spec, flavor, more):
            most[name] += amount
    return most


def _usable(session: Session, demand: Demand) -> BoolArray:
    """Return (nodes,) whether each could ever hold a replica."""
    usable: BoolArray = session.filter(demand).count(session.layout.capacity) > 0
    return usable


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


def _grown(session: Session, job: RunningJob, flavor: int, free: BoolArray) -> list[Resize]:
    """Return the resize of one job to as many replicas as there is room for, [] if not worth it.

    Args:
        session: the state after every job had its turn.
        job: that may grow.
        flavor: that it holds.
        free: (nodes,) for which nobody waits.
    """
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
    if fit is None:
        return []
    counts = fit.site.counts * free
    replicas = min(fit.replicas, int(counts.sum()))
    if replicas < more.replicas_min or replicas * left_s <= has * _unsaved_s(job, now_s):
        return []
    fit = fit._replace(replicas=replicas, site=fit.site._replace(counts=counts))
    added, _ = session.take(more, fit)
    return [Resize(spec.uid, (*job.replicas, *added))]


def _unsaved_s(job: RunningJob, now_s: float) -> float:
    """Return for how long a job has saved nothing."""
    safe_s = job.started_s if job.checkpointed_s is None else job.checkpointed_s
    return max(0.0, now_s - max(safe_s, job.started_s))
