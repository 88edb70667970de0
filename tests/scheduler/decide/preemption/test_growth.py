"""Elastic jobs that grow into room that nobody else could use."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import JobSpec, QuotaLine, ReplicaPlacement, RunningJob, Snapshot
from scheduler.core.topology import Level, TopologyWish
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, tenant, world

RULES = Policy(strategy="rules")


def plan_of(snapshot: Snapshot) -> Plan:
    plan = decide(snapshot, RULES, now_s=NOW_S, budget_s=1.0)
    assert plan.solver.status != "error", plan.solver.note
    return plan


def elastic(**changes: Any) -> RunningJob:
    """Return a job that runs one of its one to three replicas for 700 s, saved 100 s ago."""
    spec = job("e", devices=1, replicas=1, replicas_max=3, limit_s=86_400)
    spec = replace(spec, **{k: v for k, v in changes.items() if k in JobSpec.__slots__})
    own = {k: v for k, v in changes.items() if k in RunningJob.__slots__}
    places = (ReplicaPlacement(0, (0,), 1000, 80_000),)
    grown = RunningJob(spec, places, NOW_S - 700, checkpointed_s=NOW_S - 100)
    return replace(grown, **own)


def alone(running: RunningJob, *queue: JobSpec, quota: int = 4) -> Snapshot:
    fleet = FleetBuilder().node("n1", devices=4)
    return world(fleet, queue, running=[running], tenants=[tenant("t", a100=quota)])


def test_a_job_grows_to_its_most_replicas_and_keeps_those_it_has() -> None:
    (resize,) = plan_of(alone(elastic())).resizes
    assert (resize.uid, resize.beneficiary) == ("e", "")
    assert [place.devices for place in resize.replicas] == [(0,), (1,), (2,)]


def test_a_job_below_its_least_size_grows_to_it_or_not_at_all() -> None:
    """It runs one of two to three replicas: one more is enough, none of two more is not."""
    short = elastic(replicas_min=2)
    assert [len(resize.replicas) for resize in plan_of(alone(short, quota=2)).resizes] == [2]
    plan = plan_of(alone(elastic(replicas_min=3), quota=2))
    assert (plan.resizes, plan.solver.status) == ((), "not_needed")


def test_a_job_grows_on_what_it_has_whatever_it_may_have_asked_for_since() -> None:
    plan = plan_of(alone(elastic(flavors=("h100",), min_throughput=1.0)))
    assert plan.solver.status == "not_needed"
    assert [len(resize.replicas) for resize in plan.resizes] == [3]


def test_a_job_grows_no_further_than_its_quota() -> None:
    (resize,) = plan_of(alone(elastic(), quota=2)).resizes
    assert len(resize.replicas) == 2
    assert plan_of(alone(elastic(), quota=1)).resizes == ()


STAYS: dict[str, dict[str, Any]] = {
    "it has just begun": {"started_s": NOW_S - 599},
    "it may not be disturbed": {"preemptible": False},
    "it was told to end": {"ending_s": NOW_S + 10},
    "it has all that it may have": {"replicas_max": 1},
    "its time is up": {"time_limit_s": 700.0},
    # two more for 9 s after the grace of 30 s against 100 s of work lost
    "it would lose more than it gains": {"time_limit_s": 739.0},
}


@pytest.mark.parametrize("changes", STAYS.values(), ids=STAYS.keys())
def test_a_job_keeps_its_size_where(changes: dict[str, Any]) -> None:
    assert plan_of(alone(elastic(**changes))).resizes == ()


def test_nobody_grows_while_a_job_waits_that_could_use_the_room() -> None:
    """The waiting job needs all four devices: room for it in an hour, and nobody grows into it."""
    waits = job("w", devices=4)
    assert plan_of(alone(elastic(), waits)).resizes == ()


def test_a_job_that_waits_for_another_flavor_is_no_reason_not_to_grow() -> None:
    fleet = FleetBuilder().node("n1", devices=4).node("n2", devices=1, flavor="h100")
    busy = RunningJob(
        job("b", devices=1, limit_s=9000), (ReplicaPlacement(1, (4,), 1000, 80_000),), NOW_S
    )
    waits = job("w", devices=1, flavors=["h100"])
    plan = plan_of(world(fleet, [waits], running=[elastic(), busy]))
    assert [(r.uid, len(r.replicas)) for r in plan.resizes] == [("e", 3)]


def beside(limit: int | None, devices: int = 1) -> Snapshot:
    """Eight devices: e of t has 1, a job of u 2, 5 are idle; u owns 2 and t 6.

    A job of u waits, which would borrow.
    """
    runs = [
        elastic(),
        RunningJob(job("r", tenant="u", devices=2), (ReplicaPlacement(0, (1, 2), 1000, 0),), NOW_S),
    ]
    lines = {"t": QuotaLine(6000), "u": QuotaLine(2000, borrowing_limit=limit)}
    tree = [tenant("all"), *(tenant(t, under="all", a100=line) for t, line in lines.items())]
    waits = job("w", tenant="u", devices=devices)
    return world(FleetBuilder().node("n1", devices=8), [waits], running=runs, tenants=tree)


def test_a_job_that_its_own_borrowing_limit_keeps_waiting_is_no_reason_not_to_grow() -> None:
    """u holds 2, may borrow 0: whatever t leaves idle, w cannot use."""
    plan = plan_of(beside(0))
    assert [pending.code for pending in plan.pending] == ["waiting_for_quota"]
    assert [(r.uid, len(r.replicas)) for r in plan.resizes] == [("e", 3)]


def test_a_job_that_waits_for_quota_which_elastic_jobs_hold_is_one_not_to_grow() -> None:
    """The tree has 8 in all, 3 are held: w asks for 6, which are there once e gives its 1 back."""
    plan = plan_of(beside(None, devices=6))
    assert [pending.code for pending in plan.pending] == ["waiting_for_quota"]
    assert plan.resizes == ()


def test_a_job_of_the_same_tenant_that_waits_for_quota_is_one_not_to_grow() -> None:
    """t owns 2 of 8 devices and may borrow none; e has 1 of them, w wants 2: 1 is left."""
    lines = [tenant("t", a100=2)]
    waits = job("w", devices=2)
    fleet = FleetBuilder().node("n1", devices=8)
    plan = plan_of(world(fleet, [waits], running=[elastic()], tenants=lines))
    assert [pending.code for pending in plan.pending] == ["waiting_for_quota"]
    assert plan.resizes == ()


def test_a_start_and_a_growth_never_share_a_place() -> None:
    starts = [job(f"s{k}", devices=1) for k in range(2)]
    plan = plan_of(alone(elastic(), *starts))
    assert len(plan.starts) == 2
    (resize,) = plan.resizes
    assert len(resize.replicas) == 2


@pytest.mark.parametrize(
    "wish",
    [
        {"topology": TopologyWish(Level.NODE, required=True)},
        {"placement_wish": "one_per_node"},
    ],
)
def test_a_job_whose_replicas_must_stand_in_some_way_keeps_those_it_has(
    wish: dict[str, object],
) -> None:
    assert plan_of(alone(elastic(**wish))).resizes == ()


def test_a_job_that_only_prefers_to_stand_near_grows() -> None:
    near = elastic(topology=TopologyWish(Level.NODE, required=False))
    assert len(plan_of(alone(near)).resizes) == 1


def near_a_full_node(*queue: JobSpec, quota: int = 99, **setting: Any) -> Plan:
    """e holds one of four devices on n1, another all eight of n2 for two hours."""
    fleet = FleetBuilder().node("n1", devices=4).node("n2", devices=8)
    full = tuple(ReplicaPlacement(1, (k,), 1000, 80_000) for k in range(4, 12))
    busy = RunningJob(job("b", devices=1, replicas=8, limit_s=7200), full, NOW_S)
    snapshot = world(fleet, queue, running=[elastic(), busy], tenants=[tenant("t", a100=quota)])
    return decide(snapshot, replace(RULES, **setting), now_s=NOW_S, budget_s=1.0)


def test_a_job_that_waits_for_a_larger_node_is_no_reason_not_to_grow() -> None:
    """w needs eight devices on a node, planned on n2 in two hours; n1 has four in all."""
    plan = near_a_full_node(job("w", devices=8))
    assert [(r.uid, len(r.replicas)) for r in plan.resizes] == [("e", 3)]
    assert near_a_full_node(job("w", devices=4)).resizes == ()


def test_nobody_grows_into_the_quota_of_a_job_that_waits_elsewhere() -> None:
    """1 + 8 are held; with 18 of quota w may have its 8, but not after e took 2: 18 - 9 - 2 = 7."""
    assert near_a_full_node(job("w", devices=8), quota=18).resizes == ()
    assert len(near_a_full_node(job("w", devices=8), quota=19).resizes) == 1


def test_nobody_grows_under_a_power_cap_while_a_job_waits() -> None:
    assert near_a_full_node(job("w", devices=8), power_cap_w=99_999.0).resizes == ()
    assert len(near_a_full_node(power_cap_w=99_999.0).resizes) == 1


def test_a_job_grows_only_where_nobody_waits() -> None:
    """w fits n3 alone, which is taken but for one device; e takes one more on n1, not that one."""
    fleet = FleetBuilder().node("n1", devices=2).node("n3", devices=4)
    taken = RunningJob(
        job("b", devices=3, limit_s=7200), (ReplicaPlacement(1, (2, 3, 4), 1000, 80_000),), NOW_S
    )
    tree = [tenant("t", a100=99)]
    queue = [job("w", devices=4)]
    plan = plan_of(world(fleet, queue, running=[elastic(), taken], tenants=tree))
    (resize,) = plan.resizes
    assert [place.devices for place in resize.replicas] == [(0,), (1,)]
    empty = plan_of(world(fleet, running=[elastic(), taken], tenants=tree))
    assert [len(resize.replicas) for resize in empty.resizes] == [3]
