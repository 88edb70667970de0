"""What past expectations were worth: waits are corrected by the ratio of what was to what was said.

A plan knows only the jobs that are there. Others arrive and go first, runtimes are not those of the
past, and a gang waits for the last of many to end. All of that shows in how long jobs waited that
were told to expect a wait like this one. A quantile of that ratio, taken among the likes of a job,
makes an expectation that holds as often as it says, whatever the plan gets wrong.

Jobs that still wait count as far as they have got (right-censored): else only the lucky ones of
the last hours would be counted. Records add to a belief in the plan that weighs as much as
`BELIEF` of them: without it a burst of arrivals, of which the first few have just started and all
others wait since a minute, would seem to say that everybody starts within minutes.

Errors come in bursts, too: where more of the last jobs than one in ten waited longer than the P90
that they were told, a higher quantile is asked for, and a lower one where fewer did.

Source: Romano, Patterson, Candes, "Conformalized Quantile Regression" (NeurIPS 2019), here with
ratios in place of differences and weights for likeness; Kaplan and Meier (1958) for the censored;
Susarla and Van Ryzin (1976) for a belief beside them; Brevik, Nurmi, Wolski, "Predicting Bounds on
Queuing Delay" (QBETS, PPoPP 2006) for quantiles of past waits in place of means; Gibbs, Candes,
"Adaptive Conformal Inference Under Distribution Shift" (NeurIPS 2021) for the quantile that moves.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.core.snapshot import BoolArray, Expectation
from scheduler.decide.scoring import FloatArray

BELIEF = 5.0
"""So many records the plan itself is worth."""

GAIN = 0.5
MOST_LEVEL = 0.99
"""The quantile moves by this part of the error of the coverage, and is never above that ..."""

BELIEVED_COUNT = 10.0
"""... beside so many expectations that are believed to have held in nine of ten cases."""

_MIDDLE = (0.4, 0.6, 0.7, 0.85, 1.0, 1.15, 1.4, 1.7, 2.2, 3.0)
_LATE = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.3)
"""Ratios as believed, a tenth of the weight each: 1 is the median, and the 90th percentile."""

SMALLEST_S = 60.0
"""Added to both waits of a ratio: errors below the resolution of a plan are none."""

LIKENESS = 2.0
"""A record of a wait longer or shorter by this much (a factor of e^2 = 7) counts e times less."""

UNLIKE = 0.5
"""What a gang's wait says of a job with one replica, and the other way round."""


class _Ratios(NamedTuple):
    """What was planned and what was, ascending by the ratio of the two.

    Attributes:
        ratios: (records,) waited / planned, both with `SMALLEST_S` added.
        planned: (records,) logarithm of the planned wait.
        started: (records,) the wait is over.
        gang: (records,) it was a gang's.
        believed: (records,) weight of what is believed; 0 = it was observed, and the weight is
            its likeness.
    """

    ratios: FloatArray
    planned: FloatArray
    started: BoolArray
    gang: BoolArray
    believed: FloatArray


class Calibration:
    """Corrects planned waits.

    Args:
        records: past expectations, any order.
    """

    def __init__(self, records: Sequence[Expectation]) -> None:
        self._middle = _ratios(records, [one.p50_s for one in records], _MIDDLE)
        self._late = _ratios(records, [one.p90_s for one in records], _LATE)
        self._late_level = _level(records)

    def expected(self, p50_s: float, p90_s: float, *, gang: bool) -> tuple[float, float]:
        """Return the waits to expect, in seconds, the first not longer than the second.

        Without records they are those planned.

        Args:
            p50_s: wait as planned with runtimes at the median, >= 0.
            p90_s: wait as planned with runtimes at the 90th percentile, >= 0.
            gang: the job has more than one replica.
        """
        middle_s = _corrected(self._middle, p50_s, 0.5, gang=gang)
        late_s = _corrected(self._late, p90_s, self._late_level, gang=gang)
        return middle_s, max(middle_s, late_s)


def _level(records: Sequence[Expectation]) -> float:
    """Return the quantile that held in nine of ten cases, as far as the last ones tell.

    Who still waits is counted from when it has waited longer than it was told.
    """
    late = [one.waited_s > one.told_p90_s for one in records]
    known = sum(miss or one.started for miss, one in zip(late, records, strict=True))
    missed = (sum(late) + BELIEVED_COUNT * 0.1) / (known + BELIEVED_COUNT)
    return min(MOST_LEVEL, 0.9 + GAIN * (missed - 0.1))


def _ratios(
    records: Sequence[Expectation], planned_s: Sequence[float], believed: Sequence[float]
) -> _Ratios:
    planned = np.array(planned_s, dtype=np.float64).clip(0.0) + SMALLEST_S
    waited = np.array([one.waited_s for one in records], dtype=np.float64).clip(0.0) + SMALLEST_S
    started = np.array([one.started for one in records], dtype=np.bool_)
    gang = np.array([one.gang for one in records], dtype=np.bool_)
    order = np.lexsort((gang, planned, ~started, waited / planned))
    ratios, started = (waited / planned)[order], started[order]
    at = np.searchsorted(ratios, believed)
    return _Ratios(
        ratios=np.insert(ratios, at, believed),
        planned=np.insert(np.log(planned)[order], at, 0.0),
        started=np.insert(started, at, True),
        gang=np.insert(gang[order], at, False),
        believed=np.insert(np.zeros(len(ratios)), at, BELIEF / len(believed)),
    )


def _corrected(known: _Ratios, planned_s: float, quantile: float, *, gang: bool) -> float:
    apart = np.abs(known.planned - np.log(planned_s + SMALLEST_S)) / LIKENESS
    alike = np.exp(-apart) * np.where(known.gang == gang, 1.0, UNLIKE)
    weights = np.where(known.believed > 0, known.believed, alike)
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
