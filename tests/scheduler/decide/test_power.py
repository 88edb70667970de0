"""The power cap: nothing starts above it, whoever decides, and the reason says so in watts."""

from dataclasses import replace

import numpy as np
import pytest

from scheduler.core.errors import InvalidPlanError, InvalidPolicyError
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.snapshot import FlavorSpec, JobSpec, RunningJob, Snapshot
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide
from scheduler.decide.power import board_mw, grid_mw, held_uw
from scheduler.decide.validate import validate_policy
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

BOTH = pytest.mark.parametrize("strategy", ["rules", "optimising"])


def fleet() -> FleetBuilder:
    """Four devices of 700 W and four of 300 W."""
    builder = FleetBuilder().flavor("big", cu=900.0, power_w=700.0)
    builder.flavor("small", cu=300.0, power_w=300.0)
    return builder.node("n1", devices=4, flavor="big").node("n2", devices=4, flavor="small")


def plan_of(snapshot: Snapshot, strategy: str, cap_w: float | None) -> Plan:
    policy = Policy(strategy=strategy, power_cap_w=cap_w)
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
    assert plan.solver.status not in {"error", "invalid"}, plan.solver.note
    return plan


def big(uid: str, devices: int, submitted_s: float = NOW_S, **more: object) -> JobSpec:
    return job(uid, devices=devices, flavors=["big"], submitted_s=submitted_s, **more)  # type: ignore[arg-type]


@BOTH
def test_what_starts_stays_under_the_cap(strategy: str) -> None:
    """Two of 700 W are 1400 W; a third would make 2100 W."""
    snapshot = world(fleet(), [big(f"j{i}", 1, NOW_S - 9 + i) for i in range(3)])
    plan = plan_of(snapshot, strategy, 2000.0)
    assert len(plan.starts) == 2
    (waits,) = plan.pending
    assert waits.code == "waiting_for_power"
    assert waits.evidence["asked_w"] == 700.0
    assert waits.evidence["held_w"] == 1400.0
    assert waits.evidence["cap_w"] == 2000.0
    assert waits.expected_start_p50_s == NOW_S + 3600.0  # when one of the others ends
    assert len(plan_of(snapshot, strategy, None).starts) == 3


@BOTH
def test_what_runs_counts_and_may_be_above_a_cap_that_was_cut(strategy: str) -> None:
    """1400 W run; under 1000 W nothing with a device starts, and jobs without one do."""
    held = running(big("run", 2), 0, [0, 1])
    jobs = [job("cpu", cpu=4), job("small", devices=1, flavors=["small"])]
    snapshot = world(fleet(), jobs, running=[held], tenants=[tenant("t")])
    assert [s.uid for s in plan_of(snapshot, strategy, 1000.0).starts] == ["cpu"]
    started = {start.uid for start in plan_of(snapshot, strategy, 1700.0).starts}
    assert started == {"cpu", "small"}


@BOTH
def test_the_frugal_flavor_is_taken_where_the_cap_allows_no_other(strategy: str) -> None:
    asked = job("a", devices=2, flavors=["big", "small"])
    plan = plan_of(world(fleet(), [asked]), strategy, 600.0)
    assert [(start.uid, start.flavor) for start in plan.starts] == [("a", "small")]


def test_a_share_counts_with_its_part_of_the_board() -> None:
    """0.5 x 700 W fit twice under 700 W, a third does not."""
    shares = [big(f"j{i}", 1, NOW_S - 9 + i, milli=500) for i in range(3)]
    plan = plan_of(world(fleet(), shares), "rules", 700.0)
    assert len(plan.starts) == 2


def test_an_elastic_job_gets_as_many_replicas_as_the_cap_allows() -> None:
    """Five hundred watts are left of 1200 W after one of 700 W: one replica, not two."""
    plan = plan_of(world(fleet(), [big("a", 1, replicas=1, replicas_max=4)]), "rules", 1500.0)
    assert len(plan.starts[0].replicas) == 2


def test_a_job_that_can_never_start_under_the_cap_is_refused_and_told_what_would_help() -> None:
    plan = plan_of(world(fleet(), [big("a", 4)]), "rules", 1500.0)
    (waits,) = plan.pending
    assert waits.code == "exceeds_power_cap"
    assert (waits.evidence["asked_w"], waits.evidence["cap_w"]) == (2800.0, 1500.0)
    helps = {remedy.code: dict(remedy.params) for remedy in waits.remedies}
    assert helps["fewer_devices"] == {"devices": 2, "starts_now": True}
    assert helps["other_flavor"] == {"flavor": "small", "starts_now": True}


def test_quota_is_no_help_where_the_cap_would_still_refuse() -> None:
    """Four devices of 700 W pass 1500 W, so that three more of quota would change nothing."""
    owner = [tenant("t", big=1, small=0)]
    plan = plan_of(world(fleet(), [big("a", 4)], tenants=owner), "rules", 1500.0)
    assert "ask_for_quota" not in {remedy.code for remedy in plan.pending[0].remedies}
    free = plan_of(world(fleet(), [big("a", 4)], tenants=owner), "rules", 2800.0)
    assert "ask_for_quota" in {remedy.code for remedy in free.pending[0].remedies}


def test_a_job_ahead_reserves_its_power() -> None:
    """`first` waits for 2100 W of 2200 W until `run` ends in 3600 s.

    Now 1400 W are held. A job of 300 W fits under the cap now; one that is not gone by then would
    be in the way of `first`.
    """
    held = running(big("run", 2), 0, [0, 1])
    first = big("first", 3, NOW_S - 50)
    long = job("long", devices=1, flavors=["small"], limit_s=7200.0)
    short = job("short", devices=1, flavors=["small"], limit_s=1800.0)
    snapshot = world(fleet(), [first, long, short], running=[held])
    plan = plan_of(snapshot, "rules", 2200.0)
    assert [start.uid for start in plan.starts] == ["short"]
    codes = {pending.uid: pending.code.value for pending in plan.pending}
    assert codes["long"] == "reserved"


def beside_cordoned(*running: RunningJob) -> Snapshot:
    """`q` waits for the two devices of a cordoned node, `r` for the one of a node that is ready.

    A device draws 400 W.
    """
    fleet = FleetBuilder().node("a", devices=2, ready=False, note="cordoned").node("b", devices=1)
    jobs = [job("q", devices=2, priority=5), job("r", devices=1)]
    return world(fleet, jobs, running=running, tenants=[tenant("t", a100=9)])


@BOTH
def test_who_waits_for_nodes_that_are_not_ready_draws_no_power(strategy: str) -> None:
    """Nothing runs: 0 + 400 W <= 400 W, whatever q hopes for."""
    plan = plan_of(beside_cordoned(), strategy, 1000.0)
    assert [start.uid for start in plan.starts] == ["r"]
    assert [pending.code for pending in plan.pending] == ["nodes_unavailable"]


def test_nor_is_it_counted_where_starts_are_expected_from_runtimes_as_observed() -> None:
    """`run` holds 400 W of 1000 W on b, and jobs need half of their limit of 3600 s: r in 1800 s.

    With 800 W more on top r would pass the cap for as long as q waits.
    """
    snapshot = beside_cordoned(running(job("run", devices=1), 1, [2]))
    plan = plan_of(replace(snapshot, runtime_ratios=(0.5,) * 20), "rules", 1000.0)
    expected = {pending.uid: pending.expected_start_p50_s for pending in plan.pending}
    assert expected["r"] == NOW_S + 1800.0


def test_the_verifier_counts_for_itself() -> None:
    snapshot = world(fleet(), [big("a", 2)])
    plan = plan_of(snapshot, "rules", None)
    verify(snapshot, plan, Policy(power_cap_w=1400.0))
    with pytest.raises(InvalidPlanError, match=r"1400.0 W pass the power cap of 1399.0 W"):
        verify(snapshot, plan, Policy(power_cap_w=1399.0))


def test_an_unknown_board_counts_as_the_highest_known_one() -> None:
    flavors = [
        FlavorSpec("a", 1.0, 1, 300.0),
        FlavorSpec("b", 1.0, 1, None),
        FlavorSpec("c", 1.0, 1, 700.25),
    ]
    assert board_mw(flavors) == (300_000, 700_250, 700_250)
    assert board_mw([replace(flavors[1])]) == (0,)
    grid = grid_mw((300_000, 700_250), np.array([[0, 1], [1, -1]]))
    assert grid.tolist() == [[300_000, 700_250], [700_250, 0]]
    free = np.array([[[1000, 0], [500, 0]]])
    assert held_uw(grid, free).tolist() == [700_250_000 + 350_125_000]


@pytest.mark.parametrize("cap_w", [-1.0, float("nan"), float("inf")])
def test_a_cap_that_is_no_power_is_refused(cap_w: float) -> None:
    with pytest.raises(InvalidPolicyError, match="power_cap_w of the policy is"):
        validate_policy(Policy(power_cap_w=cap_w))


def test_nobody_is_evicted_for_a_job_that_the_cap_would_not_let_start() -> None:
    """Four devices of 700 W are held; two of them give way to `high`, so 2800 W stay allocated.

    A cap that was cut to 2799 W leaves too little even then, one of 2800 W just enough.
    """
    low = running(big("low", 2), 0, [0, 1], started_s=NOW_S - 5000.0)
    other = running(job("other", devices=2, flavors=["big"]), 0, [2, 3], started_s=NOW_S - 10.0)
    high = big("high", 2, NOW_S - 500, priority=1)
    snapshot = world(fleet(), [high], running=[low, other])
    laws = PreemptionPolicy(by_priority=True, min_runtime_s=600.0)
    for cap_w, evicted in ((2799.0, []), (2800.0, ["low"])):
        policy = Policy(strategy="rules", power_cap_w=cap_w, preemption=laws)
        plan = decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
        assert [one.uid for one in plan.preempts] == evicted
