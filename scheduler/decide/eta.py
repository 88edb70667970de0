"""When a waiting job is expected to start: the plan made again with runtimes as observed.

The planned start takes every time limit at its word, so it is the latest. The expected starts come
from two more profiles on which each job ends at the median, or at the 90th percentile, of what
those observed needed that ran as long as it has (`runtimes`).

Source: Slurm sched/backfill for the plan; reference/schedulers.md 2.5 for interval and rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import JobSpec
from scheduler.decide.calibration import Calibration
from scheduler.decide.runtimes import end_s, runtime_s
from scheduler.decide.session import Session

P50, P90 = 0.5, 0.9


class Waiting(NamedTuple):
    """A blocked job: its answer, and its planned start where one was found."""

    job: JobSpec
    pending: Pending
    planned_s: float | None


def with_expected_starts(session: Session, waiting: Sequence[Waiting]) -> tuple[Pending, ...]:
    """Return the pending jobs with their expected starts, never before now and P50 <= P90.

    A job beyond the planned depth gets the pace of those planned: with n expected within h
    seconds, the k-th waiting job is expected after k * h / n. Either is then corrected by what
    past expectations were worth (`calibration`).

    Args:
        session: the state after every job had its turn.
        waiting: the blocked jobs, in queue order.
    """
    expected = _expected(session, waiting)
    if not expected:
        return tuple(one.pending for one in waiting)
    paces = [
        (max(starts) - session.now_s) / len(expected)
        for starts in zip(*expected.values(), strict=True)
    ]
    last = max(k for k, one in enumerate(waiting) if one.pending.uid in expected)
    calibration = Calibration(session.snapshot.expectations)
    answered = []
    for k, (job, pending, _) in enumerate(waiting):
        basis, at = "plan", expected.get(pending.uid)
        if at is None and k > last and pending.code is not WaitReason.NODES_UNAVAILABLE:
            basis = "rate"
            at = (session.now_s + (k + 1) * paces[0], session.now_s + (k + 1) * paces[1])
        if at is None:
            answered.append(pending)
            continue
        waits = [at_s - session.now_s for at_s in at]
        said = calibration.expected(waits[0], waits[1], gang=job.replicas_min > 1)
        answered.append(_timed(pending, at, said, basis, session.now_s))
    return tuple(answered)


def _timed(
    pending: Pending,
    planned: tuple[float, float],
    waits: tuple[float, float],
    basis: str,
    now_s: float,
) -> Pending:
    return replace(
        pending,
        evidence={**pending.evidence, "expected_start_basis": basis},
        expected_start_p50_s=now_s + waits[0],
        expected_start_p90_s=now_s + waits[1],
        planned_p50_s=planned[0],
        planned_p90_s=planned[1],
    )


def _expected(session: Session, waiting: Sequence[Waiting]) -> dict[str, tuple[float, float]]:
    """Return uid -> (P50, P90) start of the jobs that have a planned start."""
    planned = {one.job.uid: one.planned_s for one in waiting if one.planned_s is not None}
    jobs = [one.job for one in waiting if one.job.uid in planned]
    middle, late = (_replanned(session, jobs, quantile) for quantile in (P50, P90))
    expected = {}
    for uid, latest_s in planned.items():
        p50_s = min(latest_s, middle.get(uid, latest_s))
        p90_s = min(latest_s, late.get(uid, latest_s))
        expected[uid] = (p50_s, max(p50_s, p90_s))
    return expected


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
        fit = again.fit_later(needed)
        if fit:
            again.take(needed, fit)
            starts[job.uid] = fit.start_s
    return starts
