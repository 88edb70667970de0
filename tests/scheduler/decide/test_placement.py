"""Where replicas go: counted, chosen, and planned in time."""

from typing import Any

import pytest

from scheduler.core.plan import Plan, Start
from scheduler.core.policy import Policy
from scheduler.core.snapshot import JobSpec, RunningJob
from scheduler.decide.cycle import decide
from scheduler.decide.feasibility import Demand, Filter, Layout
from tests.builders import NOW_S, FleetBuilder, job, running, world

RULES = Policy(strategy="rules")


def counts(fleet: FleetBuilder, spec: JobSpec, held: list[RunningJob] | None = None) -> list[int]:
    built = fleet.build(held or [])
    layout = Layout(built)
    demand = Demand(spec.shape, 0 if spec.shape.devices else -1, spec.tolerations)
    return [int(n) for n in Filter(layout, demand).count(layout.free_now(built))]


COUNTS: dict[str, tuple[dict[str, Any], list[int]]] = {
    "whole devices: 3 healthy make one pair": ({"devices": 2}, [1]),
    "cpu is the tightest: 8 cores of 3 each": ({"cpu": 3}, [2]),
    "memory is the tightest: 10 GB of 4 each": ({"memory_mib": 4000}, [2]),
    "thirds of a device: 3 on each of 3": ({"devices": 1, "milli": 333}, [8]),
    "shares by memory: 80 GB hold one of 50": (
        {"devices": 1, "milli": 100, "gpu_memory_mib": 50_000},
        [3],
    ),
    "more memory than a device has": ({"devices": 1, "gpu_memory_mib": 80_001}, [0]),
}


@pytest.mark.parametrize(
    ("fields", "expected"), [pytest.param(*case, id=name) for name, case in COUNTS.items()]
)
def test_replicas_that_fit_on_a_node(fields: dict[str, Any], expected: list[int]) -> None:
    """8 cores, 10 GB, 4 devices of which one is sick."""
    fleet = FleetBuilder().node("n1", cpu=8, memory_mib=10_000, devices=4, sick=[0])
    assert counts(fleet, job("a", **fields)) == expected


def test_two_halves_of_an_odd_memory_fit_on_one_device() -> None:
    fleet = FleetBuilder().flavor("a100", memory_mib=81_559).node("n1", devices=1)
    assert counts(fleet, job("a", devices=1, milli=500)) == [2]


def starts(plan: Plan) -> dict[str, Start]:
    return {start.uid: start for start in plan.starts}


def plan_of(
    fleet: FleetBuilder,
    jobs: list[JobSpec],
    held: tuple[RunningJob, ...] = (),
    policy: Policy = RULES,
) -> Plan:
    return decide(world(fleet, jobs, running=held), policy, now_s=NOW_S, budget_s=1.0)


def nodes_of(start: Start) -> list[int]:
    return [replica.node for replica in start.replicas]


def test_packing_takes_the_fullest_node_that_fits() -> None:
    fleet = FleetBuilder().node("n1", devices=4).node("n2", devices=4)
    held = running(job("old", devices=2), 1, (4, 5))
    plan = plan_of(fleet, [job("a", devices=2)], (held,))
    assert starts(plan)["a"].replicas[0].devices == (6, 7)


def test_spreading_takes_the_emptiest_nodes_in_turn() -> None:
    fleet = FleetBuilder().node("n1", devices=4).node("n2", devices=4).node("n3", devices=4)
    held = running(job("old", devices=3), 0, (0, 1, 2))
    spread = Policy(strategy="rules", placement="spread")
    plan = plan_of(fleet, [job("a", devices=1, replicas=3)], (held,), spread)
    assert sorted(nodes_of(starts(plan)["a"])) == [0, 1, 2]


def test_a_job_without_devices_keeps_off_nodes_with_devices() -> None:
    fleet = FleetBuilder().node("n1", devices=4).node("n2")
    assert nodes_of(starts(plan_of(fleet, [job("a")]))["a"]) == [1]


def test_a_gang_sits_on_one_node_where_one_can_hold_it() -> None:
    fleet = FleetBuilder().node("n1", devices=2).node("n2", devices=4)
    assert nodes_of(starts(plan_of(fleet, [job("a", devices=1, replicas=4)]))["a"]) == [1] * 4


def test_a_gang_waits_until_all_replicas_fit() -> None:
    fleet = FleetBuilder().node("n1", devices=2).node("n2", devices=2)
    held = running(job("old", devices=1, limit_s=500), 0, (0,))
    plan = plan_of(fleet, [job("a", devices=2, replicas=2)], (held,))
    assert plan.starts == ()
    assert plan.pending[0].expected_start_p50_s == NOW_S + 500


def test_an_elastic_gang_takes_what_there_is() -> None:
    fleet = FleetBuilder().node("n1", devices=3)
    plan = plan_of(fleet, [job("a", devices=1, replicas=2, replicas_max=8)])
    assert len(starts(plan)["a"].replicas) == 3


def test_devices_of_one_link_group_are_preferred() -> None:
    fleet = FleetBuilder().node("n1", devices=6, groups=[0, 1, 1, 0, 0, 1])
    held = running(job("old", devices=1), 0, (0,))
    plan = plan_of(fleet, [job("a", devices=2), job("b", devices=3)], (held,))
    assert starts(plan)["a"].replicas[0].devices == (3, 4)
    assert starts(plan)["b"].replicas[0].devices == (1, 2, 5)


def test_a_share_goes_to_the_device_that_is_fullest_already() -> None:
    fleet = FleetBuilder().node("n1", devices=2)
    half = running(job("old", devices=1, milli=500), 0, (1,), gpu_memory_mib=40_000)
    plan = plan_of(fleet, [job("a", devices=1, milli=300)], (half,))
    (replica,) = starts(plan)["a"].replicas
    assert (replica.devices, replica.gpu_milli, replica.gpu_memory_mib) == ((1,), 300, 24_000)


def two_flavors() -> FleetBuilder:
    fleet = FleetBuilder().flavor("big", cu=900.0).flavor("small", cu=100.0)
    return fleet.node("n1", devices=2, flavor="big").node("n2", devices=2, flavor="small")


def test_a_named_preference_is_kept_and_otherwise_the_smallest_flavor_is_taken() -> None:
    jobs = [job("named", devices=1, flavors=["big", "small"]), job("any", devices=1)]
    plan = plan_of(two_flavors(), jobs)
    assert {uid: start.flavor for uid, start in starts(plan).items()} == {
        "named": "big",
        "any": "small",
    }


def test_all_replicas_of_a_job_have_one_flavor() -> None:
    plan = plan_of(two_flavors(), [job("a", devices=1, replicas=3)])
    assert plan.starts == ()
    assert plan.pending[0].code == "never_fits"


def test_a_least_throughput_rules_slow_flavors_out() -> None:
    plan = plan_of(two_flavors(), [job("a", devices=1, min_throughput=0.5)])
    assert starts(plan)["a"].flavor == "big"


def test_a_tainted_node_is_for_those_who_tolerate_it() -> None:
    fleet = FleetBuilder().node("n1", devices=1, taints=["infer"])
    jobs = [job("a", devices=1), job("b", devices=1, tolerations=["infer"])]
    plan = plan_of(fleet, jobs)
    assert [start.uid for start in plan.starts] == ["b"]
    assert plan.pending[0].remedies[-1].code == "ask_admin_for_toleration"


def advised_taints(fleet: FleetBuilder, spec: JobSpec) -> object:
    (waits,) = plan_of(fleet, [spec]).pending
    helps = {remedy.code: remedy.params for remedy in waits.remedies}
    return helps["ask_admin_for_toleration"]["taints"]


def test_a_job_is_told_to_tolerate_no_taint_that_it_need_not() -> None:
    """Both devices are behind `gpu`; the node behind `broken` has none, that behind two is large.

    Two devices: `gpu` alone does. Four are only on n3: both of its taints, and still not `broken`.
    """
    fleet = FleetBuilder().node("n1", devices=2, taints=["gpu"]).node("n2", taints=["broken"])
    fleet = fleet.node("n3", devices=4, taints=["a", "gpu"]).node("n4", cpu=4)
    assert advised_taints(fleet, job("q", devices=2)) == ["gpu"]
    assert advised_taints(fleet, job("q", devices=4)) == ["a", "gpu"]


def test_a_gang_is_told_the_taints_of_as_many_nodes_as_it_needs() -> None:
    """Two replicas of two devices: one behind x, one behind y; broken has no devices."""
    fleet = FleetBuilder().node("n1", devices=2, taints=["x"]).node("n2", devices=2, taints=["y"])
    fleet = fleet.node("n3", taints=["broken"]).node("n4", cpu=4)
    assert advised_taints(fleet, job("q", devices=2, replicas=2)) == ["x", "y"]
    fleet = fleet.node("n5", devices=4, taints=["a", "b", "c"])
    assert advised_taints(fleet, job("q", devices=2, replicas=2)) == ["x", "y"]


@pytest.mark.parametrize("names", [("y", "z", "abc"), ("a", "b", "xyz")])
def test_the_taints_that_a_gang_is_told_do_not_depend_on_their_names(
    names: tuple[str, ...],
) -> None:
    """Two replicas: on two nodes of one device behind one taint each, or one of two behind 3."""
    fleet = FleetBuilder()
    for devices, taints in zip((1, 1, 2), names, strict=True):
        fleet.node(f"n{taints}", devices=devices, taints=list(taints))
    assert advised_taints(fleet, job("q", devices=1, replicas=2)) == [*names[0], *names[1]]


def test_several_blocked_jobs_are_planned_one_after_the_other() -> None:
    """4 devices: old holds all for 100 s; then a (3) and c (1) side by side; b (4) after a."""
    held = running(job("old", devices=4, limit_s=100), 0, range(4))
    jobs = [
        job("a", devices=3, limit_s=1000, submitted_s=NOW_S - 3),
        job("b", devices=4, limit_s=1000, submitted_s=NOW_S - 2),
        job("c", devices=1, limit_s=1000, submitted_s=NOW_S - 1),
        job("d", devices=1, limit_s=1001, submitted_s=NOW_S),
    ]
    by_age = Policy(strategy="rules")
    plan = plan_of(FleetBuilder().node("n1", devices=4), jobs, (held,), by_age)
    expected = {p.uid: p.expected_start_p50_s for p in plan.pending}
    order = [p.uid for p in plan.pending]
    assert order[0] == "b"  # the largest has the highest size factor
    assert expected["b"] == NOW_S + 100
    assert expected["a"] == NOW_S + 1100
    assert expected["c"] == NOW_S + 1100
    assert expected["d"] == NOW_S + 2100
