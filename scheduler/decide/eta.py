"""When a waiting job is expected to start, from planned starts and their observed error."""

import math
from collections.abc import Sequence
from dataclasses import replace

from scheduler.core.reasons import Pending, WaitReason


def with_expected_starts(
    waiting: Sequence[tuple[Pending, float | None]],
    start_error: tuple[float, float],
    *,
    now_s: float,
) -> tuple[Pending, ...]:
    """Return the pending jobs with their expected starts.

    A planned start counts as it is. A job beyond the planned depth gets the pace of those planned:
    with n planned within h seconds, the k-th waiting job is expected after k * h / n.

    Args:
        waiting: (pending, planned start or None), in queue order.
        start_error: (P50, P90) factors on the planned wait.
        now_s: epoch seconds.
    """
    planned = [start_s for _, start_s in waiting if start_s is not None]
    pace_s = (max(planned) - now_s) / len(planned) if planned else math.nan
    last = max((k for k, (_, start_s) in enumerate(waiting) if start_s is not None), default=-1)
    answered = []
    for k, (pending, start_s) in enumerate(waiting):
        basis, at_s = "plan", start_s
        if start_s is None and k > last >= 0:
            basis, at_s = "rate", now_s + (k + 1) * pace_s
        answered.append(_timed(pending, at_s, basis, start_error, now_s))
    return tuple(answered)


def _timed(
    pending: Pending, at_s: float | None, basis: str, error: tuple[float, float], now_s: float
) -> Pending:
    guessed = basis == "rate"
    if at_s is None or (guessed and pending.code is WaitReason.NODES_UNAVAILABLE):
        return pending
    p50, p90 = (now_s + (at_s - now_s) * factor for factor in error)
    return replace(
        pending,
        evidence={**pending.evidence, "expected_start_basis": basis},
        expected_start_p50_s=p50,
        expected_start_p90_s=max(p50, p90),
    )
