"""The objective worked out by hand.

Four fast devices (900 CU, 700 W) and two slow ones (300 CU, 300 W) on two nodes of 64 cores:
4 x 900 + 2 x 300 + 128 x 0.05 = 4206.4 CU and 4 x 700 + 2 x 300 = 3400 W.
"""

from dataclasses import replace

import pytest

from scheduler.core.policy import Policy
from scheduler.core.snapshot import JobSpec, Snapshot
from scheduler.decide.objective import Objective
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

FAST, SLOW = 0, 1
CU, WATTS = 4206.4, 3400.0


def fleet(slow_cu: float | None = 300.0) -> FleetBuilder:
    builder = FleetBuilder().flavor("fast", cu=900.0, power_w=700.0)
    builder.flavor("slow", cu=slow_cu, power_w=300.0)
    return builder.node("n1", devices=4, flavor="fast").node("n2", devices=2, flavor="slow")


def waits(**more: object) -> JobSpec:
    """One or two replicas of two devices and two cores."""
    given: dict[str, object] = {"devices": 2, "cpu": 2, "replicas": 1, "replicas_max": 2}
    return job("waits", tenant="b", **(given | more))  # type: ignore[arg-type]


def snapshot(asked: JobSpec, slow_cu: float | None = 300.0) -> Snapshot:
    """A job of a runs on one fast device and four cores; each owns two fast ones, b weighs 3."""
    held = running(job("runs", tenant="a", devices=1, cpu=4), 0, [0])
    tenants = [tenant("all"), tenant("a", under="all", fast=2)]
    tenants.append(tenant("b", under="all", weight=3.0, fast=2))
    return world(fleet(slow_cu), [asked], running=[held], tenants=tenants)


def objective_of(given: Snapshot) -> tuple[Objective, Turns]:
    turns = Turns(given, Policy(strategy="optimising"), now_s=NOW_S)
    return Objective(turns), turns


def test_a_replica_adds_its_compute_units_its_speed_and_its_watts() -> None:
    """On fast 2 x 900 + 2 x 0.05 CU and 1400 W; of two jobs this one is a half, a replica half of
    that. On slow it has a third of the speed. b's fair share is 3 fast devices (2 of its own and
    the one that a does not ask for) and the 4 cores that it asks for: 2700.2 CU.
    """
    asked = waits(flavors=["fast", "slow"])
    objective, _ = objective_of(snapshot(asked))
    assert objective.fair_cu == pytest.approx({"a": 900.2, "b": 2700.2})
    fast, slow = objective.gain(asked, FAST), objective.gain(asked, SLOW)
    assert fast == pytest.approx((1800.1 / CU, 1 / 4, 1800.1 / 2700.2, 1400 / WATTS))
    assert slow == pytest.approx((600.1 / CU, 1 / 12, 600.1 / 2700.2, 600 / WATTS))


def test_the_value_is_the_weighted_sum_of_logarithms_less_energy() -> None:
    """a runs, b has one replica. U = (900.2 + 1800.1) / 4206.4 = 0.641950, P = 1/2 + 1/4,
    shares 900.2 / 900.2 and 1800.1 / 2700.2 = 0.666654, weighed 1/4 and 3/4; (700 + 1400) / 3400 W.
    ln 0.651950 + ln 0.76 + (ln 1.01) / 4 + 3/4 ln 0.676654 - 0.1 x 0.617647
    = -0.427787 - 0.274437 + 0.002488 - 0.292946 - 0.061765.
    """
    objective, turns = objective_of(snapshot(waits(flavors=["fast"])))
    assert objective.tenant_weights == {"a": 0.25, "b": 0.75}
    for ranked in turns.queue():
        assert turns.try_start(ranked)
    assert [len(start.replicas) for start in turns.starts] == [1]  # 3 fast devices are free
    value = objective.value(objective.after(turns.starts))
    assert value == pytest.approx(-1.054447, abs=2e-6)


def test_where_a_tenant_has_nothing_its_logarithm_is_that_of_the_floor() -> None:
    """Before anything starts: U = 900.2 / 4206.4 = 0.214007, P = 1/2, shares 1 and 0, 700 W.

    ln 0.224007 + ln 0.51 + (ln 1.01) / 4 + 3/4 ln 0.01 - 0.1 x 0.205882.
    """
    objective, _ = objective_of(snapshot(waits(flavors=["fast"])))
    assert objective.value(objective.base) == pytest.approx(
        -1.496078 - 0.673345 + 0.002488 - 3.453878 - 0.020588, abs=3e-6
    )


def test_a_flavor_of_unknown_compute_units_counts_as_the_mean_of_the_known_ones() -> None:
    asked = waits(flavors=["fast", "slow"])
    objective, _ = objective_of(snapshot(asked, slow_cu=None))
    assert objective.units == (900.0, 900.0)
    assert objective.speed(asked, SLOW) == 1.0


def test_where_throughputs_were_measured_they_are_the_speed() -> None:
    """0.8 of the fast one on slow, by measurement, instead of 300 / 900 by compute units."""
    asked = replace(waits(flavors=["fast", "slow"]), job_class="llm")
    known = {("llm", "fast"): 1.0, ("llm", "slow"): 0.8}
    objective, _ = objective_of(replace(snapshot(asked), throughputs=known))
    assert objective.speed(asked, FAST) == 1.0
    assert objective.speed(asked, SLOW) == pytest.approx(0.8)
    assert objective.gain(asked, SLOW).performance == pytest.approx(0.8 / 4)
