"""At which moments rows of the time profile begin, where there are many."""

import math

import pytest

from scheduler.core.snapshot import Reservation
from scheduler.decide.calendar import Calendar
from scheduler.decide.moments import (
    CLOSING_ROWS,
    OPENING_ROWS,
    RUNNING_ROWS,
    TOLD_ROWS,
    Grid,
    grid_of,
    grouped,
)
from scheduler.decide.quota import QuotaTree

NOW_S = 6000.0
NOBODY = Calendar((), QuotaTree(()), now_s=NOW_S)


def windows(*times_s: tuple[float, float]) -> Calendar:
    reserved = [
        Reservation(f"w{i}", NOW_S + a, NOW_S + b, (0,)) for i, (a, b) in enumerate(times_s)
    ]
    return Calendar(reserved, QuotaTree(()), now_s=NOW_S)


def test_few_moments_are_all_rows_of_their_own() -> None:
    ends = [NOW_S + 1.0 + i / 8 for i in range(RUNNING_ROWS)]
    assert grid_of([*ends, ends[0]], (), NOBODY, now_s=NOW_S) == Grid(ends, math.inf)


def test_groups_last_for_a_part_of_the_wait_and_a_minute_at_least_counts() -> None:
    """With 1/64 of the wait: 640 s and 650 s are together, 651 s is not; nor are 30 s and 31 s."""
    times = [NOW_S + s for s in (640, 650, 651, 30, 30.9, 31)]
    groups = [(a - NOW_S, b - NOW_S) for a, b in grouped(times, 4, now_s=NOW_S)]
    assert groups == [(30, pytest.approx(30.9)), (31, 31), (640, 650), (651, 651)]


def test_near_ends_stay_exact_whatever_many_there_are_later() -> None:
    """An end every 3 minutes for a day: the first two are 180 s apart, far more than a part."""
    ends = [NOW_S + 180.0 * (i + 1) for i in range(480)]
    grid = grid_of(ends, (), NOBODY, now_s=NOW_S)
    assert grid.times_s[:2] == ends[:2]
    assert grid.times_s[-1] == ends[-1]
    assert RUNNING_ROWS // 2 < len(grid.times_s) <= RUNNING_ROWS
    for end_s in ends:
        row_s = next(time_s for time_s in grid.times_s if time_s >= end_s)
        assert row_s - end_s <= 0.25 * (end_s - NOW_S)


def test_who_is_told_to_go_and_the_calendar_do_not_cost_each_other_rows() -> None:
    calendar = windows(*((1000.0 * k, 1000.0 * k + 10) for k in range(1, 200)))
    ends = [NOW_S + 5.0 * i for i in range(1, 1000)]
    told = {NOW_S + s for s in (7.0, 8.0, 29.5)}
    grid = grid_of([*ends, *told], told, calendar, now_s=NOW_S)
    assert told <= set(grid.times_s)
    assert {NOW_S + s for s in (1000.0, 1010.0, 2010.0)} <= set(grid.times_s)
    assert len(grid.times_s) <= RUNNING_ROWS + TOLD_ROWS + OPENING_ROWS + CLOSING_ROWS


def test_who_is_told_to_go_is_soon_known_to_be_gone_however_many_are() -> None:
    """Told one after the other within 10 minutes of grace: known to two minutes at the most."""
    told = {NOW_S + 6.0 * i for i in range(1, 101)}
    times = grid_of(sorted(told), told, NOBODY, now_s=NOW_S).times_s
    assert len(times) <= TOLD_ROWS
    assert all(min(t for t in times if t >= one) - one <= 120 for one in told)


def test_nodes_open_with_the_last_of_a_group_and_close_with_the_first() -> None:
    """A month of windows of half an hour, each hour: 744 begin and end, fewer rows do."""
    calendar = windows(*((3600.0 * k, 3600.0 * k + 1800) for k in range(1, 745)))
    grid = grid_of((), (), calendar, now_s=NOW_S)
    assert len(grid.times_s) <= OPENING_ROWS + CLOSING_ROWS
    assert NOW_S + 3600 in grid.times_s
    assert grid.times_s[-1] == NOW_S + 744 * 3600 + 1800
    assert NOW_S + 744 * 3600 not in grid.times_s


def test_groups_stand_still_until_the_next_full_minute() -> None:
    ends = [7000.0 + i * i for i in range(100)]
    grids = [grid_of(ends, (), NOBODY, now_s=now_s) for now_s in (6000.0, 6030.0, 6059.9)]
    assert grids[0] == grids[1] == grids[2]
    assert grids[0].lasts_until_s == 6060.0


@pytest.mark.parametrize("far_s", [1e9, 1e300, math.inf])
def test_there_are_never_more_groups_than_rows(far_s: float) -> None:
    ends = [NOW_S + 1.5**i for i in range(50)] + [NOW_S + far_s]
    groups = grouped(ends, 3, now_s=NOW_S)
    assert len(groups) <= 3
    assert groups[-1][1] == NOW_S + far_s
