"""At which moments rows of the time profile begin, where there are many."""

import math
from itertools import pairwise

import pytest

from scheduler.core.snapshot import Reservation
from scheduler.decide.backfill import HARD_ROWS, SOFT_ROWS
from scheduler.decide.calendar import Calendar
from scheduler.decide.moments import (
    EXACT_CLOSING,
    EXACT_ENDS,
    EXACT_OPENING,
    Grid,
    grid_of,
    rounded,
)
from scheduler.decide.quota import QuotaTree

NOW_S = 65_536.0 * 60
"""A full minute, and a multiple of all short cells."""

NOBODY = Calendar((), QuotaTree(()), now_s=NOW_S)


def windows(*times_s: tuple[float, float]) -> Calendar:
    reserved = [
        Reservation(f"w{i}", NOW_S + a, NOW_S + b, (0,)) for i, (a, b) in enumerate(times_s)
    ]
    return Calendar(reserved, QuotaTree(()), now_s=NOW_S)


def cells(*waits_s: float) -> list[float]:
    """Return the ends of the cells of such waits, as waits, where nothing is few."""
    found = rounded([NOW_S + s for s in waits_s], 0, now_s=NOW_S)
    return [cell_s - NOW_S for cell_s in found.values()]


def test_few_moments_are_all_rows_of_their_own() -> None:
    ends = [NOW_S + 1.0 + i / 8 for i in range(EXACT_ENDS)]
    assert grid_of([*ends, ends[0]], (), NOBODY, now_s=NOW_S) == Grid(ends, math.inf)


def test_cells_are_an_eighth_of_the_wait_and_a_quarter_after_two_hours() -> None:
    """512 to 1024 s: 512 / 8 = 64 s, and nearer ones alike; 4096 to 8192 s: 4096 / 8 = 512 s.

    8192 to 16,384 s: 8192 / 4 = 2048 s; 131,072 to 262,144 s: 131,072 / 4 = 32,768 s.
    """
    assert cells(1, 64, 65, 700) == [64, 64, 128, 704]
    assert cells(4096, 4097, 8191) == [4096, 4608, 8192]
    assert cells(8193, 131_073) == [10_240, 163_840]


def test_what_is_two_years_away_is_one() -> None:
    assert cells(2.0**28, 2.0**29, 2.0**40) == [2.0**40] * 3


def test_no_end_is_ever_seen_later_than_it_was_seen_before() -> None:
    """As time goes by cells are cut in two, at their middle: each end stays in its own."""
    waits = [37.0 * i for i in range(1, 3000)]
    for before_s, after_s in pairwise([0.0, 0.0, 60.0, 600.0, 660.0, 3600.0, 30_000.0]):
        ends = [NOW_S + s for s in waits if s > after_s]
        before = rounded(ends, 0, now_s=NOW_S + before_s)
        after = rounded(ends, 0, now_s=NOW_S + after_s)
        assert all(end_s <= after[end_s] <= before[end_s] for end_s in after)
        walls = set(before.values())  # who was to start at one starts no later
        for wall_s in walls:
            assert all(cell_s <= wall_s for end_s, cell_s in after.items() if end_s <= wall_s)


def test_no_end_is_seen_by_more_than_a_quarter_of_its_wait_too_late_on_the_first_day() -> None:
    """After the first minutes, in which it is a minute or so."""
    waits = [60.0 * (i + 1) for i in range(24 * 60)]
    found = cells(*waits)
    assert all(0 <= b - a <= max(64.0, a / 4) for a, b in zip(waits, found, strict=True))
    assert len(set(found)) < 64


def test_who_is_told_to_go_and_the_calendar_do_not_cost_each_other_rows() -> None:
    calendar = windows((1000.0, 1010.0), (2000.0, 2010.0))
    ends = [NOW_S + 5.0 * i for i in range(1, 1000)]
    told = {NOW_S + s for s in (7.0, 8.0, 29.5)}
    grid = grid_of([*ends, *told], told, calendar, now_s=NOW_S)
    assert told <= set(grid.times_s)
    assert {NOW_S + s for s in (1000.0, 1010.0, 2000.0, 2010.0)} <= set(grid.times_s)


def test_who_is_told_to_go_is_soon_known_to_be_gone_however_many_are() -> None:
    """Told one after the other within 10 minutes of grace: known to a minute."""
    told = {NOW_S + 6.0 * i for i in range(1, 101)}
    times = grid_of(sorted(told), told, NOBODY, now_s=NOW_S).times_s
    assert len(times) == 10  # 64, 128, ... 640
    assert all(min(t for t in times if t >= one) - one <= 64 for one in told)


def test_nodes_open_with_the_last_end_of_a_cell_and_close_with_its_first_begin() -> None:
    """A month of windows of half an hour, each hour: 744 begin and end, far fewer rows do.

    Cells are twice as long as else, so that they suffice: in that from 16,384 to 24,576 s two
    begin, after 5 and 6 hours, 18,000 s is first; they end at 19,800 and 23,400 s.
    """
    calendar = windows(*((3600.0 * k, 3600.0 * k + 1800) for k in range(1, 745)))
    times = [time_s - NOW_S for time_s in grid_of((), (), calendar, now_s=NOW_S).times_s]
    assert len(times) <= EXACT_OPENING + EXACT_CLOSING
    assert [s for s in times if 16_384 < s <= 24_576] == [18_000, 23_400]
    assert times[-1] == 744 * 3600 + 1800


def test_cells_stand_still_until_the_next_full_minute() -> None:
    ends = [NOW_S + 100 + i * i for i in range(100)]
    grids = [grid_of(ends, (), NOBODY, now_s=NOW_S + s) for s in (0.0, 30.0, 59.9)]
    assert grids[0] == grids[1] == grids[2]
    assert grids[0].lasts_until_s == NOW_S + 60


@pytest.mark.parametrize("far_s", [1e9, 1e300, math.inf])
def test_whatever_comes_rows_are_left_to_plan_in(far_s: float) -> None:
    waits = [1.01**i for i in range(1800)]
    calendar = windows(*((a, a + 1) for a in waits))
    told = {NOW_S + 1.5 * a for a in waits}
    times = grid_of([*(NOW_S + a for a in waits), *told, far_s], told, calendar, now_s=NOW_S)
    assert times.times_s[-1] == max(far_s, *told)
    assert len(times.times_s) < SOFT_ROWS < HARD_ROWS
