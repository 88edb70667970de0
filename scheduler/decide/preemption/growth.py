"""Lets elastic jobs grow into room that nobody else could use.

A resize begins a job anew from its last checkpoint, so it must be worth it. A job grows only where

- it is preemptible, has fewer replicas than it may have, and was not told anything yet;
- it has run for `PreemptionPolicy.min_runtime_s` since its last start or resize, so that it is
  disturbed no more often than it could be by others;
- no job waits that could use that very node, with whatever devices or none, or the quota or the
  watts that the growth would take, nor backs off until some time before its own is up. Those of its
  own tenant count always; those of others where their quota would do if all jobs that may grow gave
  back what they hold: else not these are in their way. A node that is too small for a waiting job
  is not kept for it; what is planned for it elsewhere is held on the profile;
- places and quota are there until its time limit, whatever is reserved for others;
- it gains more than it loses: replicas added, times the time that is left, against the replicas it
  has, times the time since its last checkpoint.

It is shrunk again before anybody is evicted. What it borrows so its owner can have back at once,
where owners may reclaim. Without quotas nobody is an owner: there it keeps what it has to its end,
but for who may evict it by priority.

Source: KAI docs/elastic (min and max pods); torchrun --nnodes=MIN:MAX (all workers restart).
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from scheduler.core.plan import Resize
from scheduler.core.resources import ONE_PER_NODE
from scheduler.core.snapshot import BoolArray, JobSpec, RunningJob
from scheduler.decide.fairness import FairShares
from scheduler.decide.holdings import by_limit
from scheduler.decide.preemption.contested import Contested
from scheduler.decide.session import Session

MOST_GROWN = 8
"""So many jobs grow in one cycle."""


def grow(
    session: Session,
    shares: FairShares,
    waiting: Sequence[JobSpec],
    backing_off: Sequence[JobSpec],
    told: Collection[str],
) -> list[Resize]:
    """Return what grows now, and take the room for it.

    Order of criteria: higher priority first, then whose tenant holds less of its fair share, then
    who started first, then uid.

    Args:
        session: the state after every job had its turn.
        shares: the tenants' standing.
        waiting: the jobs that were not started, in the order of the queue.
        backing_off: the jobs that wait for another try, any order.
        told: uids of jobs that are evicted or shrunk in this cycle.
    """
    candidates = [job for job in session.snapshot.running if may_grow(job)]
    if not candidates:
        return []
    later = sorted(backing_off, key=lambda job: (job.not_before_s, job.submitted_s, job.uid))
    contested = Contested(session, candidates, [*waiting, *later])
    flavors = tuple(sorted(session.flavor_of))

    def order(job: RunningJob) -> tuple[int, float, float, str]:
        standing = shares.factor(job.spec.tenant, flavors)
        return -job.spec.priority, -standing, job.started_s, job.spec.uid

    found: list[Resize] = []
    for job in sorted(candidates, key=order):
        if len(found) == MOST_GROWN:
            break
        due = grows_from_s(session, job) <= session.now_s
        if due and job.spec.uid not in told:
            found += _grown(session, job, contested.left_by(job))
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


def _grown(session: Session, job: RunningJob, free: BoolArray) -> list[Resize]:
    """Return the resize of one job to as many replicas as there is room for, [] if not worth it.

    Args:
        session: the state after every job had its turn.
        job: that may grow.
        free: (nodes,) for which nobody waits.
    """
    spec, now_s, has = job.spec, session.now_s, len(job.replicas)
    left_s = by_limit(now_s)(spec, job.started_s) - session.notice_s
    known = spec.tenant in session.tree.index
    over = left_s <= 0 or job.started_s + spec.time_limit_s <= now_s
    if over or not known or not free.any():
        return []
    more = replace(
        spec,
        replicas_min=max(1, spec.replicas_min - has),
        replicas_max=spec.replicas_max - has,
        time_limit_s=job.started_s + spec.time_limit_s - now_s,
    )
    fit = session.fit_now(more, [session.held.flavor_held(job)])
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
