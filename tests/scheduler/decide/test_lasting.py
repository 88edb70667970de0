"""When the last plan is good for another cycle, and when it is not."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy, PreemptionPolicy, PriorityWeights
from scheduler.core.snapshot import Expectation, Reservation, Snapshot
from scheduler.decide.cycle import decide
from scheduler.decide.lasting import Decided, carried_over, remembered
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

NOBODY_EVICTED = PreemptionPolicy(by_reclaim=False, by_fair_share=False)
POLICY = Policy(strategy="rules", preemption=NOBODY_EVICTED)


def full(*, limit_s: float = 3600.0, submitted_s: float = NOW_S - 10, **more: float) -> Snapshot:
    """One device, held for `limit_s` from now on, and one job that waits for it."""
    held = [running(job("old", devices=1, limit_s=limit_s), 0, (0,))]
    waiting = [job("a", devices=1, submitted_s=submitted_s, **more)]  # type: ignore[arg-type]
    snapshot = world(FleetBuilder().node("n1", devices=1), waiting, running=held)
    return replace(snapshot, usage_decayed={"t": 0.5})


def decided(snapshot: Snapshot, policy: Policy = POLICY) -> Decided:
    return Decided(snapshot, policy, decide(snapshot, policy, now_s=NOW_S, budget_s=1.0))


def lasts_s(snapshot: Snapshot, policy: Policy = POLICY) -> float:
    return decided(snapshot, policy).plan.lasts_until_s - NOW_S


def later(last: Decided, passed_s: float) -> Plan | None:
    now_s = NOW_S + passed_s
    return carried_over(last, replace(last.snapshot, now_s=now_s), last.policy, now_s=now_s)


def test_a_plan_lasts_a_minute_where_nothing_ends_before() -> None:
    last = decided(full())
    kept = later(last, 59.0)
    assert kept == replace(last.plan, now_s=NOW_S + 59.0, carried_from_s=NOW_S)
    assert later(last, 60.0) is None


def test_time_that_runs_backwards_is_decided_anew() -> None:
    assert later(decided(full()), -1.0) is None


SHORTER = {
    "a running job ends": (full(limit_s=20.0), POLICY, 20.0),
    "a back-off is over": (full(not_before_s=NOW_S + 15), POLICY, 15.0),
    "a job is submitted by a clock that is ahead": (full(submitted_s=NOW_S + 5), POLICY, 5.0),
    "a job has aged as far as it can": (
        full(submitted_s=NOW_S - 90),
        replace(POLICY, order=PriorityWeights(age_max_s=100.0)),
        10.0,
    ),
    "a job is out of patience": (
        full(submitted_s=NOW_S - 90),
        replace(POLICY, patience_s=97.0),
        7.0,
    ),
    "a job has waited long enough to evict others": (
        full(submitted_s=NOW_S - 20),
        replace(POLICY, preemption=PreemptionPolicy(delay_s=50.0)),
        30.0,
    ),
    "a running job may be evicted": (
        full(submitted_s=NOW_S - 300),
        replace(POLICY, preemption=PreemptionPolicy(min_runtime_s=40.0)),
        40.0,
    ),
}


@pytest.mark.parametrize(
    ("snapshot", "policy", "expected_s"),
    [pytest.param(*case, id=name) for name, case in SHORTER.items()],
)
def test_a_plan_lasts_until(snapshot: Snapshot, policy: Policy, expected_s: float) -> None:
    assert lasts_s(snapshot, policy) == pytest.approx(expected_s)


def test_a_plan_lasts_until_a_job_overtakes_one_that_is_fully_aged() -> None:
    """Age gives 300 in 100 s: a has them all, b has 210 and gains 3 a second until it has, too.

    Size gives 50 for all four devices: 12.5 for a and 37.5 for b. So a leads by 65, for 65 / 3 s.
    """
    policy = replace(POLICY, order=PriorityWeights(age_max_s=100.0))
    held = [running(job("old", devices=4), 0, (0, 1, 2, 3))]
    waiting = [
        job("a", devices=1, submitted_s=NOW_S - 200),
        job("b", devices=3, submitted_s=NOW_S - 70),
    ]
    snapshot = world(FleetBuilder().node("n1", devices=4), waiting, running=held)
    assert lasts_s(snapshot, policy) == pytest.approx(65 / 3)


def test_a_plan_that_starts_somebody_or_waits_for_one_that_overruns_does_not_last() -> None:
    idle = world(FleetBuilder().node("n1", devices=1), [job("a", devices=1)])
    assert decided(idle).plan.lasts_until_s == 0.0
    late = [running(job("old", devices=1, limit_s=60.0), 0, (0,), started_s=NOW_S - 61)]
    overrun = world(FleetBuilder().node("n1", devices=1), [job("a", devices=1)], running=late)
    assert later(decided(overrun), 0.0) is None


def test_expected_starts_of_a_plan_carried_over_are_never_in_the_past() -> None:
    """Who holds the device has used half its hour, and all of the past ended just after that."""
    held = [running(job("old", devices=1), 0, (0,), started_s=NOW_S - 1800)]
    snapshot = world(FleetBuilder().node("n1", devices=1), [job("a", devices=1)], running=held)
    snapshot = replace(snapshot, runtime_ratios=(0.5025,) * 20)
    last = decided(snapshot)
    (waits,) = last.plan.pending
    assert waits.expected_start_p50_s == pytest.approx(NOW_S + 9)
    kept = later(last, 20.0)
    assert kept
    (said,) = kept.pending
    assert said == replace(waits, expected_start_p50_s=NOW_S + 20, expected_start_p90_s=NOW_S + 20)


def test_a_plan_that_is_carried_over_again_is_measured_from_where_it_was_made() -> None:
    last = decided(full())
    moved = replace(last.snapshot, now_s=NOW_S + 1, usage_decayed={"t": 0.4996})
    kept = carried_over(last, moved, POLICY, now_s=NOW_S + 1)
    assert kept
    assert remembered(last, moved, POLICY, kept) is last
    anew = replace(kept, carried_from_s=0.0)
    assert remembered(last, moved, POLICY, anew) == Decided(moved, POLICY, anew)


CHANGES: dict[str, Callable[[Snapshot], Snapshot]] = {
    "a job came": lambda s: replace(s, pending=(*s.pending, job("b", devices=1))),
    "a job went": lambda s: replace(s, pending=()),
    "a job ended": lambda s: replace(s, running=()),
    "quota": lambda s: replace(s, tenants=(tenant("t", a100=9),)),
    "usage was booked": lambda s: replace(s, usage_decayed={"t": 0.51}),
    "a device fell ill": lambda s: replace(
        s, fleet=replace(s.fleet, device_healthy=np.array([False]))
    ),
    "a device got hot": lambda s: replace(
        s, fleet=replace(s.fleet, device_throttled=np.array([True]))
    ),
    "a node was cordoned": lambda s: replace(
        s, fleet=replace(s.fleet, node_ready=np.array([False]))
    ),
    "a job may run shorter": lambda s: replace(
        s, pending=(replace(s.pending[0], time_limit_s=60.0),)
    ),
    "room is being made for a job": lambda s: replace(
        s, pending=(replace(s.pending[0], promised_s=NOW_S),)
    ),
    "a job was told to end": lambda s: replace(
        s, running=(replace(s.running[0], ending_s=NOW_S + 30),)
    ),
    "a job saved its work": lambda s: replace(
        s, running=(replace(s.running[0], checkpointed_s=NOW_S),)
    ),
    "nodes are set aside": lambda s: replace(
        s, reservations=(Reservation("m", NOW_S, NOW_S + 9, (0,)),)
    ),
    "a speed was measured": lambda s: replace(s, throughputs={("batch", "a100"): 1.0}),
    "a runtime was observed": lambda s: replace(s, runtime_ratios=(0.5,)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_any_change_of_the_world_is_decided_anew(change: Callable[[Snapshot], Snapshot]) -> None:
    last = decided(full())
    changed = change(replace(last.snapshot, now_s=NOW_S + 1))
    assert carried_over(last, changed, POLICY, now_s=NOW_S + 1) is None


def test_equal_worlds_are_known_though_every_part_was_read_anew() -> None:
    last = decided(full())
    again = replace(full(), now_s=NOW_S + 1, usage_decayed={"t": 0.4999})
    assert carried_over(last, again, POLICY, now_s=NOW_S + 1)
    assert carried_over(last, again, Policy(strategy="rules", seed=1), now_s=NOW_S + 1) is None


def test_what_only_expected_starts_depend_on_moves_on() -> None:
    last = decided(full())
    again = replace(full(), now_s=NOW_S + 1, expectations=(Expectation(9, 9, 9, True, False),))
    assert carried_over(last, again, POLICY, now_s=NOW_S + 1)
