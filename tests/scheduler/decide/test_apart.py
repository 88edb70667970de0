"""Jobs of one group never share a node: now, in what is planned, and after who is told to go."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduler.core.errors import InvalidPlanError
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.snapshot import JobSpec, RunningJob
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide, estimate
from scheduler.decide.preemption.growth import may_grow
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

RULES = Policy(strategy="rules")
OPTIMISING = Policy(strategy="optimising")


def web(uid: str, *, group: str = "web", **fields: object) -> JobSpec:
    return replace(job(uid, devices=1, **fields), anti_affinity=group)  # type: ignore[arg-type]


def fleet(nodes: int, devices: int = 2) -> FleetBuilder:
    built = FleetBuilder()
    for n in range(nodes):
        built.node(f"n{n}", devices=devices)
    return built


def plan_of(
    nodes: int,
    queue: Sequence[JobSpec],
    held: Sequence[RunningJob] = (),
    policy: Policy = RULES,
    devices: int = 2,
) -> Plan:
    snapshot = world(fleet(nodes, devices), queue, running=held)
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
    assert plan.solver.status not in {"error", "invalid"}, plan.solver.note
    verify(snapshot, plan)
    return plan


def nodes_of(plan: Plan) -> dict[str, set[int]]:
    return {start.uid: {replica.node for replica in start.replicas} for start in plan.starts}


@pytest.mark.parametrize("policy", [RULES, OPTIMISING], ids=["rules", "optimising"])
def test_two_of_a_group_go_to_two_nodes_and_a_third_waits(policy: Policy) -> None:
    """Two nodes of two devices: one would hold both, and four devices would hold all three."""
    plan = plan_of(2, [web("a"), web("b"), web("c")], policy=policy)
    assert sorted(nodes_of(plan).values()) == [{0}, {1}]
    (waits,) = plan.pending
    assert waits.code == "fragmented"
    assert waits.evidence["anti_affinity"] == "web"
    assert (waits.evidence["replicas_that_fit"], waits.evidence["replicas_anywhere"]) == (0, 2)
    assert waits.expected_start_p90_s == NOW_S + 3600  # when the first two have ended


def test_a_group_is_no_reason_where_the_job_would_fit_but_for_who_is_ahead() -> None:
    """Node 0 is wanted whole once its job has ended; a job of an hour would be in the way."""
    held = [running(job("r", devices=2, limit_s=600), 0, (0, 1))]
    queue = [job("a", devices=4, priority=1), web("b", limit_s=3600)]
    plan = plan_of(1, queue, held, devices=4)
    (waits,) = [one for one in plan.pending if one.uid == "b"]
    assert waits.code == "reserved"
    assert waits.evidence["replicas_that_fit"] == 2
    assert "anti_affinity" not in waits.evidence


def test_who_waits_for_its_group_is_told_that_sharing_a_node_starts_it() -> None:
    held = [running(web("old"), 0, (0,))]
    (waits,) = plan_of(1, [web("a")], held).pending
    assert waits.remedies[0].code == "drop_anti_affinity"
    assert waits.remedies[0].params == {"starts_now": True}
    assert nodes_of(plan_of(1, [replace(web("a"), anti_affinity="")], held)) == {"a": {0}}


def test_replicas_of_one_job_may_share_a_node() -> None:
    assert nodes_of(plan_of(2, [web("a", replicas=2)])) == {"a": {0}}


def test_another_group_and_another_tenants_group_of_that_name_do_not_matter() -> None:
    queue = [web("a"), web("b", group="db")]
    assert nodes_of(plan_of(1, queue)) == {"a": {0}, "b": {0}}
    queue = [web("a"), web("b", tenant="u")]
    assert nodes_of(plan_of(1, queue)) == {"a": {0}, "b": {0}}


def test_nobody_starts_where_one_of_its_group_is_planned_meanwhile() -> None:
    """`big` gets 3 of 4 devices when `old` ends, in 600 s; the last would do for `b` all along."""
    held = [running(job("old", devices=2, limit_s=600.0), 0, (0, 1))]
    big = replace(web("big", priority=1), shape=job("x", devices=3).shape)
    queue = [big, web("b", limit_s=900.0), web("c", limit_s=900.0, group="")]
    plan = plan_of(1, queue, held, devices=4)
    assert nodes_of(plan) == {"c": {0}}
    waits = {pending.uid: pending for pending in plan.pending}
    assert waits["b"].code == "reserved"
    assert waits["b"].expected_start_p90_s == NOW_S + 600 + 3600  # when big has ended
    short = [big, web("a", limit_s=500.0)]
    assert nodes_of(plan_of(1, short, held, devices=4)) == {"a": {0}}  # it ends before


def test_a_node_is_open_again_when_who_was_told_to_go_is_gone() -> None:
    old = replace(running(web("old", limit_s=9000.0), 0, (0,)), ending_s=NOW_S + 40)
    (waits,) = plan_of(1, [web("a")], [old]).pending
    assert waits.expected_start_p50_s == NOW_S + 40


def test_nobody_is_evicted_to_keep_others_apart() -> None:
    policy = replace(
        RULES, preemption=PreemptionPolicy(by_priority=True, delay_s=0.0, min_runtime_s=0.0)
    )
    held = [running(web("old"), 0, (0,), started_s=NOW_S - 900)]
    plan = plan_of(1, [web("a", priority=5)], held, policy)
    assert not plan.preempts
    other = plan_of(
        1,
        [replace(web("a", priority=5), shape=job("x", devices=2).shape, anti_affinity="")],
        held,
        policy,
    )
    assert [one.uid for one in other.preempts] == ["old"]  # for room, it would be


def test_an_estimate_knows_the_group() -> None:
    snapshot = world(fleet(1), running=[running(web("old"), 0, (0,))], tenants=[tenant("t")])
    said = estimate(snapshot, RULES, web("a"), now_s=NOW_S)
    assert getattr(said, "code", "") == "fragmented"


def test_who_keeps_others_away_does_not_grow_onto_their_nodes() -> None:
    elastic = replace(web("e"), replicas_max=4)
    assert not may_grow(running(elastic, 0, (0,)))
    assert may_grow(running(replace(elastic, anti_affinity=""), 0, (0,)))


def test_the_verifier_sees_two_of_a_group_on_one_node() -> None:
    alone = world(fleet(1), [web("a", group=""), web("b", group="")])
    plan = decide(alone, RULES, now_s=NOW_S, budget_s=5.0)
    assert len(plan.starts) == 2
    grouped = world(fleet(1), [web("a"), web("b")])
    with pytest.raises(InvalidPlanError, match="shares a node"):
        verify(grouped, plan)
    held = world(fleet(1), [web("b")], running=[running(web("a"), 0, (0,))])
    late = replace(plan, starts=plan.starts[1:])
    with pytest.raises(InvalidPlanError, match="shares a node"):
        verify(held, late)
