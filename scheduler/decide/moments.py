"""At which moments rows of the time profile begin: exactly where they are few, else rounded.

What ends soon is told apart to the second, what ends in a month to a day or so: moments are grouped
by how far they are away, and a group lasts for the same part of that: about the smallest for which
the rows suffice. A running job is taken to end with the last of its group, and so are the nodes of
a reservation to open: neither is ever free before it is.

The distance is measured from the last full minute, so that the groups stand still in between: a
plan then stays true until the next one (`lasting`).

Source: Slurm sched_config, bf_resolution (60 s by default): there one resolution for all of the
window; a geometric one needs so few rows for a month that near ends need not be rounded.
"""

import bisect
import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from scheduler.decide.calendar import Calendar

RUNNING_ROWS = 32
"""So many rows at most begin with the ends of running jobs."""

TOLD_ROWS = 16
"""So many at most begin when jobs are gone that were told to go."""

OPENING_ROWS, CLOSING_ROWS = 24, 12
"""So many at most begin when reservations end, and when they begin."""

FINEST = 1 / 64
"""Where moments are rounded at all, those nearer to each other than this part of the wait are."""

COARSER = 1.25
"""By so much the part is raised for as long as there would be more groups than rows."""

STILL_S = 60.0
"""The groups are the same for so long, in seconds since the epoch."""


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
    running = grouped(others, RUNNING_ROWS, now_s=now_s)
    told = grouped(told_s, TOLD_ROWS, now_s=now_s)
    opening = grouped(calendar.ends_s, OPENING_ROWS, now_s=now_s)
    closing = grouped(calendar.begins_s, CLOSING_ROWS, now_s=now_s)
    times = {last for groups in (running, told, opening) for _, last in groups}
    times |= {first for first, _ in closing}  # who has to be gone by then, has to by the first
    is_exact = all(a == b for groups in (running, told, opening, closing) for a, b in groups)
    until_s = math.inf if is_exact else _still_since_s(now_s) + STILL_S
    return Grid(sorted(times), until_s)


def grouped(times_s: Collection[float], most: int, *, now_s: float) -> list[tuple[float, float]]:
    """Return (first, last) of groups of moments, ascending; each is its own where they are few.

    Args:
        times_s: epoch seconds after `now_s`, any order, repeated or not.
        most: so many groups at most, > 0.
        now_s: epoch seconds.
    """
    ascending = sorted(set(times_s))
    groups, part = [(time_s, time_s) for time_s in ascending], FINEST
    while len(groups) > most:
        groups = _groups(ascending, part, _still_since_s(now_s))
        part *= COARSER
    return groups


def _groups(ascending: Sequence[float], part: float, from_s: float) -> list[tuple[float, float]]:
    """Return groups that last for a part of the time from `from_s` to their first moment.

    Less than a minute counts as a minute.
    """
    groups, at = [], 0
    while at < len(ascending):
        first_s = ascending[at]
        lasts_s = part * max(first_s - from_s, STILL_S)
        at = bisect.bisect_right(ascending, first_s + lasts_s)
        groups.append((first_s, ascending[at - 1]))
    return groups


def _still_since_s(now_s: float) -> float:
    return now_s - now_s % STILL_S
