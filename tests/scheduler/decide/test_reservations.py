"""Nodes that are set aside: who is planned around them, who may use them, and who is told what."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.core.errors import InvalidPlanError, InvalidSnapshotError
from scheduler.core.plan import Plan, Start
from scheduler.core.policy import Policy, PriorityWeights
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import Reservation, Snapshot
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

BY_AGE = Policy(strategy="rules", order=PriorityWeights(fair_share=0.0, size=0.0))
MAINTENANCE = Reservation("m", NOW_S + 1000, NOW_S + 2000, (0,))


def one_node(*waiting: Any, reserved: Reservation = MAINTENANCE, **world_of: Any) -> Snapshot:
    fleet = FleetBuilder().node("n1", devices=2)
    return replace(world(fleet, waiting, **world_of), reservations=(reserved,))


def plan_of(snapshot: Snapshot) -> Plan:
    plan = decide(snapshot, BY_AGE, now_s=NOW_S, budget_s=1.0)
    assert plan.solver.status == "not_needed", plan.solver.note
    return plan


def waits(snapshot: Snapshot, uid: str = "a") -> Pending:
    return next(p for p in plan_of(snapshot).pending if p.uid == uid)


def starts(snapshot: Snapshot) -> set[str]:
    return {start.uid for start in plan_of(snapshot).starts}


def test_a_job_that_ends_before_a_node_is_reserved_starts_there() -> None:
    assert starts(one_node(job("a", devices=1, limit_s=1000))) == {"a"}


def test_a_job_that_would_still_run_then_is_planned_for_the_end_of_it() -> None:
    waiting = waits(one_node(job("a", devices=1, limit_s=1001)))
    assert waiting.code is WaitReason.RESERVED
    assert waiting.expected_start_p90_s == NOW_S + 2000
    assert waiting.evidence["reservations"] == [
        {"id": "m", "start_s": NOW_S + 1000, "end_s": NOW_S + 2000, "nodes": 1, "maintenance": True}
    ]


def test_it_is_told_to_ask_for_less_time_with_a_minute_left_to_act() -> None:
    remedies = {r.code: r.params for r in waits(one_node(job("a", devices=1))).remedies}
    assert remedies["shorter_time_limit"] == {"time_limit_s": 940.0, "starts_now": True}


def test_another_node_is_taken_where_there_is_one() -> None:
    fleet = FleetBuilder().node("n1", devices=1).node("n2", devices=1)
    snapshot = replace(world(fleet, [job("a", devices=1)]), reservations=(MAINTENANCE,))
    (start,) = plan_of(snapshot).starts
    assert [place.node for place in start.replicas] == [1]


def test_a_gang_does_not_begin_between_two_reservations_that_leave_too_little_time() -> None:
    """Free from 2000 to 2500 only, then from 3000 on: 600 s fit after 3000."""
    second = Reservation("n", NOW_S + 2500, NOW_S + 3000, (0,))
    snapshot = one_node(job("a", devices=2, limit_s=600, replicas=1), reserved=second)
    both = replace(snapshot, reservations=(replace(MAINTENANCE, start_s=NOW_S - 9), second))
    assert waits(both).expected_start_p90_s == NOW_S + 3000


@pytest.mark.parametrize(
    "reserved",
    [
        pytest.param(replace(MAINTENANCE, tenants=frozenset({"t"})), id="its tenant's"),
        pytest.param(replace(MAINTENANCE, jobs=frozenset({"a"})), id="its own"),
        pytest.param(replace(MAINTENANCE, start_s=NOW_S - 9, end_s=NOW_S), id="over"),
    ],
)
def test_who_may_use_a_reservation_is_not_held_up_by_it(reserved: Reservation) -> None:
    snapshot = one_node(job("a", devices=1, limit_s=5000), reserved=reserved)
    assert starts(snapshot) == {"a"}


def test_what_is_reserved_for_a_tenant_is_so_for_those_below_it_and_for_nobody_beside_it() -> None:
    tree = [tenant("lab", a100=0), tenant("t", under="lab", a100=2), tenant("other", a100=2)]
    owned = replace(MAINTENANCE, tenants=frozenset({"lab"}))
    jobs = [job("a", devices=1), job("b", tenant="other", devices=1)]
    snapshot = one_node(*jobs, reserved=owned, tenants=tree)
    plan = plan_of(snapshot)
    assert [start.uid for start in plan.starts] == ["a"]
    assert waits(snapshot, "b").code is WaitReason.RESERVED
    verify(snapshot, plan)
    beside = replace(owned, tenants=frozenset({"other"}))
    with pytest.raises(InvalidPlanError, match="in the way of reservation 'm'"):
        verify(replace(snapshot, reservations=(beside,)), plan)


def test_others_of_the_same_kind_do_not_slip_in_with_the_owner() -> None:
    owned = replace(MAINTENANCE, jobs=frozenset({"a"}))
    snapshot = one_node(job("a", devices=1), job("b", devices=1), reserved=owned)
    assert starts(snapshot) == {"a"}
    assert waits(snapshot, "b").code is WaitReason.RESERVED


def test_who_runs_there_already_is_left_alone_and_waited_for() -> None:
    held = [running(job("old", devices=2, limit_s=2500), 0, (0, 1))]
    waiting = waits(one_node(job("a", devices=1), running=held))
    assert waiting.code is WaitReason.WAITING_FOR_CAPACITY
    assert waiting.expected_start_p90_s == NOW_S + 2500


def test_the_verifier_finds_a_start_in_the_way_of_a_reservation() -> None:
    free = replace(one_node(job("a", devices=1)), reservations=())
    plan = plan_of(free)
    assert isinstance(plan.starts[0], Start)
    verify(free, plan)
    with pytest.raises(InvalidPlanError, match="in the way of reservation 'm'"):
        verify(replace(free, reservations=(MAINTENANCE,)), plan)


WRONG = {
    "ends before it begins": replace(MAINTENANCE, end_s=NOW_S),
    "never ends": replace(MAINTENANCE, end_s=float("inf")),
    "begins at no time": replace(MAINTENANCE, start_s=float("nan")),
    "of no known node": replace(MAINTENANCE, nodes=(1,)),
}


@pytest.mark.parametrize("reserved", WRONG.values(), ids=WRONG.keys())
def test_a_reservation_that_contradicts_itself_is_refused(reserved: Reservation) -> None:
    with pytest.raises(InvalidSnapshotError, match="reservation 'm'"):
        plan_of(one_node(reserved=reserved))


@pytest.mark.parametrize("strategy", ["rules", "optimising"])
@pytest.mark.parametrize("placement", ["pack", "spread"])
@pytest.mark.parametrize("kept", [0, 1, 2])
def test_who_may_use_reserved_nodes_leaves_the_open_ones_to_others(
    kept: int, placement: str, strategy: str
) -> None:
    """Each job fills a node; two have no reservation, and find room only if `a` uses its own."""
    fleet = FleetBuilder().node("n1", devices=4).node("n2", devices=4).node("n3", devices=4)
    queue = [job("a", devices=4, priority=5), job("b", devices=4), job("c", devices=4)]
    mine = Reservation("r", NOW_S - 9, NOW_S + 9000, (kept,), jobs=frozenset({"a"}))
    snapshot = replace(world(fleet, queue), reservations=(mine,))
    policy = Policy(strategy=strategy, placement=placement)
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
    nodes = {start.uid: start.replicas[0].node for start in plan.starts}
    assert (nodes["a"], len(nodes)) == (kept, 3)


def test_a_gang_takes_as_many_of_its_reserved_nodes_as_it_can() -> None:
    """Three replicas of 4: two on the reserved n2 and n3, one on the first open node, n1."""
    fleet = FleetBuilder().node("n1", devices=4).node("n2", devices=4).node("n3", devices=4)
    fleet = fleet.node("n4", devices=4)
    mine = Reservation("r", NOW_S + 600, NOW_S + 9000, (1, 2), frozenset({"t"}))
    snapshot = world(fleet, [job("a", devices=4, replicas=3), job("b", tenant="u", devices=4)])
    starts = plan_of(replace(snapshot, reservations=(mine,))).starts
    nodes = {start.uid: [place.node for place in start.replicas] for start in starts}
    assert nodes == {"a": [1, 2, 0], "b": [3]}


def test_a_rack_that_is_reserved_for_a_job_goes_before_another_one() -> None:
    """Both racks hold the gang of two; n1 and n2 of the first are open to everybody."""
    fleet = FleetBuilder().node("n1", devices=4, rack="r1").node("n2", devices=4, rack="r1")
    fleet = fleet.node("n3", devices=4, rack="r2").node("n4", devices=4, rack="r2")
    mine = Reservation("r", NOW_S - 9, NOW_S + 9000, (2, 3), frozenset({"t"}))
    snapshot = world(fleet, [job("a", devices=4, replicas=2, within="rack")])
    (start,) = plan_of(replace(snapshot, reservations=(mine,))).starts
    assert sorted(place.node for place in start.replicas) == [2, 3]


def test_a_job_is_planned_on_the_nodes_that_are_reserved_for_it() -> None:
    """Both nodes are free in an hour. `a` is planned on n2, so that `b` has n1 then."""
    fleet = FleetBuilder().node("n1", devices=2).node("n2", devices=2)
    runs = [running(job(f"r{n}", devices=2), n, [2 * n, 2 * n + 1]) for n in (0, 1)]
    queue = [job("a", devices=2, priority=5), job("b", devices=2)]
    mine = Reservation("r", NOW_S - 9, NOW_S + 90_000, (1,), jobs=frozenset({"a"}))
    snapshot = replace(world(fleet, queue, running=runs), reservations=(mine,))
    expected = {one.uid: one.expected_start_p90_s for one in plan_of(snapshot).pending}
    assert expected == {"a": NOW_S + 3600, "b": NOW_S + 3600}
