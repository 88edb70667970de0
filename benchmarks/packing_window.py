"""Places the jobs of a window of the queue jointly: the one that costs the least goes first.

The price of a job is the potential that its best place destroys, per device that it takes. As
nothing leaves, a job that fits nowhere now never will: it is refused at once.

Source: our own; docs/guides/packing.md says what it gave.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.packing_placer import Kept, best_node, place, refresh
from scheduler.decide.scores.choice import NEVER, TIE, Scoring, score_node
from scheduler.decide.scores.compiled import compiled
from scheduler.decide.scores.state import WHOLE, IntArray


class Window(NamedTuple):
    """The waiting jobs of a stream.

    Attributes:
        arrivals: (jobs,) index of each job's shape.
        placed: (jobs,) the node of each job, -1 = refused or waiting.
        jobs: (span,) numbers of the jobs, oldest first.
        length: (1,) how many of them there are.
        best: (shapes,) best node of each shape when it was last looked at, -1 = none.
        patience: a job that so many have arrived after goes first, whatever it costs.
    """

    arrivals: IntArray
    placed: IntArray
    jobs: IntArray
    length: IntArray
    best: IntArray
    patience: int


def empty_window(arrivals: IntArray, shapes: int, *, span: int, patience: int) -> Window:
    """Return an empty window for that many waiting jobs of a stream."""
    return Window(
        arrivals,
        np.full(len(arrivals), -1, dtype=np.int64),
        np.zeros(span, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.full(shapes, -1, dtype=np.int64),
        patience,
    )


@compiled
def arrive(scoring: Scoring, kept: Kept, window: Window, job: int) -> None:
    """Let a job into the window; when the window is full, place jobs until it is not.

    Args:
        scoring: its nodes are changed in place.
        kept: brought up by `value_all`, changed in place.
        window: changed in place.
        job: number of the job that arrives.
    """
    window.jobs[window.length[0]] = job
    window.length[0] += 1
    while window.length[0] == len(window.jobs):
        _place_one(scoring, kept, window, job)


@compiled
def drain(scoring: Scoring, kept: Kept, window: Window) -> None:
    """Place all that still wait, as nobody arrives any more; arguments as in `arrive`."""
    while window.length[0] > 0:
        _place_one(scoring, kept, window, len(window.arrivals) - 1)


@compiled
def _place_one(scoring: Scoring, kept: Kept, window: Window, now: int) -> None:
    """Place the cheapest job of the window, the oldest if it has waited too long."""
    chosen, cheapest, kept_jobs = -1, NEVER, 0
    for k in range(window.length[0]):
        job = window.jobs[k]
        s = window.arrivals[job]
        _look(scoring, kept, s, window)
        if window.best[s] < 0:
            continue  # refused for good
        window.jobs[kept_jobs] = job
        gained = _per_device(scoring, s, kept.score[s, window.best[s]])
        if now - job >= window.patience:
            gained = np.inf
        if chosen < 0 or gained > cheapest + TIE:
            chosen, cheapest = kept_jobs, gained
        kept_jobs += 1
    window.length[0] = kept_jobs
    if chosen < 0:
        return
    job = window.jobs[chosen]
    s = window.arrivals[job]
    place(scoring, kept, window.best[s], s)
    window.placed[job] = window.best[s]
    window.jobs[chosen : kept_jobs - 1] = window.jobs[chosen + 1 : kept_jobs]
    window.length[0] -= 1


@compiled
def _per_device(scoring: Scoring, s: int, gained: float) -> float:
    """Return the score per device; a job without devices counts as the part that its CPU is."""
    milli = float(scoring.shapes.devices[s] * scoring.shapes.milli[s])
    if milli == 0:
        milli = max(scoring.shapes.cpu[s] * WHOLE / scoring.scale.cpu_each, 1.0)
    return gained * WHOLE / milli


@compiled
def _look(scoring: Scoring, kept: Kept, s: int, window: Window) -> None:
    """Bring the best node of a shape up to date; most changes of other nodes leave it as it is."""
    end, seen, best = kept.length[0], kept.seen[s], window.best[s]
    if seen < 0 or end - seen >= len(kept.log):
        refresh(scoring, kept, s)
        window.best[s] = best_node(kept.score[s])
        return
    again = False
    for entry in range(seen, end):
        n = kept.log[entry % len(kept.log)]
        kept.score[s, n], kept.device[s, n] = score_node(scoring, n, s, kept.value[n])
        again = again or n == best or kept.score[s, n] >= kept.score[s, best] - TIE
    kept.seen[s] = end
    if again and best >= 0:
        window.best[s] = best_node(kept.score[s])
