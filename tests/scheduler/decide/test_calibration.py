"""Waits corrected by the ratio of past waits to what was said of them."""

from dataclasses import replace

import pytest

from scheduler.core.snapshot import Expectation
from scheduler.decide.calibration import SMALLEST_S, Calibration


def said(
    planned_s: float, waited_s: float, *, started: bool = True, gang: bool = False
) -> Expectation:
    return Expectation(planned_s, planned_s, waited_s, started, gang)


def as_told(records: list[Expectation]) -> list[Expectation]:
    """Return the records, one in ten of which waited longer than it was told."""
    return [replace(one, told_p90_s=-1.0 if k % 10 == 0 else 1e9) for k, one in enumerate(records)]


def times(ratio: float, planned_s: float = 1000.0) -> float:
    """Return the wait that is so many times the planned one, the smallest wait added to both."""
    return ratio * (planned_s + SMALLEST_S) - SMALLEST_S


HUNDRED = [said(1000.0, times(k / 50)) for k in range(1, 101)]
"""A hundred alike, that waited 0.02, 0.04, ... 2.00 times as long as planned."""

NEARLY = 0.03
"""What is believed beside a hundred records moves a quantile by less than this part."""


def test_without_records_the_plan_counts() -> None:
    told = Calibration(()).expected(1000.0, 2000.0, gang=False)
    assert told == pytest.approx((1000.0, 2000.0))


def test_one_record_of_five_believed_moves_little() -> None:
    """Weights: 10 beliefs of 0.5 and one start at ratio 0.5 of weight 1, 6 in all.

    Product limit: 1 - 0.5/6 after 0.4; times 1 - 1/5.5 after 0.5 = 0.75; 0.667 after 0.6; 0.583
    after 0.7; 0.5 after 0.85: half have started there, before at 1.0.
    """
    told = Calibration([said(1000.0, times(0.5))]).expected(1000.0, 2000.0, gang=False)
    assert told[0] == pytest.approx(times(0.85))


def test_a_burst_that_has_just_come_does_not_say_that_all_start_at_once() -> None:
    """Three of its first have started within a minute, 97 wait since then: that is no median."""
    lucky = [said(100_000.0, 60.0)] * 3
    others = [said(100_000.0, 90.0, started=False)] * 97
    told = Calibration(lucky + others).expected(100_000.0, 120_000.0, gang=False)
    assert told[0] > 90_000.0


def test_a_wait_is_the_quantile_of_what_was_of_what_is_planned() -> None:
    """The 50th of 100 ratios is 1.00, the 90th 1.80."""
    p50_s, p90_s = Calibration(as_told(HUNDRED)).expected(1000.0, 1000.0, gang=False)
    assert p50_s == pytest.approx(times(1.0), rel=NEARLY)
    assert p90_s == pytest.approx(times(1.8), rel=NEARLY)


def test_each_quantile_is_corrected_by_its_own_error() -> None:
    """P90 was planned at twice P50, so its ratios are about half; the 90th of them is 0.926...

    (waited + 60) / (2000 + 60) of the 90th: 1.8 * 1060 / 2060.
    """
    wide = [Expectation(1000.0, 2000.0, one.waited_s, True, False) for one in HUNDRED]
    _, p90_s = Calibration(as_told(wide)).expected(1000.0, 2000.0, gang=False)
    assert p90_s == pytest.approx(1.8 * 1060 - SMALLEST_S, rel=NEARLY)


def test_those_who_still_wait_are_not_forgotten() -> None:
    """Half has started at once; the other half waits since 3 times the plan: the median is there.

    60 of 100 ended at ratio 1 would be enough for a median of 1, 40 are not.
    """
    half = [said(1000.0, 1000.0)] * 40 + [said(1000.0, times(3.0), started=False)] * 60
    assert Calibration(half).expected(1000.0, 1000.0, gang=False)[0] == pytest.approx(times(3.0))
    most = [said(1000.0, 1000.0)] * 60 + [said(1000.0, times(3.0), started=False)] * 40
    assert Calibration(most).expected(1000.0, 1000.0, gang=False)[0] == pytest.approx(1000.0)


def test_who_was_censored_before_counts_for_those_who_went_on() -> None:
    """Product limit: of 4 at risk 1 starts (3/4 left), 1 is censored, then 1 of 2 starts (3/8).

    Fifty times each. So half have started at ratio 2, though only 100 of 200 are seen to.
    """
    one = [said(1000.0, times(1.0)), said(1000.0, times(1.5), started=False)]
    more = [said(1000.0, times(2.0)), said(1000.0, times(9.0), started=False)]
    records = (one + more) * 50
    assert Calibration(records).expected(1000.0, 1000.0, gang=False)[0] == pytest.approx(times(2.0))


def test_waits_of_another_length_and_of_gangs_count_little() -> None:
    """A hundred long waits came true, a hundred short ones took ten times as long."""
    records = [said(100_000.0, 100_000.0)] * 100 + [said(100.0, times(10.0, 100.0))] * 100
    known = Calibration(records)
    assert known.expected(100.0, 100.0, gang=False)[0] == pytest.approx(times(10.0, 100.0))
    assert known.expected(100_000.0, 100_000.0, gang=False)[0] == pytest.approx(100_000.0)
    mixed = [said(1000.0, 1000.0)] * 60 + [said(1000.0, times(4.0), gang=True)] * 60
    assert Calibration(mixed).expected(1000.0, 1000.0, gang=False)[0] == pytest.approx(1000.0)
    assert Calibration(mixed).expected(1000.0, 1000.0, gang=True)[0] == pytest.approx(times(4.0))


def test_nobody_is_told_a_past_time_or_a_p90_before_its_p50() -> None:
    early = [Expectation(1000.0, 9000.0, 0.0, True, False)] * 50
    p50_s, p90_s = Calibration(early).expected(0.0, 0.0, gang=False)
    assert 0.0 <= p50_s <= p90_s
    odd = [Expectation(1000.0, 10.0, 900.0, True, False)] * 50
    p50_s, p90_s = Calibration(odd).expected(5000.0, 0.0, gang=False)
    assert p50_s <= p90_s


def test_the_order_of_the_records_changes_nothing() -> None:
    assert Calibration(HUNDRED[::-1]).expected(700.0, 900.0, gang=True) == Calibration(
        HUNDRED
    ).expected(700.0, 900.0, gang=True)


def test_p90_follows_how_often_it_held_lately() -> None:
    """All of a hundred were late: 101 of 110 missed, so that nearly the last ratio is told.

    0.9 + 0.5 * (101/110 - 0.1) is above 0.99: the 99th of a hundred is 1.98. None was late: 1 of
    110, 0.9 - 0.5 * (0.1 - 1/110) = 0.855, the 85th or 86th is 1.70 or 1.72.
    """
    late = [replace(one, told_p90_s=0.0) for one in HUNDRED]
    assert Calibration(late).expected(1000.0, 1000.0, gang=False)[1] == pytest.approx(
        times(1.98), rel=NEARLY
    )
    assert Calibration(HUNDRED).expected(1000.0, 1000.0, gang=False)[1] == pytest.approx(
        times(1.71), rel=NEARLY
    )
