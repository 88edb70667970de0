from collections.abc import Iterator, Sequence

import pytest

from scheduler.core.policy import PriorityWeights
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
    }


def test_age_is_capped_and_never_negative() -> None:
    jobs = [job("old", submitted_s=NOW_S - 9999), job("ahead", submitted_s=NOW_S + 50)]
    scale = scale_of(jobs, devices_milli=1, cpu_milli=1)
    ages = [static_parts(j, WEIGHTS, scale, now_s=NOW_S)["age"] for j in jobs]
    assert ages == [300.0, 0.0]


def test_no_other_weight_can_overturn_a_priority_class() -> None:
    weak = PriorityWeights(priority_class=1, fair_share=500, age=300, size=50)
    assert class_weight(weak) == 851
    assert class_weight(WEIGHTS) == 1000


def test_ties_go_by_submit_time_and_then_by_uid() -> None:
    jobs = [job("c"), job("b"), job("a", submitted_s=NOW_S + 1)]
    order = list(queue(jobs))
    assert order == ["b", "c", "a"]


def test_a_tenant_falls_back_as_it_gets_work() -> None:
    """x and y have a fair share of 4 each; after x got 4 devices its factor is 1/2."""
    jobs = [job("x1", tenant="x", devices=4), job("x2", tenant="x", devices=4)]
    jobs += [job("y1", tenant="y", devices=4, submitted_s=NOW_S + 5)]
    asked = {("x", "gpu"): 8000, ("y", "gpu"): 4000}
    shares = FairShares([tenant("x"), tenant("y")], {"gpu": 8000}, {}, asked, {})
    seen = []
    for ranked in make(jobs, shares):
        seen.append((ranked.job.uid, ranked.parts["fair_share"]))
        shares.allocate(ranked.job.tenant, [Charge("gpu", 4000)])
    assert seen == [("x1", 500.0), ("y1", 500.0), ("x2", pytest.approx(250.0))]


def make(jobs: Sequence[JobSpec], shares: FairShares) -> Queue:
    scale = scale_of(jobs, devices_milli=8000, cpu_milli=8000)
    parts = [(j, static_parts(j, WEIGHTS, scale, now_s=NOW_S)) for j in jobs]
    return Queue(parts, shares, WEIGHTS.fair_share, ["gpu"])


def queue(jobs: Sequence[JobSpec]) -> Iterator[str]:
    return (r.job.uid for r in make(jobs, FairShares([tenant("t")], {}, {}, {}, {})))
