"""What past expectations were worth: waits are corrected by the ratio of what was to what was said.

A plan knows only the jobs that are there. Others arrive and go first, runtimes are not those of the
past, and a gang waits for the last of many to end. All of that shows in how long jobs waited that
were told to expect a wait like this one. A quantile of that ratio, taken among the likes of a job,
makes an expectation that holds as often as it says, whatever the plan gets wrong.

Jobs that still wait count as far as they have got (right-censored): else only the lucky ones of
the last hours would be counted.

Source: Romano, Patterson, Candes, "Conformalized Quantile Regression" (NeurIPS 2019), here with
ratios in place of differences and weights for likeness; Kaplan and Meier (1958) for the censored.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.core.snapshot import BoolArray, Expectation
from scheduler.decide.scoring import FloatArray

LEAST_RECORDS = 20
"""Fewer say nothing: then waits are expected as planned."""

SMALLEST_S = 60.0
"""Added to both waits of a ratio: errors below the resolution of a plan are none."""

LIKENESS = 0.7
"""A record of a wait longer or shorter by this much (a factor of 2) counts e times less."""

UNLIKE = 0.2
"""What a gang's wait says of a job with one replica, and the other way round."""


class _Ratios(NamedTuple):
    """What was planned and what was, ascending by the ratio of the two.

    Attributes:
        ratios: (records,) waited / planned, both with `SMALLEST_S` added.
        planned: (records,) logarithm of the planned wait.
        started: (records,) the wait is over.
        gang: (records,) it was a gang's.
    """

    ratios: FloatArray
    planned: FloatArray
    started: BoolArray
    gang: BoolArray


class Calibration:
    """Corrects planned waits.

    Args:
        records: past expectations, any order.
    """

    def __init__(self, records: Sequence[Expectation]) -> None:
        self._known = len(records) >= LEAST_RECORDS
        self._middle = _ratios(records, [one.p50_s for one in records])
        self._late = _ratios(records, [one.p90_s for one in records])

    def expected(self, p50_s: float, p90_s: float, *, gang: bool) -> tuple[float, float]:
        """Return the waits to expect, in seconds, the first not longer than the second.

        Args:
            p50_s: wait as planned with runtimes at the median, >= 0.
            p90_s: wait as planned with runtimes at the 90th percentile, >= 0.
            gang: the job has more than one replica.
        """
        if not self._known:
            return p50_s, max(p50_s, p90_s)
        middle_s = _corrected(self._middle, p50_s, 0.5, gang=gang)
        late_s = _corrected(self._late, p90_s, 0.9, gang=gang)
        return middle_s, max(middle_s, late_s)


def _ratios(records: Sequence[Expectation], planned_s: Sequence[float]) -> _Ratios:
    planned = np.array(planned_s, dtype=np.float64).clip(0.0) + SMALLEST_S
    waited = np.array([one.waited_s for one in records], dtype=np.float64).clip(0.0) + SMALLEST_S
    started = np.array([one.started for one in records], dtype=np.bool_)
    gang = np.array([one.gang for one in records], dtype=np.bool_)
    ratios = waited / planned
    order = np.lexsort((gang, planned, ~started, ratios))
    return _Ratios(ratios[order], np.log(planned)[order], started[order], gang[order])


def _corrected(known: _Ratios, planned_s: float, quantile: float, *, gang: bool) -> float:
    apart = np.abs(known.planned - np.log(planned_s + SMALLEST_S)) / LIKENESS
    weights = np.exp(-apart) * np.where(known.gang == gang, 1.0, UNLIKE)
    ratio = _survivors_quantile(known, weights, quantile)
    return max(0.0, ratio * (planned_s + SMALLEST_S) - SMALLEST_S)


def _survivors_quantile(known: _Ratios, weights: FloatArray, quantile: float) -> float:
    """Return the smallest ratio that no more than 1 - quantile of the weight outlives.

    The product-limit estimate: of those still waiting at a ratio, the part that starts there.
    """
    at_risk = np.cumsum(weights[::-1])[::-1]
    begun = np.where(known.started, weights / np.maximum(at_risk, 1e-300), 0.0)
    outlive = np.cumprod(1.0 - begun)
    at = int(np.searchsorted(-outlive, quantile - 1.0 - 1e-12))
    return float(known.ratios[min(at, len(known.ratios) - 1)])
