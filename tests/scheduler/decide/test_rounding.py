"""Plans in worlds with more ends and windows than the time profile has rows: none goes astray."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.reasons import WaitReason
from scheduler.core.snapshot import JobSpec, Reservation, RunningJob, Snapshot
from scheduler.decide.backfill import HARD_ROWS
from scheduler.decide.cycle import decide
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, with_pending, world

HOUR_S, DAY_S = 3600.0, 86400.0
WEEK_S, MONTH_S = 7 * DAY_S, 30 * DAY_S
RULES = Policy(strategy="rules", remedy_depth=0)
MANY = (0, 7, 8, 17, 100)


def plan_of(snapshot: Snapshot, policy: Policy = RULES) -> Plan:
    plan = decide(snapshot, policy, now_s=snapshot.now_s, budget_s=5.0)
    assert plan.solver.status == "not_needed", plan.solver.note
    return plan


def waits_s(plan: Plan) -> dict[str, float]:
    """Return uid -> seconds from now to the planned start."""
    return {p.uid: (p.planned_p50_s or 0.0) - plan.now_s for p in plan.pending}


def weekly(windows: int, *nodes: int) -> tuple[Reservation, ...]:
    """Set nodes aside for 4 hours every week, the first time in a week."""
    begins = [NOW_S + k * WEEK_S for k in range(1, windows + 1)]
    return tuple(Reservation(f"w{k:03}", at, at + 4 * HOUR_S, nodes) for k, at in enumerate(begins))


def borrowed(
    *held: RunningJob, windows: int, now_s: float = NOW_S, promised: float = 0
) -> Snapshot:
    """x owns the four devices of the first node; y holds them. The other is set aside weekly."""
    tree = [tenant("o", a100=0), tenant("x", under="o", a100=4), tenant("y", under="o", a100=0)]
    asks = job("asks", tenant="x", devices=2, submitted_s=NOW_S - 9000, limit_s=HOUR_S)
    asks = replace(asks, promised_s=promised)
    fleet = FleetBuilder().node("a", devices=4).node("z")
    found = world(fleet, [asks], running=held, tenants=tree, now_s=now_s)
    return replace(found, reservations=weekly(windows, 1))


def held_by_y(uid: str, devices: Sequence[int], limit_s: float) -> RunningJob:
    spec = job(uid, tenant="y", devices=len(devices), limit_s=9000 + limit_s)
    return running(spec, 0, devices, started_s=NOW_S - 9000)


@pytest.mark.parametrize("windows", MANY)
def test_room_is_made_at_once_however_often_another_node_is_set_aside(windows: int) -> None:
    """Whoever is evicted is gone after the 30 s of grace; the job would end in 12 hours."""
    plan = plan_of(borrowed(held_by_y("old", range(4), 12 * HOUR_S), windows=windows))
    assert [one.uid for one in plan.preempts] == ["old"]
    assert waits_s(plan) == {"asks": 30.0}
    assert plan.pending[0].evidence["room_at_s"] == NOW_S + 30


@pytest.mark.parametrize("windows", MANY)
def test_a_promise_of_room_is_not_forgotten_for_windows_on_another_node(windows: int) -> None:
    """Two were told 70 s ago to go within 600 s, so the room is there in 530 s."""
    old = [held_by_y(f"old{i}", [i], 90 * DAY_S) for i in range(4)]
    told = [replace(one, ending_s=NOW_S + 600) for one in old[2:]]
    now_s = NOW_S + 70
    snapshot = borrowed(*old[:2], *told, windows=windows, now_s=now_s, promised=NOW_S)
    plan = plan_of(snapshot, replace(RULES, preemption=PreemptionPolicy(grace_s=600.0)))
    assert plan.preempts == ()
    assert plan.pending[0].code is WaitReason.WAITING_FOR_PREEMPTED_JOBS
    assert waits_s(plan) == {"asks": 530.0}


@pytest.mark.parametrize("windows", MANY)
def test_nodes_that_open_in_an_hour_are_used_then_whatever_follows(windows: int) -> None:
    """8 hours fit between that and the first window; a job of 24 hours is not let in before."""
    fleet = FleetBuilder().node("a", devices=8).node("b", devices=8)
    high = job("high", devices=8, replicas=2, limit_s=8 * HOUR_S, priority=9)
    low = job("low", devices=8, limit_s=DAY_S)
    opening = Reservation("now", NOW_S - HOUR_S, NOW_S + HOUR_S, (0,))
    snapshot = world(fleet, [high, low])
    plan = plan_of(replace(snapshot, reservations=(opening, *weekly(windows, 0, 1))))
    assert plan.starts == ()
    assert waits_s(plan) == {"high": HOUR_S, "low": 9 * HOUR_S}


def test_a_year_of_weekly_windows_leaves_gaps_to_use_in_the_far_weeks() -> None:
    """The device is held for 40 weeks, until the 40th window begins, which lasts for 4 hours.

    So 100 hours fit between that and the 41st. So far away the windows are told apart to a part of
    the wait, and the job is planned for the end of one of the next: that of the last at most.
    """
    fleet = FleetBuilder().node("a", devices=1)
    held = running(job("old", devices=1, limit_s=40 * WEEK_S), 0, [0])
    snapshot = world(fleet, [job("next", devices=1, limit_s=100 * HOUR_S)], running=[held])
    plan = plan_of(replace(snapshot, reservations=weekly(52, 0)))
    true_s = 40 * WEEK_S + 4 * HOUR_S
    assert true_s <= waits_s(plan)["next"] <= 1.25 * true_s


def full_nodes(
    limits_s: Sequence[float], *, free: int = 0
) -> tuple[FleetBuilder, list[RunningJob]]:
    """Return nodes of 8 devices, each held by a job until its limit, and free ones behind them."""
    fleet, held = FleetBuilder(), []
    for i, limit_s in enumerate(limits_s):
        fleet.node(f"n{i:03}", devices=8)
        devices = range(8 * i, 8 * i + 8)
        held.append(running(job(f"old{i:03}", devices=8, limit_s=limit_s), i, devices))
    for i in range(free):
        fleet.node(f"z{i}", devices=8)
    return fleet, held


def test_the_head_of_the_queue_gets_the_first_of_480_ends() -> None:
    """One every 3 minutes for a day; so near they are told apart to 64 s."""
    fleet, held = full_nodes([180.0 * (i + 1) for i in range(480)])
    snapshot = world(fleet, [job("a", devices=8)], running=held, tenants=[tenant("t")])
    assert 180.0 <= waits_s(plan_of(snapshot))["a"] <= 180.0 + 64


def test_one_early_end_is_not_rounded_up_to_the_many_late_ones() -> None:
    """high needs the free node and that which is free in an hour; low would hold the former.

    After an hour moments are told apart to 256 s (2048 / 8); the hour of high ends exactly.
    """
    fleet, held = full_nodes([HOUR_S, *(10 * HOUR_S + i for i in range(95))], free=1)
    high = job("high", devices=8, replicas=2, priority=9, limit_s=HOUR_S)
    low = job("low", devices=8, limit_s=10 * HOUR_S)
    plan = plan_of(world(fleet, [high, low], running=held, tenants=[tenant("t")]))
    assert plan.starts == ()
    found = waits_s(plan)
    assert HOUR_S <= found["high"] <= HOUR_S + 256
    assert found["low"] == found["high"] + HOUR_S


@pytest.mark.parametrize("others", [20, 100, 1000])
def test_whoever_is_let_in_ahead_never_moves_a_planned_start(others: int) -> None:
    """a needs all of a node, of which the last is free in an hour; each minute another job comes.

    Its limit is such that it just ends by the time that is planned for a.
    """
    fleet = FleetBuilder().node("n", devices=8).node("o", cpu=4000, memory_mib=10_000_000)
    runs = [running(job("old", devices=2, limit_s=HOUR_S), 0, (0, 1))]
    ends = (120 + DAY_S * i / others for i in range(others))
    runs += [running(job(f"e{i:04}", limit_s=end_s), 1, ()) for i, end_s in enumerate(ends)]
    waiting = job("a", devices=8, priority=1)
    planned_s = NOW_S + 2 * HOUR_S
    for minute in range(6):
        now_s = NOW_S + 60 * minute
        late = job(f"b{minute}", devices=1, limit_s=planned_s - now_s, submitted_s=now_s)
        queue = [waiting, late] if minute else [waiting]
        plan = plan_of(world(fleet, queue, running=runs, tenants=[tenant("t")], now_s=now_s))
        assert [start.uid for start in plan.starts] == [late.uid] * (minute > 0)
        assert plan.pending[0].planned_p50_s is not None
        assert plan.pending[0].planned_p50_s <= planned_s
        planned_s = plan.pending[0].planned_p50_s
        runs += [RunningJob(late, start.replicas, now_s) for start in plan.starts]


def two_flavors(short: int) -> Snapshot:
    """A device that is free in a minute, and another in a month; the queue has one for that."""
    fleet = FleetBuilder().node("a", devices=1).node("z", devices=1, flavor="h100")
    held = [
        running(job("old", devices=1, limit_s=60.0), 0, [0]),
        running(job("long", devices=1, flavors=("h100",), limit_s=MONTH_S), 1, [1]),
    ]
    return with_pending(
        world(fleet, running=held, tenants=[tenant("t")]),
        [job("far", devices=1, flavors=("h100",), priority=9), *minutes(short)],
    )


def minutes(count: int) -> list[JobSpec]:
    """Return jobs of a minute each, in the order of their names."""
    return [
        job(
            f"j{i:03}",
            devices=1,
            flavors=("a100",),
            limit_s=60.0,
            submitted_s=NOW_S - 9000 + i,
        )
        for i in range(count)
    ]


def test_short_jobs_one_after_the_other_never_wait_for_a_far_end() -> None:
    """The k-th starts after k minutes. While rows are left that is exact, then nearly."""
    found = waits_s(plan_of(two_flavors(short=120)))
    assert found["j080"] == 81 * 60
    assert found["j098"] == pytest.approx(99 * 60, rel=0.01)
    assert found["j119"] == pytest.approx(120 * 60, rel=0.01)
    assert found["far"] == MONTH_S


def test_whoever_is_beyond_the_depth_gets_the_pace_of_those_that_use_the_same_flavors() -> None:
    plan = plan_of(two_flavors(short=8), replace(RULES, backfill_depth=4))
    found = waits_s(plan)
    assert found == {"far": MONTH_S} | {f"j{i:03}": 60.0 * (i + 1) for i in range(8)}
    bases = [p.evidence["expected_start_basis"] for p in plan.pending]
    assert bases == ["plan"] * 4 + ["rate"] * 5


def test_one_that_starts_much_later_than_its_like_does_not_set_their_pace() -> None:
    """huge needs both devices, one of which is held for a month; the others take the other."""
    fleet = FleetBuilder().node("a", devices=2)
    held = [
        running(job("old", devices=1, limit_s=60.0), 0, [0]),
        running(job("long", devices=1, limit_s=MONTH_S), 0, [1]),
    ]
    queue = [job("huge", devices=2, flavors=("a100",), priority=9), *minutes(8)]
    snapshot = world(fleet, queue, running=held, tenants=[tenant("t")])
    found = waits_s(plan_of(snapshot, replace(RULES, backfill_depth=5)))
    assert found["huge"] == MONTH_S
    assert found["j003"] == 240.0  # planned; beyond that each counts huge as one of its like
    assert found["j007"] == 9 * 60.0


def test_a_profile_that_is_full_plans_nobody_else_and_gives_them_the_pace() -> None:
    """However deep the plan is to be: 1,000 jobs of a minute, and 224 rows."""
    snapshot, policy = two_flavors(short=1000), replace(RULES, backfill_depth=10_000)
    plan = plan_of(snapshot, policy)
    found = waits_s(plan)
    turns = Turns(snapshot, policy, now_s=NOW_S)
    for ranked in turns.queue():
        turns.turn(ranked)
    assert len(turns.session.profile.times) == HARD_ROWS
    assert plan.pending[-1].evidence["expected_start_basis"] == "rate"
    for i in range(1000):
        assert 60 * (i + 1) <= found[f"j{i:03}"] <= 1.3 * 60 * (i + 1)
