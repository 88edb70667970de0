"""At which moments rows of the time profile begin: exactly where they are few, else rounded.

What ends soon is told apart to seconds, what ends in a month to days: where there are many
moments time is cut into cells, the longer the farther they are away, each a power of two of seconds
that begins at a multiple of itself. A running job is taken to end with its cell; nodes to open with
the last reservation that ends in it, and to close with the first that begins: nothing is ever free
that is not.

As time goes by cells are only ever cut in two. So whoever was let in ahead of a waiting job since
it ends by the time that was planned for that one, ends by that time in all cycles to come. Where
moments become too many only later, what was planned moves to the end of its cell, once.

The distance is measured from the last full minute, so that the cells stand still in between: a
plan then stays true until the next one (`lasting`).

Source: Slurm sched_config, bf_resolution (60 s by default): there one resolution for all of the
window; one that grows with the wait needs few rows for a month. The cells are our own.
"""

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.decide.calendar import Calendar

EXACT_ENDS, EXACT_TOLD, EXACT_OPENING, EXACT_CLOSING = 64, 16, 24, 12
"""So many moments are rows of their own: ends of running jobs, those of jobs that were told to go,
ends and begins of reservations. Where there are more they are rounded.
"""

NEAR_S, NEAR_CELLS, FAR_CELLS = 2.0**13, 8, 4
"""A wait below `NEAR_S` is cut into so many cells per doubling, and one above into so many."""

FARTHEST_S = 2.0**26
"""Moments that are farther away, two years, are not told apart."""

STILL_S = 60.0
"""The cells are the same for so long, in seconds since the epoch."""

SHORTEST_WAIT_S = 512.0
"""A shorter wait is cut no finer than this one."""


class Grid(NamedTuple):
    """Moments after now at which rows begin.

    Attributes:
        times_s: ascending, epoch seconds; none of the ends is later than the last.
        lasts_until_s: from then on they may be others; infinite where none is rounded.
    """

    times_s: list[float]
    lasts_until_s: float


def grid_of(
    ends_s: Sequence[float], told_s: Collection[float], calendar: Calendar, *, now_s: float
) -> Grid:
    """Return the moments at which rows begin, whatever is planned.

    Args:
        ends_s: when each hold ends, epoch seconds after `now_s`; any order.
        told_s: those of the ends at which something is left early.
        calendar: reservations and maintenance.
        now_s: epoch seconds.
    """
    others = [end_s for end_s in ends_s if end_s not in told_s]
    running = rounded(others, EXACT_ENDS, now_s=now_s)
    told = rounded(told_s, EXACT_TOLD, now_s=now_s)
    opens = _few(calendar.ends_s, EXACT_OPENING, now_s=now_s)
    closes = _few(calendar.begins_s, EXACT_CLOSING, now_s=now_s)
    times = {*running.values(), *told.values()}
    times.update({cell_s: end_s for end_s, cell_s in opens.items()}.values())  # the last of each
    times.update({cell_s: begin_s for begin_s, cell_s in reversed(closes.items())}.values())
    is_exact = all(a == b for cells in (running, told, opens, closes) for a, b in cells.items())
    until_s = math.inf if is_exact else _still_since_s(now_s) + STILL_S
    return Grid(sorted(times), until_s)


def _few(times_s: Collection[float], most: int, *, now_s: float) -> dict[float, float]:
    """Return moment -> end of its cell, as `rounded`, in so long cells that these are few, too.

    What is known beforehand need not stay in its cell.
    """
    found, longer = rounded(times_s, most, now_s=now_s), 1
    while len(set(found.values())) > most:
        longer *= 2
        found = rounded(times_s, most, now_s=now_s, longer=longer)
    return found


def rounded(
    times_s: Collection[float], exact: int, *, now_s: float, longer: int = 1
) -> dict[float, float]:
    """Return moment -> end of its cell, ascending; itself where they are few.

    Args:
        times_s: epoch seconds after `now_s`, any order, repeated or not.
        exact: up to so many moments are few.
        now_s: epoch seconds.
        longer: so many times as long cells as else; a power of two.
    """
    ascending = sorted(set(times_s))
    if len(ascending) <= exact:
        return {time_s: time_s for time_s in ascending}
    cells_s = _cells_s(_still_since_s(now_s), longer)
    far_s = max(ascending[-1], cells_s[-1])
    at = np.searchsorted(cells_s, ascending).tolist()
    return dict(zip(ascending, map([*cells_s, far_s].__getitem__, at), strict=True))


def _cells_s(from_s: float, longer: int) -> list[float]:
    """Return the ends of all cells up to the farthest that are told apart, ascending.

    Each is the longest that may begin where the one before it ends; since they are shorter the
    nearer they are, an end of a cell remains one until it is past.
    """
    shortest_s = longer * SHORTEST_WAIT_S / NEAR_CELLS
    at_s, ends_s = from_s - from_s % shortest_s, list[float]()
    while (wait_s := at_s - from_s) < FARTHEST_S:
        doubling_s = 2.0 ** math.floor(math.log2(max(wait_s, SHORTEST_WAIT_S)))
        lasts_s = longer * doubling_s / (NEAR_CELLS if wait_s < NEAR_S else FAR_CELLS)
        while at_s % lasts_s:
            lasts_s /= 2
        at_s += lasts_s
        ends_s.append(at_s)
    return ends_s


def _still_since_s(now_s: float) -> float:
    return now_s - now_s % STILL_S
