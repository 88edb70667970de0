"""When a waiting job is expected to start: the plan made again with runtimes as observed.

The planned start takes every time limit at its word, so it is the latest. The expected starts come
from two more profiles on which each job ends at the median, or at the 90th percentile, of what
those observed needed that ran as long as it has (`runtimes`). That all those ahead are late at once
is unlikely: the k-th waits for about k ends, and errors of runtimes that are correlated by r cancel
out to a part sqrt(1/k + r (1 - 1/k)) of what they would be together (the design effect of Kish,
"Survey Sampling", 1965). By that part the distance of P90 from P50 is shortened.

Source: Slurm sched/backfill for the plan; Kueue issue 13159 (place by rate of admission) for pace;
Smith, Foster, Taylor, "Using Run-Time Predictions to Estimate Queue Wait Times" (JSSPP 1999) for
waits from runtimes.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import JobSpec
from scheduler.decide.calibration import Calibration
from scheduler.decide.later import fit_later
from scheduler.decide.runtimes import end_s, runtime_s
from scheduler.decide.session import Session

P50, P90 = 0.5, 0.9

ALIKE = 0.1
"""Correlation of the errors of runtimes: jobs that run at the same time are often of one kind."""


FAR = 0.1
"""This part of the starts planned is not looked at where the pace of the others is asked."""

_Flavors: TypeAlias = frozenset[int]
"""Flavors that a job may use."""

EVERYBODY: _Flavors = frozenset()
"""Stands for all jobs; one that needs no device may use `feasibility.ANY`."""


class Waiting(NamedTuple):
    """A job that waits: its answer, and its planned start where one was found."""

    job: JobSpec
    pending: Pending
    planned_s: float | None


def with_expected_starts(session: Session, waiting: Sequence[Waiting]) -> tuple[Pending, ...]:
    """Return the pending jobs with their expected starts, never before now and P50 <= P90.

    A job beyond the planned depth gets the pace of those planned (`_by_pace`). Either is then
    corrected by what past expectations were worth (`calibration`). Nobody is expected before its
    back-off ends.

    Args:
        session: the state after every job had its turn.
        waiting: the blocked jobs, in queue order, then those that back off.
    """
    expected = _expected(session, waiting)
    calibration = Calibration(session.snapshot.expectations)
    paced = _by_pace(session, [one for one in waiting if one.pending.position], expected)
    answered = []
    for one in waiting:
        uid = one.pending.uid
        basis, at = ("plan", expected[uid]) if uid in expected else ("rate", paced.get(uid))
        answered.append(_told(session.now_s, calibration, one, at, basis) if at else one.pending)
    return tuple(answered)


def _by_pace(
    session: Session, queue: Sequence[Waiting], expected: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """Return uid -> (P50, P90) start of the jobs behind the last that is planned.

    The k-th of those that may use the same flavors takes k times as long as they need for a start;
    where none of them is planned, the k-th of all takes k times as long as all need.
    """
    last = max((k for k, one in enumerate(queue) if one.pending.uid in expected), default=math.inf)
    paces, places, found = _paces(session, queue, expected), Counter[_Flavors](), {}
    for k, one in enumerate(queue):
        alike = frozenset(session.allowed(one.job))
        places.update((alike, EVERYBODY))
        if k > last and one.pending.code is not WaitReason.NODES_UNAVAILABLE:
            of = alike if alike in paces else EVERYBODY
            middle, late = (session.now_s + places[of] * each_s for each_s in paces[of])
            found[one.pending.uid] = (middle, late)
    return found


def _paces(
    session: Session, queue: Sequence[Waiting], expected: Mapping[str, tuple[float, float]]
) -> dict[_Flavors, tuple[float, float]]:
    """Return by flavors the seconds that a start takes at the median and at P90."""
    starts: dict[_Flavors, list[tuple[float, float]]] = {}
    for one in queue:
        if at := expected.get(one.pending.uid):
            for flavors in (frozenset(session.allowed(one.job)), EVERYBODY):
                starts.setdefault(flavors, []).append(at)
    paces = {}
    for flavors, some in starts.items():
        middle, late = zip(*some, strict=True)
        paces[flavors] = (_pace(session.now_s, middle), _pace(session.now_s, late))
    return paces


def _pace(now_s: float, starts_s: Sequence[float]) -> float:
    """Return the seconds a start takes: with n expected within h seconds, h / n.

    The last tenth is left out, and one at least where there is another: a gang that waits for half
    of a site to drain, or for a device that is held for a month, says nothing of how fast the
    others start that wait with it.
    """
    n = max(1, len(starts_s) - max(1, math.ceil(FAR * len(starts_s))))
    return (sorted(starts_s)[n - 1] - now_s) / n


def _told(
    now_s: float,
    calibration: Calibration,
    one: Waiting,
    planned: tuple[float, float],
    basis: str,
) -> Pending:
    """Return the answer with the planned start, corrected."""
    least_s = max(0.0, one.job.not_before_s - now_s)
    waits = [max(at_s - now_s, least_s) for at_s in planned]
    said = calibration.expected(waits[0], waits[1], gang=one.job.replicas_min > 1)
    return replace(
        one.pending,
        evidence={**one.pending.evidence, "expected_start_basis": basis},
        expected_start_p50_s=now_s + max(said[0], least_s),
        expected_start_p90_s=now_s + max(said[1], least_s),
        planned_p50_s=now_s + waits[0],
        planned_p90_s=now_s + waits[1],
    )


def _expected(session: Session, waiting: Sequence[Waiting]) -> dict[str, tuple[float, float]]:
    """Return uid -> (P50, P90) start of the jobs that have a planned start."""
    planned = {one.job.uid: one.planned_s for one in waiting if one.planned_s is not None}
    jobs = [one.job for one in waiting if one.job.uid in planned]
    middle, late = (_replanned(session, jobs, quantile) for quantile in (P50, P90))
    expected = {}
    for place, (uid, latest_s) in enumerate(planned.items(), start=1):
        p50_s = min(latest_s, middle.get(uid, latest_s))
        p90_s = min(latest_s, late.get(uid, latest_s))
        part = math.sqrt(1 / place + ALIKE * (1 - 1 / place))
        expected[uid] = (p50_s, p50_s + part * max(0.0, p90_s - p50_s))
    return expected


def planned_after_back_off(session: Session, job: JobSpec) -> float | None:
    """Return when a job that backs off could start by all time limits; None = never seen.

    Nothing is reserved for it: it takes its place in the queue when its back-off ends.
    """
    if session.fit_now(job):
        return max(session.now_s, job.not_before_s)
    fit = fit_later(session, job)
    return max(fit.start_s, job.not_before_s) if fit else None


def _replanned(session: Session, jobs: Sequence[JobSpec], quantile: float) -> Mapping[str, float]:
    """Return uid -> start if every job ends at a quantile of its runtime; {} if none is known."""
    ratios = session.snapshot.runtime_ratios
    if not ratios or not jobs:
        return {}
    again = session.with_ends(
        lambda job, started_s: end_s(
            started_s, job.time_limit_s, now_s=session.now_s, ratios=ratios, quantile=quantile
        )
    )
    starts = {}
    for job in jobs:
        needed = replace(job, time_limit_s=runtime_s(job.time_limit_s, 0.0, ratios, quantile))
        if job.not_before_s > session.now_s and again.fit_now(needed):
            starts[job.uid] = job.not_before_s
            continue
        fit = fit_later(again, needed)
        if fit:
            again.take(needed, fit)
            starts[job.uid] = max(fit.start_s, job.not_before_s)
    return starts
