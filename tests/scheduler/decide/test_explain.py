"""One reason a test, with its numbers and what would help."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.core.plan import Start
from scheduler.core.policy import Policy
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import JobSpec, RunningJob, Snapshot
from scheduler.decide.cycle import decide, estimate
from scheduler.decide.objective import LOG_FLOOR, Objective
from scheduler.decide.remedies import rounded_down
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
    assert pending.evidence["not_before_s"] == NOW_S + 30
    assert pending.expected_start_p50_s == NOW_S + 30


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
    assert helps(pending) == {
        "fewer_devices": {"devices": 1, "starts_now": True},
        "later": {"start_s": NOW_S + 600, "starts_now": False},
    }
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


def test_advice_that_fails_in_the_whole_queue_is_not_given() -> None:
    """With 3 devices `new` stands first by size; with 2 it stands behind the older `other`."""
    other = job("other", devices=2, submitted_s=NOW_S - 1)
    new = job("new", devices=3)
    snapshot = world(four(), [other], running=held(0, 1))
    cycle = answer(replace(snapshot, pending=(other, new)), "new")
    assert "fewer_devices" not in helps(cycle)
    said = asked(snapshot, new)
    assert isinstance(said, Pending)
    assert "fewer_devices" not in helps(said)


# -- what would help: the smallest change, and true when tried ---------------------------------


def test_the_least_is_given_up_that_has_to_be() -> None:
    """5 of 16 devices are free: 12 asked for, 5 advised, not the next power of two."""
    fleet = FleetBuilder().node("n1", devices=16)
    pending = answer(world(fleet, [job("a", devices=12)], running=held(*range(11))))
    assert helps(pending)["fewer_devices"] == {"devices": 5, "starts_now": True}


def test_cpu_and_memory_are_given_up_in_cores_and_quarters_of_a_gibibyte() -> None:
    """4 cores are busy: 60 of 64 are left. 1,000 MiB are held: 511,000 left, 1,996 x 256."""
    busy = (running(job("old", cpu=4), 0),)
    fleet = FleetBuilder().node("n1")
    much_cpu = answer(world(fleet, [job("a", cpu=63)], running=busy))
    assert helps(much_cpu)["less_cpu"] == {"cpu_milli": 60_000, "starts_now": True}
    much_memory = answer(world(fleet, [job("a", memory_mib=511_500)], running=busy))
    assert helps(much_memory)["less_memory"] == {"memory_mib": 510_976, "starts_now": True}


def test_a_gang_is_told_how_many_replicas_would_start() -> None:
    snapshot = world(four(), [job("a", devices=1, replicas=4)], running=held(0))
    assert helps(answer(snapshot))["fewer_replicas"] == {"replicas": 3, "starts_now": True}


def test_a_share_that_is_too_large_is_told_the_largest_that_is_free() -> None:
    half = running(job("o", devices=1, milli=300), 0, (0,), gpu_memory_mib=24_000)
    snapshot = world(
        FleetBuilder().node("n1", devices=1), [job("a", devices=1, milli=900)], running=(half,)
    )
    assert helps(answer(snapshot))["smaller_share"] == {"gpu_milli": 700, "starts_now": True}


def test_too_much_memory_of_a_shared_device_is_told_what_is_left() -> None:
    """50,000 of 80,000 MiB are held; 117 x 256 = 29,952 of the 30,000 left."""
    half = running(job("o", devices=1, milli=500), 0, (0,), gpu_memory_mib=50_000)
    wants = job("a", devices=1, milli=500, gpu_memory_mib=40_000)
    pending = answer(world(FleetBuilder().node("n1", devices=1), [wants], running=(half,)))
    assert helps(pending)["less_gpu_memory"] == {"gpu_memory_mib": 29_952, "starts_now": True}


def test_more_memory_than_any_device_has_is_told_the_most_there_is() -> None:
    """312 x 256 = 79,872 of 80,000 MiB."""
    wants = job("a", devices=1, milli=500, gpu_memory_mib=80_001)
    pending = answer(world(four(), [wants]))
    assert pending.code is WaitReason.NEVER_FITS
    assert helps(pending)["less_gpu_memory"] == {"gpu_memory_mib": 79_872, "starts_now": True}


LENDING = (
    tenant("all", a100=0),
    tenant("t", under="all", a100=1),
    tenant("u", under="all", a100=3),
)


def test_what_may_not_be_evicted_may_not_borrow_and_is_told_so() -> None:
    """t owns 1 and asks for 2: it could borrow 1 of u's 3, but u could never have it back."""
    firm = replace(job("a", devices=2), preemptible=False)
    pending = answer(world(four(), [firm], tenants=LENDING))
    assert pending.code is WaitReason.EXCEEDS_MAX_QUOTA
    assert pending.evidence["may_borrow"] is False
    assert helps(pending)["preemptible"] == {"starts_now": True}
    one = replace(job("a", devices=1), preemptible=False)
    other = running(replace(job("old", devices=1, limit_s=600), preemptible=False), 0, (0,))
    waits = answer(world(four(), [one], running=[other], tenants=LENDING))
    assert waits.code is WaitReason.WAITING_FOR_QUOTA
    assert waits.evidence["available_milli"] == 0
    assert helps(waits)["preemptible"] == {"starts_now": True}
    assert waits.expected_start_p90_s == NOW_S + 600


def test_what_its_tenant_borrows_for_other_jobs_does_not_stand_in_a_firm_jobs_way() -> None:
    """t owns 1 and holds 2, that may be evicted: the lender can have those back, so it starts."""
    one = replace(job("a", devices=1), preemptible=False)
    snapshot = world(four(), [one], running=held(0, 1), tenants=LENDING)
    assert [start.uid for start in decide(snapshot, RULES, now_s=NOW_S, budget_s=1).starts] == ["a"]


def test_what_is_held_after_a_cut_is_said_to_be_above_the_quota() -> None:
    """t owns 1 of the 2 that the tree has left and holds 3: 1 more than it could ever hold."""
    cut = (
        tenant("all", a100=0),
        tenant("t", under="all", a100=1),
        tenant("u", under="all", a100=1),
    )
    pending = answer(world(four(), [job("a", devices=1)], running=held(0, 1, 2), tenants=cut))
    assert pending.code is WaitReason.WAITING_FOR_QUOTA
    assert pending.evidence["above_milli"] == 1000
    assert pending.evidence["available_milli"] == 0


def test_an_owner_is_told_what_others_hold_of_its_quota() -> None:
    """t owns 4, holds 1 and asks for 3; u, which owns nothing, holds 3: none is left of t's 4."""
    lent = (tenant("all"), tenant("t", under="all", a100=4), tenant("u", under="all", a100=0))
    runs = (*held(0), running(job("lent", tenant="u", devices=3), 0, (1, 2, 3)))
    pending = answer(world(four(), [job("a", devices=3)], running=runs, tenants=lent))
    assert pending.code is WaitReason.WAITING_FOR_QUOTA
    names = ("used_milli", "nominal_milli", "available_milli", "held_by_others_milli")
    assert [pending.evidence[name] for name in names] == [1000, 4000, 0, 3000]


def test_what_its_children_hold_is_not_said_to_be_an_inner_tenants_own_use() -> None:
    """kid holds its own 4 of 4. t above it owns and holds nothing, and finds nothing to borrow.

    Where t owns 1 of the 4 itself, kid holds 1 above its own 3: that one.
    """
    four_held = (running(job("old", tenant="kid", devices=4), 0, (0, 1, 2, 3)),)
    names = ("used_milli", "nominal_milli", "available_milli")
    none = (tenant("t", a100=0), tenant("kid", under="t", a100=4))
    pending = answer(world(four(), [job("a", devices=1)], running=four_held, tenants=none))
    assert [pending.evidence[name] for name in names] == [0, 0, 0]
    assert "held_by_others_milli" not in pending.evidence
    one = (tenant("t", a100=1), tenant("kid", under="t", a100=3))
    pending = answer(world(four(), [job("a", devices=1)], running=four_held, tenants=one))
    assert [pending.evidence[name] for name in names] == [0, 1000, 0]
    assert pending.evidence["held_by_others_milli"] == 1000


def of_speeds(asked: str, **units: float) -> Snapshot:
    """Return a world of one free device of each flavor but the one that is asked for."""
    fleet = FleetBuilder()
    for name, cu in units.items():
        fleet.flavor(name, cu=cu).node(name, devices=1, flavor=name)
    runs: list[RunningJob] = []
    if asked in units:
        at = sorted(units).index(asked)
        runs = [running(job("old", devices=1, limit_s=90_000, flavors=[asked]), at, [at])]
    return world(fleet, [job("a", devices=1, flavors=[asked])], running=runs)


def test_the_other_flavor_that_helps_is_the_one_most_like_it() -> None:
    """Of 989 CU h100 has 1.0; a0 5 / 989, a100 312 / 989, so this is nearer, whatever its name.

    To v100 of 125, a0 is nearer than a100: 120 against 187.
    """
    advised = helps(answer(of_speeds("h100", a0=5.0, a100=312.0, h100=989.0)))
    assert advised["other_flavor"] == {"flavor": "a100", "starts_now": True}
    advised = helps(answer(of_speeds("v100", a0=5.0, a100=312.0, v100=125.0)))
    assert advised["other_flavor"]["flavor"] == "a0"


def test_of_two_flavors_that_are_equally_like_it_the_first_by_name_helps() -> None:
    """b200, that is not here, may be any: the fastest are nearest, and a100 and b100 are equal."""
    advised = helps(answer(of_speeds("b200", b100=300.0, a100=300.0, a0=1.0)))
    assert advised["other_flavor"]["flavor"] == "a100"


def fast_is_taken(asked: float) -> Snapshot:
    """One h100 of 989 CU is held; two a100 of 312 and one a0 of 5 are free: 0.315 and 0.00506."""
    fleet = FleetBuilder().flavor("a0", cu=5.0).flavor("a100", cu=312.0).flavor("h100", cu=989.0)
    fleet.node("n0", devices=1, flavor="a0").node("n1", devices=2, flavor="a100")
    fleet.node("n2", devices=1, flavor="h100")
    runs = [running(job("old", devices=1, limit_s=90_000), 2, [3])]
    return world(fleet, [job("a", devices=1, min_throughput=asked)], running=runs)


def test_less_speed_helps_and_the_reason_says_that_it_is_in_the_way() -> None:
    """312 / 989 = 0.31547, so 0.31 is the best that two digits may promise; it has 1 replica."""
    pending = answer(fast_is_taken(0.5))
    assert pending.code is WaitReason.WAITING_FOR_CAPACITY
    assert (pending.evidence["min_throughput"], pending.evidence["replicas_anywhere"]) == (0.5, 1)
    assert helps(pending)["lower_min_throughput"] == {"min_throughput": 0.31, "starts_now": True}


def test_two_jobs_of_a_kind_are_told_their_own_least_throughput() -> None:
    """0.5 and 0.9 both leave h100 alone, so that the two need the same places."""
    snapshot = fast_is_taken(0.5)
    other = job("b", devices=1, min_throughput=0.9)
    snapshot = replace(snapshot, pending=(*snapshot.pending, other))
    told = {uid: answer(snapshot, uid).evidence["min_throughput"] for uid in ("a", "b")}
    assert told == {"a": 0.5, "b": 0.9}


def test_slower_devices_without_quota_are_not_said_to_help() -> None:
    """t owns only its h100 and names nothing else."""
    snapshot = replace(fast_is_taken(0.5), tenants=(tenant("t", a0=0, a100=0, h100=2),))
    pending = answer(snapshot)
    assert pending.code is WaitReason.WAITING_FOR_CAPACITY
    assert "min_throughput" not in pending.evidence
    assert "lower_min_throughput" not in helps(pending)


def test_a_throughput_that_nothing_has_is_lowered_to_the_best_there_is() -> None:
    """Without the h100 the a100 is the fastest, 1.0; measured at 0.29 there and 0.004 on a0."""
    fleet = FleetBuilder().flavor("a0", cu=5.0).flavor("a100", cu=312.0)
    fleet.node("n0", devices=1, flavor="a0").node("n1", devices=2, flavor="a100")
    known = {("batch", "a0"): 0.004, ("batch", "a100"): 0.29}
    snapshot = replace(world(fleet, [job("a", devices=1, min_throughput=0.9)]), throughputs=known)
    pending = answer(snapshot)
    assert pending.code is WaitReason.NO_MATCHING_FLAVOR
    assert helps(pending) == {"lower_min_throughput": {"min_throughput": 0.29, "starts_now": True}}
    on_a0 = replace(snapshot, pending=(replace(snapshot.pending[0], flavors=("a0",)),))
    assert helps(answer(on_a0))["lower_min_throughput"]["min_throughput"] == 0.004


@pytest.mark.parametrize(
    ("amount", "rounded"),
    [(0.31547, 0.31), (0.29, 0.29), (0.0050556, 0.005), (0.0999, 0.099), (1.0, 1.0), (0.0, 0.0)],
)
def test_a_throughput_is_rounded_down_to_two_digits(amount: float, rounded: float) -> None:
    assert rounded_down(amount) == rounded


def test_to_do_nothing_helps_at_the_planned_start() -> None:
    snapshot = world(four(), [job("a", devices=2)], running=held(0, 1, 2))
    start_s = helps(answer(snapshot))["later"]["start_s"]
    assert start_s == NOW_S + 600
    then = world(four(), [job("a", devices=2)], now_s=NOW_S + 600)
    assert decide(then, RULES, now_s=NOW_S + 600, budget_s=1).starts


def test_what_a_user_can_do_alone_and_what_costs_least_comes_first() -> None:
    """One device of 4 is left and quota for one: 1 of 2 devices, or more quota."""
    snapshot = world(four(), [job("a", devices=2)], running=held(0), tenants=[tenant("t", a100=2)])
    assert [remedy.code for remedy in answer(snapshot).remedies][:2] == [
        "fewer_devices",
        "ask_for_quota",
    ]


def test_advice_in_a_queue_too_long_to_try_it_in_promises_nothing() -> None:
    """With 2 devices, not 3, `a` would stand behind 3,000 that wait ten hours longer."""
    others = [job(f"o{i:04d}", devices=1, submitted_s=NOW_S - 36_000) for i in range(3000)]
    snapshot = world(four(), [*others, job("a", devices=3)], running=held(0, 1))
    remedy = helps(answer(snapshot))["fewer_devices"]
    assert remedy == {"devices": 2, "starts_now": False}


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
