"""Twenty jobs ended after 1/20, 2/20, ... 20/20 of their time limits."""

import pytest

from scheduler.decide.runtimes import OVERRUN_SLACK_S, end_s, runtime_s

TWENTY = tuple(k / 20 for k in range(1, 21))

CASES = {
    "fresh: the 10th of 20 is at one half": (0.0, 0.5, 500.0),
    "fresh: the 18th of 20 is at nine tenths": (0.0, 0.9, 900.0),
    "half gone: 10 survive, the 5th ended at 0.75": (500.0, 0.5, 750.0),
    "half gone: the 9th survivor ended at 0.95": (500.0, 0.9, 950.0),
    "more gone: 9 survivors are too few, so its limit": (550.0, 0.5, 1000.0),
    "past its limit": (2000.0, 0.5, 1000.0),
    "started in the future, as clocks differ: all survive": (-50.0, 0.5, 500.0),
}


@pytest.mark.parametrize(
    ("ran_s", "quantile", "expected"),
    [pytest.param(*case, id=name) for name, case in CASES.items()],
)
def test_a_runtime_is_that_of_the_survivors(ran_s: float, quantile: float, expected: float) -> None:
    assert runtime_s(1000.0, ran_s, TWENTY, quantile) == pytest.approx(expected)


def test_without_observations_the_time_limit_counts() -> None:
    assert runtime_s(1000.0, 0.0, (), 0.5) == 1000.0
    assert end_s(100.0, 1000.0, now_s=700.0) == 1100.0


def test_an_end_is_never_in_the_past() -> None:
    assert end_s(100.0, 1000.0, now_s=1100.0) == 1100.0 + OVERRUN_SLACK_S
    assert end_s(100.0, 1000.0, now_s=9999.0, ratios=TWENTY, quantile=0.5) > 9999.0
