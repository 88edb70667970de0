"""Figures of a simulation, worked out from what each job held and when."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.core.resources import CPU_FLAVOR
from scheduler.simulate.result import End, Result, Span

FloatArray: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Steps:
    """A function of time that changes in steps.

    Attributes:
        at_s: (steps,) epoch seconds, strictly ascending.
        value: (steps,) from each of these moments on; 0 before the first.
    """

    at_s: FloatArray
    value: FloatArray

    def at(self, times: FloatArray) -> FloatArray:
        """Return (times,) the value at each of some moments."""
        k = np.searchsorted(self.at_s, times, side="right")
        return np.concatenate(([0.0], self.value))[k]

    def integral(self, begin_s: float, end_s: float) -> float:
        """Return the integral over a window, in the value's unit times seconds."""
        inside = self.at_s[(self.at_s > begin_s) & (self.at_s < end_s)]
        edges = np.concatenate(([begin_s], inside, [end_s]))
        return float((self.at(edges[:-1]) * np.diff(edges)).sum())


@dataclass(frozen=True, slots=True)
class Totals:
    """Device-seconds from the begin to the end of a result; CPUs are left aside.

    Attributes:
        capacity_device_s: of healthy devices on nodes that may take work.
        allocated_device_s: held by jobs.
        utilised_device_s: held while work was done that did not have to be done again.
        lost_device_s: work that had to be done again, whenever that was.
        idle_while_waiting_device_s: neither held, while at least one job with devices waited
            (whether or not it would have fitted).
    """

    capacity_device_s: float
    allocated_device_s: float
    utilised_device_s: float
    lost_device_s: float
    idle_while_waiting_device_s: float


def totals(result: Result) -> Totals:
    """Return the sums of a simulation."""
    held, free = held_devices(result.spans), capacity_devices(result)
    begin_s, end_s = result.begin_s, result.end_s
    return Totals(
        capacity_device_s=free.integral(begin_s, end_s),
        allocated_device_s=held.integral(begin_s, end_s),
        utilised_device_s=math.fsum(
            span.kept_until_s(end_s) * span.device_milli / 1000 for span in result.spans
        ),
        lost_device_s=math.fsum(job.lost_device_s for job in result.jobs),
        idle_while_waiting_device_s=_idle_while_waiting(result, free, held),
    )


def capacity_devices(result: Result) -> Steps:
    """Return how many devices may be used, over time."""
    at_s = np.array([step.at_s for step in result.capacity])
    value = np.array(
        [
            sum(milli for flavor, milli in step.milli.items() if flavor != CPU_FLAVOR) / 1000
            for step in result.capacity
        ]
    )
    last = np.append(at_s[1:] > at_s[:-1], True)  # of several at one moment the last holds
    return Steps(at_s[last], value[last])


def held_devices(spans: Iterable[Span]) -> Steps:
    """Return how many devices some spans hold, over time."""
    held = [(s.start_s, s.end_s, s.device_milli / 1000) for s in spans if s.device_milli]
    return _steps(
        [(start_s, count) for start_s, _, count in held]
        + [(end_s, -count) for _, end_s, count in held]
    )


def waiting_jobs(result: Result) -> Steps:
    """Return how many jobs with devices wait, over time; jobs that never started count."""
    waits = [wait for wait in _waits(result) if wait.device_milli]
    return _steps([(wait.start_s, 1.0) for wait in waits] + [(wait.end_s, -1.0) for wait in waits])


def _idle_while_waiting(result: Result, capacity: Steps, held: Steps) -> float:
    waiting = waiting_jobs(result)
    at_s = np.unique(np.concatenate((capacity.at_s, held.at_s, waiting.at_s)))
    idle = np.maximum(capacity.at(at_s) - held.at(at_s), 0.0) * (waiting.at(at_s) > 0)
    return Steps(at_s, idle).integral(result.begin_s, result.end_s)


def demand_shares(
    result: Result, step_s: float
) -> tuple[FloatArray, tuple[str, ...], FloatArray, FloatArray]:
    """Return what each tenant held, and held or waited for, over time, as means over equal steps.

    Args:
        result: of a simulation.
        step_s: seconds of a step, > 0; the last step may reach beyond the end.

    Returns:
        (steps,) begin of each step, epoch seconds; the tenants, ascending; (steps, tenants) mean
        number of devices held in the step; the same of devices held or waited for.
    """
    tenants = tuple(sorted({job.tenant for job in result.jobs}))
    count = max(1, math.ceil((result.end_s - result.begin_s) / step_s - 1e-9))
    edges = result.begin_s + step_s * np.arange(count + 1, dtype=np.float64)
    held, asked = np.zeros((count, len(tenants))), np.zeros((count, len(tenants)))
    waits = _waits(result)
    for column, tenant in enumerate(tenants):
        spans = [span for span in result.spans if span.tenant == tenant]
        queued = [span for span in waits if span.tenant == tenant]
        held[:, column] = np.diff(_integrals(held_devices(spans), edges)) / step_s
        both = held_devices([*spans, *queued])
        asked[:, column] = np.diff(_integrals(both, edges)) / step_s
    return edges[:-1], tenants, held, asked


def _waits(result: Result) -> list[Span]:
    """Return the times in which jobs waited, as if they were spans.

    A job waits for what it then holds; who still waits at the end, for what it asks for at least.
    """
    since = {job.uid: job.submitted_s for job in result.jobs}
    waits = []
    for span in sorted(result.spans, key=lambda span: (span.start_s, span.uid)):
        begin_s = since[span.uid]
        if begin_s < span.start_s:
            waits.append(span._replace(start_s=begin_s, end_s=span.start_s))
        since[span.uid] = span.end_s
    for job in result.jobs:
        begin_s, end_s, milli = since[job.uid], result.end_s, job.device_milli
        if job.state is End.WAITING and begin_s < end_s:
            kept_s, final = 0.0, False
            waits.append(Span(job.uid, job.tenant, "", 0, 0, milli, begin_s, end_s, kept_s, final))
    return waits


def _integrals(steps: Steps, edges: FloatArray) -> FloatArray:
    """Return (edges,) the integral from the first step until each edge."""
    if not len(steps.at_s):
        return np.zeros(len(edges))
    passed = np.concatenate(([0.0], np.cumsum(steps.value[:-1] * np.diff(steps.at_s))))
    k = np.searchsorted(steps.at_s, edges, side="right") - 1
    inside = passed[k] + steps.value[k] * (edges - steps.at_s[k])
    return np.where(k >= 0, inside, 0.0)


def _steps(moves: Sequence[tuple[float, float]]) -> Steps:
    """Return the running sum of (moment, change), one step per moment."""
    if not moves:
        return Steps(np.zeros(0), np.zeros(0))
    at_s, change = (np.array(column, dtype=np.float64) for column in zip(*moves, strict=True))
    moments, where = np.unique(at_s, return_inverse=True)
    sums = np.bincount(where, weights=change, minlength=len(moments))
    values = np.round(np.cumsum(sums), 6).astype(np.float64)  # thousandths add up exactly
    return Steps(moments, values)
