"""How long a plan stays true while nothing but time moves, and whether nothing else did.

A blocked job stays blocked until something ends or a rule that looks at the clock says otherwise:
its window only gets longer. So a plan that starts nobody is good until the first such moment, and
the next cycle need not think it all over again.

Source: Slurm plans anew every bf_interval at a resolution of bf_resolution (sched_config).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from scheduler.core.plan import FAILED, Plan
from scheduler.core.policy import Policy, PriorityWeights
from scheduler.core.reasons import Pending
from scheduler.core.snapshot import JobSpec, Snapshot
from scheduler.decide.holdings import by_limit
from scheduler.decide.preemption import asks_from_s
from scheduler.decide.preemption.growth import grows_from_s, may_grow
from scheduler.decide.remedies import LASTING_S
from scheduler.decide.session import Session, allows_any

DECAY_TOLERANCE = 1e-3
"""Decayed usage may move by this part of itself: 60 s of a half-life of a day are less."""

MOVING = frozenset({"now_s", "usage_decayed", "expectations"})
"""Parts of a snapshot that move all the time; expectations change expected starts only."""


class Decided(NamedTuple):
    """A decision, and what it was made on."""

    snapshot: Snapshot
    policy: Policy
    plan: Plan


def carried_over(last: Decided, snapshot: Snapshot, policy: Policy, *, now_s: float) -> Plan | None:
    """Return the last plan as of now; None where anything may have changed.

    Starts and reasons are those that a new decision would find, and what would help still does.
    Expected starts, and the ages in the parts of a priority, are at most `LASTING_S` old.
    """
    plan = last.plan
    if plan.starts or plan.preempts or plan.resizes:
        return None
    if not plan.now_s <= now_s < plan.lasts_until_s or plan.solver.status in FAILED:
        return None
    if policy != last.policy or not same_world(last.snapshot, snapshot):
        return None
    pending = tuple(_not_before(now_s, one) for one in plan.pending)
    return replace(plan, now_s=now_s, pending=pending, carried_from_s=plan.now_s)


def _not_before(now_s: float, pending: Pending) -> Pending:
    """Return an answer that expects no start in the past."""
    p50_s, p90_s = pending.expected_start_p50_s, pending.expected_start_p90_s
    if p50_s is None or p90_s is None or p50_s >= now_s:
        return pending
    return replace(pending, expected_start_p50_s=now_s, expected_start_p90_s=max(p90_s, now_s))


def remembered(last: Decided | None, snapshot: Snapshot, policy: Policy, plan: Plan) -> Decided:
    """Return what to keep of a decision for the next one: of a plan carried over, its origin.

    So whatever moves little by little is measured from there.
    """
    return last if last and plan.carried_from_s else Decided(snapshot, policy, plan)


def same_world(a: Snapshot, b: Snapshot) -> bool:
    """Return whether two snapshots differ in the time only, and in what decays with it."""
    still = (f.name for f in fields(Snapshot) if f.name not in MOVING)
    return all(_same(getattr(a, name), getattr(b, name)) for name in still) and _alike(
        a.usage_decayed, b.usage_decayed
    )


def _same(a: object, b: object) -> bool:
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(np.asarray(a), np.asarray(b))
    if is_dataclass(a) and type(a) is type(b):
        return all(_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return a == b


def _alike(a: Mapping[str, float], b: Mapping[str, float]) -> bool:
    return a.keys() == b.keys() and all(
        math.isclose(a[name], b[name], rel_tol=DECAY_TOLERANCE, abs_tol=1e-9) for name in a
    )


def lasts_until_s(session: Session, pending: Sequence[Pending]) -> float:
    """Return until when a plan that starts nobody stays true, epoch seconds; now = not at all.

    Args:
        session: the state after every job had its turn.
        pending: all answers; those in the queue first, in its order.
    """
    now_s, jobs = session.now_s, {job.uid: job for job in session.snapshot.pending}
    if _any_overrun(session):
        return now_s  # its end moves along with the time
    moments = [now_s + LASTING_S]
    moments += session.held.ends_s(by_limit(now_s))
    moments += [*session.calendar.begins_s, *session.calendar.ends_s, session.grid.lasts_until_s]
    moments += _of_jobs(session)
    moments += _of_order(session.policy.order, jobs, pending, now_s)
    return min(moment for moment in moments if moment >= now_s)


def _any_overrun(session: Session) -> bool:
    running, now_s = session.snapshot.running, session.now_s
    late = any(job.ending_s is not None and job.ending_s <= now_s for job in running)
    return late or any(one.started_s + one.job.time_limit_s <= now_s for one in session.held.active)


def _of_jobs(session: Session) -> Iterator[float]:
    """Give the moments at which a rule about one job looks at the clock, those to come only."""
    policy, after_s = session.policy.preemption, session.policy.patience_s
    age_max_s = session.policy.order.age_max_s
    evicts = allows_any(session.policy)
    for job in session.snapshot.pending:
        soon = [job.not_before_s, *(job.submitted_s + s for s in (0.0, age_max_s, after_s))]
        if evicts:
            soon.append(asks_from_s(job, policy))
        yield from (moment for moment in soon if moment > session.now_s)
    for held in session.snapshot.running if evicts and session.snapshot.pending else ():
        spared_s = held.started_s + policy.min_runtime_s
        if held.spec.preemptible and spared_s > session.now_s:
            yield spared_s
    for held in filter(may_grow, session.snapshot.running):
        if (due_s := grows_from_s(session, held)) > session.now_s:
            yield due_s


def _of_order(
    weights: PriorityWeights, jobs: Mapping[str, JobSpec], pending: Sequence[Pending], now_s: float
) -> Iterator[float]:
    """Give the moments at which a job that still ages overtakes one that is fully aged."""
    queue = [one for one in pending if one.position]
    for ahead, behind in pairwise(queue):
        lead = sum(ahead.priority_parts.values()) - sum(behind.priority_parts.values())
        faster = _pace(weights, jobs[behind.uid], now_s) - _pace(weights, jobs[ahead.uid], now_s)
        if lead >= 0 and faster > 0:
            yield now_s + lead / faster


def _pace(weights: PriorityWeights, job: JobSpec, now_s: float) -> float:
    """Return by how much a job's priority rises in a second."""
    ages = weights.age_max_s > 0 and 0 <= now_s - job.submitted_s < weights.age_max_s
    return weights.age / weights.age_max_s if ages else 0.0
