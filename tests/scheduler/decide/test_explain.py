"""One reason a test, with its numbers and what would help."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.core.plan import Start
from scheduler.core.policy import Policy
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import JobSpec, Snapshot
from scheduler.decide.cycle import decide, estimate
from scheduler.decide.objective import LOG_FLOOR, Objective
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

RULES = Policy(strategy="rules")


def answer(snapshot: Snapshot, uid: str = "a") -> Pending:
    plan = decide(snapshot, RULES, now_s=NOW_S, budget_s=1.0)
    return next(pending for pending in plan.pending if pending.uid == uid)


def helps(pending: Pending) -> dict[str, dict[str, object]]:
    return {remedy.code: dict(remedy.params) for remedy in pending.remedies}


def four() -> FleetBuilder:
    return FleetBuilder().node("n1", devices=4)


def held(*devices: int, limit_s: float = 600.0) -> tuple[Any, ...]:
    return (running(job("old", devices=len(devices), limit_s=limit_s), 0, devices),)


def test_what_is_held_back_says_so_before_anything_else() -> None:
    assert answer(world(four(), [job("a", hold="on_hold", cpu=0)])).code is WaitReason.ON_HOLD
    assert answer(world(four(), [job("a", hold="frozen")])).evidence == {"hold": "frozen"}


def test_what_can_never_run_says_so_before_it_is_approved() -> None:
    big = job("a", devices=5, hold="awaiting_approval")
    assert answer(world(four(), [big])).code is WaitReason.NEVER_FITS
    small = replace(big, shape=replace(big.shape, devices=1))
    assert answer(world(four(), [small])).code is WaitReason.AWAITING_APPROVAL


def test_a_failed_start_is_not_tried_again_too_soon() -> None:
    pending = answer(world(four(), [job("a", not_before_s=NOW_S + 30)]))
    assert pending.code is WaitReason.BACKING_OFF
    assert pending.evidence == {"not_before_s": NOW_S + 30}


def test_a_flavor_that_the_cluster_lacks() -> None:
    pending = answer(world(four(), [job("a", devices=1, flavors=["h100"])]))
    assert pending.code is WaitReason.NO_MATCHING_FLAVOR
    assert pending.evidence["present"] == ["a100"]
    assert helps(pending) == {"other_flavor": {"flavor": "a100", "starts_now": True}}


def test_a_job_larger_than_any_node_is_told_the_largest_that_fits() -> None:
    pending = answer(world(four(), [job("a", devices=8)]))
    assert pending.code is WaitReason.NEVER_FITS
    assert pending.expected_start_p50_s is None
    assert helps(pending)["fewer_devices"] == {"devices": 4, "starts_now": True}


def test_a_quota_that_can_never_hold_the_job() -> None:
    pending = answer(world(four(), [job("a", devices=3)], tenants=[tenant("t", a100=2)]))
    assert pending.code is WaitReason.EXCEEDS_MAX_QUOTA
    assert pending.evidence["most_milli"] == 2000
    assert helps(pending)["fewer_devices"] == {"devices": 2, "starts_now": True}
    assert helps(pending)["ask_for_quota"]["missing_milli"] == {"a100": 1000}


def test_a_flavor_that_is_not_this_tenants_to_use() -> None:
    tenants = [tenant("t"), tenant("u", a100=4)]
    pending = answer(world(four(), [job("a", devices=1)], tenants=tenants))
    assert pending.code is WaitReason.EXCEEDS_MAX_QUOTA
    assert pending.evidence["named"] is False


def test_a_quota_in_use_says_how_much_is_missing() -> None:
    snapshot = world(four(), [job("a", devices=2)], running=held(0), tenants=[tenant("t", a100=2)])
    pending = answer(snapshot)
    assert pending.code is WaitReason.WAITING_FOR_QUOTA
    assert pending.evidence["used_milli"] == 1000
    assert pending.evidence["nominal_milli"] == 2000
    assert pending.evidence["available_milli"] == 1000
    assert helps(pending)["ask_for_quota"] == {
        "missing_milli": {"a100": 1000},
        "starts_now": True,
    }


def test_nodes_that_may_not_be_used_are_counted_by_why() -> None:
    fleet = FleetBuilder().node("n1", devices=2, ready=False, note="draining").node("n2")
    pending = answer(world(fleet, [job("a", devices=2)]))
    assert pending.code is WaitReason.NODES_UNAVAILABLE
    assert pending.evidence["unavailable_nodes"] == {"draining": 1}
    assert "ask_admin_for_nodes" in helps(pending)


def test_two_jobs_do_not_hope_for_the_same_drained_node() -> None:
    fleet = FleetBuilder().node("n1", devices=2, ready=False, note="draining")
    snapshot = world(fleet, [job("a", devices=2), job("b", devices=2)])
    assert answer(snapshot, "a").code is WaitReason.NODES_UNAVAILABLE
    assert answer(snapshot, "b").code is WaitReason.WAITING_FOR_CAPACITY


def test_room_that_is_reserved_for_a_higher_job_may_be_used_until_then() -> None:
    jobs = [job("high", devices=4, priority=1), job("a", devices=1, limit_s=3600)]
    pending = answer(world(four(), jobs, running=held(0, 1, 2, limit_s=600)))
    assert pending.code is WaitReason.RESERVED
    assert pending.evidence["ahead"] == 1
    lasting = helps(pending)["shorter_time_limit"]  # a minute is left to act in
    assert lasting == {"time_limit_s": 540.0, "starts_now": True}


def test_enough_in_sum_but_in_no_one_place_is_fragmented() -> None:
    fleet = FleetBuilder().node("n1", devices=4).node("n2", devices=4)
    busy = (
        running(job("o1", devices=2, limit_s=500), 0, (0, 1)),
        running(job("o2", devices=2, limit_s=600), 1, (4, 5)),
    )
    pending = answer(world(fleet, [job("a", devices=4)], running=busy))
    assert pending.code is WaitReason.FRAGMENTED
    free = pending.evidence["free"]
    assert isinstance(free, dict)
    assert (free["devices"], free["largest_block"]) == (4, 2)
    assert helps(pending)["fewer_devices"] == {"devices": 2, "starts_now": True}
    assert pending.expected_start_p50_s == NOW_S + 500


def test_devices_beside_which_no_cores_are_left_are_no_block() -> None:
    """n1 has 4 devices and 1 core left, n2 63 cores and no device."""
    fleet = FleetBuilder().node("n1", cpu=8, devices=4).node("n2")
    busy = (running(job("o1", cpu=7), 0),)
    pending = answer(world(fleet, [job("a", devices=1, cpu=2)], running=busy))
    assert pending.code is WaitReason.FRAGMENTED
    free = pending.evidence["free"]
    assert isinstance(free, dict)
    assert (free["devices"], free["largest_block"]) == (4, 0)


def test_a_share_for_which_the_memory_of_the_device_is_gone_is_a_matter_of_capacity() -> None:
    """Half of the device is left, with 30,000 of its 80,000 MiB."""
    half = running(job("o", devices=1, milli=500), 0, (0,), gpu_memory_mib=50_000)
    asked_for = job("a", devices=1, milli=500, gpu_memory_mib=30_001)
    fleet = FleetBuilder().node("n1", devices=1)
    pending = answer(world(fleet, [asked_for], running=(half,)))
    assert pending.code is WaitReason.WAITING_FOR_CAPACITY
    free = pending.evidence["free"]
    assert isinstance(free, dict)
    assert (free["devices"], free["gpu_milli"], free["largest_gpu_memory_mib"]) == (0, 500, 30_000)
    less = replace(asked_for, shape=replace(asked_for.shape, gpu_memory_mib=30_000))
    assert decide(world(fleet, [less], running=(half,)), RULES, now_s=NOW_S, budget_s=1).starts


def test_more_memory_than_a_device_has_never_fits() -> None:
    pending = answer(world(four(), [job("a", devices=1, milli=500, gpu_memory_mib=80_001)]))
    assert pending.code is WaitReason.NEVER_FITS
    largest, asks = pending.evidence["largest_node"], pending.evidence["asked"]
    assert isinstance(largest, dict)
    assert isinstance(asks, dict)
    assert (asks["gpu_memory_mib"], largest["gpu_memory_mib"]) == (80_001, 80_000)


def test_a_full_cluster_is_a_matter_of_capacity() -> None:
    pending = answer(world(four(), [job("a", devices=2)], running=held(0, 1, 2)))
    assert pending.code is WaitReason.WAITING_FOR_CAPACITY
    assert helps(pending) == {"fewer_devices": {"devices": 1, "starts_now": True}}
    assert pending.position == 1
    assert set(pending.priority_parts) == {"priority_class", "age", "size", "qos", "fair_share"}


def asked(snapshot: Snapshot, spec: JobSpec) -> Start | Pending:
    return estimate(snapshot, RULES, spec, now_s=NOW_S)


def test_an_estimate_queues_behind_those_who_wait() -> None:
    """One device is left; a waiting job takes it first."""
    first = job("first", devices=1, submitted_s=NOW_S - 100)
    said = asked(world(four(), [first], running=held(0, 1, 2)), job("new", devices=1))
    assert isinstance(said, Pending)
    assert said.position == 2
    alone = asked(world(four(), running=held(0, 1, 2)), job("new", devices=1))
    assert isinstance(alone, Start)


def test_an_estimate_drops_a_remedy_that_fails_in_the_whole_queue() -> None:
    """With 3 devices `new` stands first by size; with 2 it stands behind the older `other`."""
    other = job("other", devices=2, submitted_s=NOW_S - 1)
    new = job("new", devices=3)
    snapshot = world(four(), [other], running=held(0, 1))
    cycle = answer(replace(snapshot, pending=(other, new)), "new")
    assert helps(cycle)["fewer_devices"] == {"devices": 2, "starts_now": True}
    said = asked(snapshot, new)
    assert isinstance(said, Pending)
    assert "fewer_devices" not in helps(said)


def test_the_parts_of_the_objective_are_as_worked_out() -> None:
    """8 devices of 100 CU and 64 cores of 0.05: 803.2 CU; one job takes 2 devices, 1 core."""
    fleet = FleetBuilder().node("n1", devices=8)
    snapshot = world(fleet, [job("a", devices=2), job("b", devices=2)], tenants=[tenant("t")])
    turns = Turns(snapshot, RULES, now_s=NOW_S)
    objective = Objective(turns)
    plan = decide(snapshot, RULES, now_s=NOW_S, budget_s=1.0)
    one = objective.after(plan.starts[:1])
    assert one.utilisation == pytest.approx(200.05 / 803.2)
    assert one.performance == pytest.approx(0.5)
    assert one.energy == pytest.approx(0.25)
    assert one.shares["t"] == pytest.approx(200.05 / (400 + 2 * 0.05))
    assert LOG_FLOOR == 0.01
    assert objective.value(objective.after(plan.starts)) > objective.value(one)
