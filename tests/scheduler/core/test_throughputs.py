"""What complete runs of the same work say of flavors."""

import pytest

from scheduler.core.errors import InvalidSnapshotError
from scheduler.core.throughputs import Run, learn


def runs(flavor: str, times: dict[str, float], job_class: str = "resnet") -> list[Run]:
    return [Run(job_class, work, flavor, run_s) for work, run_s in times.items()]


SLOW = runs("k80", {"w1": 100.0, "w2": 200.0, "w3": 300.0, "w4": 50.0})
FAST = runs("v100", {"w1": 10.0, "w2": 40.0, "w3": 60.0})


def test_speed_is_the_median_over_works_that_ran_on_both() -> None:
    """k80 ran most works: the reference. v100 is 10, 5 and 5 times as fast: median 5.

    w4 ran on k80 alone, so that 3 of its 4 runs say something.
    """
    assert learn([*SLOW, *FAST]) == {
        ("resnet", "k80"): (0.2, 3, 3),
        ("resnet", "v100"): (1.0, 3, 3),
    }


def test_several_runs_of_one_work_count_by_their_mean() -> None:
    """w1 on v100: mean of 10 and 40 is 25, 4 times as fast; with 5 and 5 the median stays 5."""
    learnt = learn([*SLOW, *FAST, Run("resnet", "w1", "v100", 40.0)])
    assert learnt["resnet", "k80"].throughput == pytest.approx(0.2)
    assert learnt["resnet", "v100"] == (1.0, 3, 4)


def test_too_few_runs_of_works_in_common_say_nothing() -> None:
    assert learn([*SLOW, *FAST[:2]]) == {}
    assert learn([*SLOW, *FAST[:2]], least=2)["resnet", "k80"].throughput == pytest.approx(1 / 7.5)


def test_one_work_that_ran_often_on_both_will_do() -> None:
    """100 s on average against 20 s; a third run on either side makes it enough."""
    often = [Run("lm", "nightly", "k80", t) for t in (90.0, 100.0, 110.0)]
    once = [Run("lm", "nightly", "v100", t) for t in (19.0, 21.0)]
    assert learn([*often, *once]) == {}
    learnt = learn([*often, *once, Run("lm", "nightly", "v100", 20.0)])
    assert learnt["lm", "k80"].throughput == pytest.approx(0.2)
    assert learnt["lm", "v100"] == (1.0, 1, 3)


def test_classes_are_learnt_apart() -> None:
    other = runs("v100", {"w1": 1.0, "w2": 1.0, "w3": 1.0}, "lm")
    assert learn([*SLOW, *other]) == {}


def test_order_changes_nothing() -> None:
    assert learn([*FAST, *reversed(SLOW)]) == learn([*SLOW, *FAST])


@pytest.mark.parametrize("run_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_run_that_took_no_time_is_refused(run_s: float) -> None:
    with pytest.raises(InvalidSnapshotError):
        learn([Run("c", "w", "f", run_s)])
