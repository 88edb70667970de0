"""How long jobs really run: quantiles of what was observed, given how long they have run already.

A job that has outlived most of those observed is compared with the survivors only, so that many
short jobs say nothing of one that is not short.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence

OVERRUN_SLACK_S = 60.0
"""A job past its time limit is expected to end this soon (Slurm's bf_resolution)."""

LEAST_SURVIVORS = 10
"""Fewer say nothing of a 90th percentile: then the time limit is taken at its word."""


def runtime_s(limit_s: float, ran_s: float, ratios: Sequence[float], quantile: float) -> float:
    """Return how long a job runs in all, in seconds; never longer than its time limit.

    Args:
        limit_s: its time limit, > 0.
        ran_s: how long it has run already.
        ratios: runtimes of jobs that ended as parts of their time limits, ascending, each in 0..1.
        quantile: in 0..1; the smallest runtime that so many of the survivors do not pass.
    """
    first = bisect_right(ratios, ran_s / limit_s)
    survivors = len(ratios) - first
    if survivors < LEAST_SURVIVORS:
        return limit_s
    return limit_s * ratios[first + max(math.ceil(quantile * survivors), 1) - 1]


def end_s(
    started_s: float,
    limit_s: float,
    *,
    now_s: float,
    ratios: Sequence[float] = (),
    quantile: float = 1.0,
) -> float:
    """Return when a job that runs frees its placement, epoch seconds after `now_s`.

    Without ratios its time limit is taken at its word.
    """
    end = started_s + runtime_s(limit_s, now_s - started_s, ratios, quantile)
    return end if end > now_s else now_s + OVERRUN_SLACK_S
