from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from scheduler.core.policy import PriorityWeights, QosFactors
from scheduler.core.snapshot import JobSpec
from scheduler.decide.fairness import FairShares
from scheduler.decide.ordering import Queue, class_weight, scale_of, static_parts
from scheduler.decide.quota import Charge
from tests.builders import NOW_S, job, tenant

WEIGHTS = PriorityWeights(priority_class=1000, fair_share=500, age=300, size=50, age_max_s=1000)


def test_the_parts_are_weight_times_factor() -> None:
    """Second of two classes: 1000; waited 250 of 1000 s: 75; 4 of 16 devices: 12.5."""
    high = job("a", devices=4, priority=7, submitted_s=NOW_S - 250)
    scale = scale_of([high, job("b", priority=3)], devices_milli=16_000, cpu_milli=1)
    assert static_parts(high, WEIGHTS, scale, now_s=NOW_S) == {
        "priority_class": 1000.0,
        "age": 75.0,
        "size": 12.5,
        "qos": 0.0,
    }


def test_the_kind_of_a_job_is_its_quality_of_service() -> None:
    """A notebook counts 1, a batch job 0, by default; the weight is 100."""
    jobs = [replace(job("a"), kind="notebook"), job("b")]
    scale = scale_of(jobs, devices_milli=1, cpu_milli=1)
    assert [static_parts(j, WEIGHTS, scale, now_s=NOW_S)["qos"] for j in jobs] == [100.0, 0.0]
    half = QosFactors(notebook=0.0, batch=0.5)
    parts = [static_parts(j, WEIGHTS, scale, now_s=NOW_S, qos=half) for j in jobs]
    assert [part["qos"] for part in parts] == [0.0, 50.0]


def test_age_is_capped_and_never_negative() -> None:
    jobs = [job("old", submitted_s=NOW_S - 9999), job("ahead", submitted_s=NOW_S + 50)]
    scale = scale_of(jobs, devices_milli=1, cpu_milli=1)
    ages = [static_parts(j, WEIGHTS, scale, now_s=NOW_S)["age"] for j in jobs]
    assert ages == [300.0, 0.0]


def test_no_other_weight_can_overturn_a_priority_class() -> None:
    weak = PriorityWeights(priority_class=1, fair_share=500, age=300, size=50)
    assert class_weight(weak) == 951  # 500 + 300 + 50 + 100 + 1
    assert class_weight(WEIGHTS) == 1000


def test_ties_go_by_submit_time_and_then_by_uid() -> None:
    jobs = [job("c"), job("b"), job("a", submitted_s=NOW_S + 1)]
    order = list(queue(jobs))
    assert order == ["b", "c", "a"]


def test_a_tenant_falls_back_as_it_gets_work() -> None:
    """x and y have a part of 4 each; x, that holds its 4, has the factor 2 ** -.5."""
    jobs = [job("x1", tenant="x", devices=4), job("x2", tenant="x", devices=4)]
    jobs += [job("y1", tenant="y", devices=4, submitted_s=NOW_S + 5)]
    asked = {("x", "gpu"): 8000, ("y", "gpu"): 4000}
    shares = FairShares([tenant("x"), tenant("y")], {"gpu": 8000}, {}, asked, {})
    seen = []
    for ranked in make(jobs, shares):
        seen.append((ranked.job.uid, ranked.parts["fair_share"]))
        shares.allocate(ranked.job.tenant, [Charge("gpu", 4000)])
    assert seen == [("x1", 500.0), ("y1", 500.0), ("x2", pytest.approx(500 * 2**-0.5))]


OWNERS = (tenant("all", gpu=0), tenant("x", under="all", gpu=4), tenant("y", under="all", gpu=4))


def served(jobs: Sequence[JobSpec], shares: FairShares) -> list[str]:
    """Return the order in which the jobs come up if each gets what it asks for."""
    seen = []
    for ranked in make(jobs, shares):
        seen.append(ranked.job.uid)
        shares.allocate(ranked.job.tenant, [Charge("gpu", ranked.job.shape.device_milli)])
    return seen


def test_who_has_room_within_its_quota_goes_before_who_must_borrow() -> None:
    """x holds its 4: its job of the higher class would borrow, y's would not."""
    shares = FairShares(OWNERS, {"gpu": 8000}, {("x", "gpu"): 4000}, {}, {})
    jobs = [job("x1", tenant="x", devices=1, priority=5), job("y1", tenant="y", devices=1)]
    assert served(jobs, shares) == ["y1", "x1"]


def test_of_two_that_borrow_the_one_of_smaller_share_goes_first_and_they_take_turns() -> None:
    """x is 3 above its quota and y 1: y catches up by two, then they are level and take turns."""
    held = {("x", "gpu"): 7000, ("y", "gpu"): 5000}
    shares = FairShares(OWNERS, {"gpu": 99_000}, held, {}, {})
    jobs = [job(f"{t}{k}", tenant=t, devices=1) for t in "xy" for k in range(4)]
    assert served(jobs, shares) == ["y0", "y1", "x0", "y2", "x1", "y3", "x2", "x3"]


def test_within_a_tenant_that_borrows_the_higher_class_still_goes_first() -> None:
    shares = FairShares(OWNERS, {"gpu": 8000}, {("x", "gpu"): 4000}, {}, {})
    jobs = [job("low", tenant="x", devices=1), job("high", tenant="x", devices=1, priority=1)]
    assert served(jobs, shares) == ["high", "low"]


def make(jobs: Sequence[JobSpec], shares: FairShares) -> Queue:
    scale = scale_of(jobs, devices_milli=8000, cpu_milli=8000)
    parts = [
        (j, static_parts(j, WEIGHTS, scale, now_s=NOW_S), ("gpu",) if j.shape.devices else ())
        for j in jobs
    ]
    return Queue(parts, shares, WEIGHTS.fair_share, ("gpu",))


def queue(jobs: Sequence[JobSpec]) -> Iterator[str]:
    return (r.job.uid for r in make(jobs, FairShares([tenant("t")], {}, {}, {}, {})))
