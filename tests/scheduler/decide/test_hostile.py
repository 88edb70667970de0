"""Odd and broken worlds: a right answer or a typed error, never a crash."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scheduler.core.errors import InvalidPolicyError, InvalidSnapshotError
from scheduler.core.plan import Plan
from scheduler.core.policy import ObjectiveWeights, Policy, PriorityWeights
from scheduler.core.reasons import WaitReason
from scheduler.core.snapshot import QuotaLine, Snapshot, TenantNode
from scheduler.decide.backfill import HARD_ROWS
from scheduler.decide.cycle import decide
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

STRATEGIES = ["rules", "optimising"]


def plan_of(snapshot: Snapshot, **policy: Any) -> Plan:
    plan = decide(snapshot, Policy(**policy), now_s=NOW_S, budget_s=5.0)
    assert plan.solver.status not in {"error", "invalid"}, plan.solver.note
    return plan


def reasons(plan: Plan) -> dict[str, str]:
    return {pending.uid: pending.code.value for pending in plan.pending}


def one_node() -> Snapshot:
    held = running(job("old", devices=1), 0, [3])
    return world(FleetBuilder().node("n1", devices=4), [job("a", devices=2)], running=[held])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_node_at_all(strategy: str) -> None:
    plan = plan_of(world(FleetBuilder(), [job("a"), job("b", devices=1)]), strategy=strategy)
    assert reasons(plan) == {"a": "never_fits", "b": "no_matching_flavor"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_device_at_all(strategy: str) -> None:
    jobs = [job("a"), job("b", devices=1)]
    plan = plan_of(world(FleetBuilder().node("n1"), jobs), strategy=strategy)
    assert [start.uid for start in plan.starts] == ["a"]
    assert reasons(plan) == {"b": "no_matching_flavor"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_to_decide(strategy: str) -> None:
    plan = plan_of(world(FleetBuilder()), strategy=strategy)
    assert (plan.starts, plan.pending) == ((), ())


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_weights_zero(strategy: str) -> None:
    fleet = FleetBuilder().node("n1", devices=1)
    jobs = [job("b", devices=1), job("a", devices=1)]
    plan = plan_of(
        world(fleet, jobs, tenants=[tenant("t", weight=0)]),
        strategy=strategy,
        order=PriorityWeights(0, 0, 0, 0, 0),
        objective=ObjectiveWeights(0, 0, 0, 0),
    )
    assert [start.uid for start in plan.starts] == ["a"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_quota_cut_below_use_admits_nothing_and_evicts_nothing(strategy: str) -> None:
    held = running(job("old", devices=3), 0, (0, 1, 2))
    plan = plan_of(
        world(
            FleetBuilder().node("n1", devices=4),
            [job("a", devices=1)],
            running=[held],
            tenants=[tenant("t", a100=2)],
        ),
        strategy=strategy,
    )
    (pending,) = plan.pending
    assert pending.code is WaitReason.WAITING_FOR_QUOTA
    assert pending.evidence["used_milli"] == 3000
    assert pending.evidence["missing_milli"] == 2000
    assert pending.expected_start_p50_s == NOW_S + 3600


def test_a_running_job_past_its_limit_is_expected_to_end_soon() -> None:
    late = running(job("old", devices=4, limit_s=10), 0, range(4), started_s=NOW_S - 9999)
    plan = plan_of(
        world(FleetBuilder().node("n1", devices=4), [job("a", devices=1)], running=[late]),
        strategy="rules",
    )
    assert plan.pending[0].expected_start_p50_s == NOW_S + 60


def test_ever_longer_time_limits_do_not_make_the_profile_grow_without_end() -> None:
    jobs = [job(f"j{i:03d}", limit_s=100.0 + i, submitted_s=NOW_S - 1000 + i) for i in range(400)]
    snapshot = world(FleetBuilder().node("n1", cpu=400), jobs)
    turns = Turns(snapshot, Policy(), now_s=NOW_S)
    for ranked in turns.queue():
        turns.turn(ranked)
    assert len(turns.starts) == 400
    assert len(turns.session.profile.times) == HARD_ROWS


MISTAKES: dict[str, dict[str, Any]] = {
    "cpu_milli": {"cpu": 10**30},
    "memory_mib": {"memory_mib": -5},
    "devices": {"devices": 10**9},
    "gpu_milli": {"devices": 1, "milli": 1001},
    "fraction_of_many": {"devices": 2, "milli": 500},
    "replicas": {"replicas": 3, "replicas_max": 2},
    "time_limit_s": {"limit_s": math.nan},
    "submitted_s": {"submitted_s": math.inf},
    "min_throughput": {"min_throughput": -0.5},
    "unknown_tenant": {"tenant": "nobody"},
}


@pytest.mark.parametrize(("mistake", "fields"), MISTAKES.items(), ids=MISTAKES.keys())
def test_a_job_that_is_wrong_in_itself_is_told_what(mistake: str, fields: dict[str, Any]) -> None:
    fleet = FleetBuilder().node("n1", devices=4)
    jobs = [job("bad", **fields), job("good", devices=1)]
    plan = plan_of(world(fleet, jobs, tenants=[tenant("t")]), strategy="rules")
    assert [start.uid for start in plan.starts] == ["good"]
    assert plan.pending[0].code is WaitReason.MISCONFIGURED
    assert plan.pending[0].evidence == {"mistake": mistake}


def without_fleet(snapshot: Snapshot, **changes: object) -> Snapshot:
    fleet: Any = replace(snapshot.fleet, **changes)  # type: ignore[arg-type]
    return replace(snapshot, fleet=fleet)


GOOD = one_node()
LOOP = (TenantNode("x", "y", 1.0, {}), TenantNode("y", "x", 1.0, {}))
BROKEN = {
    "now_s is not a finite number": replace(GOOD, now_s=math.nan),
    "usage_decayed of 't' is nan": replace(GOOD, usage_decayed={"t": math.nan}),
    "usage_decayed of 't' is inf": replace(GOOD, usage_decayed={"t": math.inf}),
    "runtime_ratios are not in 0..1": replace(GOOD, runtime_ratios=(-0.5, 1.0)),
    "job uid 'a' occurs twice": replace(GOOD, pending=GOOD.pending * 2),
    "stands before its parent, or in a cycle": replace(GOOD, tenants=LOOP),
    "parent of tenant 'x' is unknown": replace(GOOD, tenants=LOOP[:1]),
    "fair_weight of 't' is nan": replace(GOOD, tenants=(tenant("t", weight=math.nan),)),
    "quota of 't' for 'a100' is negative": replace(
        GOOD, tenants=(tenant("t", a100=QuotaLine(-1)),)
    ),
    "quota of 't' for 'a100' is absurd": replace(
        GOOD, tenants=(tenant("t", a100=QuotaLine(1 << 62)),)
    ),
    "node_ready has 2 entries": without_fleet(GOOD, node_ready=np.array([True, True])),
    "node_cpu_milli holds a negative": without_fleet(GOOD, node_cpu_milli=np.array([-1])),
    "is not of integers": without_fleet(GOOD, node_cpu_milli=np.array([1.5])),
    "device_free_milli is not in": without_fleet(GOOD, device_free_milli=np.full(4, 1001)),
    "device_node points to no node": without_fleet(GOOD, device_node=np.full(4, 7)),
    "device_flavor points to no flavor": without_fleet(GOOD, device_flavor=np.full(4, 9)),
}


@pytest.mark.parametrize(("message", "snapshot"), BROKEN.items(), ids=BROKEN.keys())
def test_a_snapshot_that_contradicts_itself_is_refused(message: str, snapshot: Snapshot) -> None:
    with pytest.raises(InvalidSnapshotError, match=message):
        decide(snapshot, Policy(strategy="rules"), now_s=NOW_S, budget_s=1.0)


UNUSABLE = {
    "strategy 'magic' is not one of": Policy(strategy="magic"),
    "placement 'anywhere' is not one of": Policy(placement="anywhere"),
    "weight age is nan": Policy(order=PriorityWeights(age=math.nan)),
    "weight performance is 1e\\+300": Policy(objective=ObjectiveWeights(performance=1e300)),
    "weight energy is -1": Policy(objective=ObjectiveWeights(energy=-1)),
}


@pytest.mark.parametrize(("message", "policy"), UNUSABLE.items(), ids=UNUSABLE.keys())
def test_a_policy_that_cannot_be_followed_is_refused(message: str, policy: Policy) -> None:
    with pytest.raises(InvalidPolicyError, match=message):
        decide(GOOD, policy, now_s=NOW_S, budget_s=1.0)
