"""What holds in every world, whatever the strategy."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.plan import Plan, Start
from scheduler.core.policy import ObjectiveWeights, Policy, PriorityWeights
from scheduler.core.reasons import Pending
from scheduler.core.snapshot import Snapshot, TenantNode
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide, estimate
from scheduler.decide.quota import Charge, QuotaLedger, QuotaTree
from scheduler.decide.remedies import apply
from scheduler.decide.scoring import SCORES
from scheduler.decide.session import Session
from tests.builders import NOW_S, with_pending
from tests.properties.advice import assert_advice_is_true
from tests.properties.worlds import FLAVORS, TENANTS, trees, worlds

RULES = Policy(strategy="rules")
OPTIMISING = Policy(strategy="optimising")
POLICIES = [pytest.param(RULES, id="rules"), pytest.param(OPTIMISING, id="optimising")]
BY_CLASS_AND_AGE = replace(RULES, order=PriorityWeights(fair_share=0.0, size=0.0))


def plan_of(snapshot: Snapshot, policy: Policy) -> Plan:
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
    assert plan.solver.status not in {"error", "invalid"}, plan.solver.note
    return plan


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=60, deadline=None)
@given(worlds() | worlds(eventful=True))
def test_every_plan_passes_the_verifier_and_answers_every_job_once(
    policy: Policy, snapshot: Snapshot
) -> None:
    plan = plan_of(snapshot, policy)
    verify(snapshot, plan)
    answered = [s.uid for s in plan.starts] + [p.uid for p in plan.pending]
    assert sorted(answered) == sorted(job.uid for job in snapshot.pending)
    for pending in plan.pending:
        p50_s, p90_s = pending.expected_start_p50_s, pending.expected_start_p90_s
        assert (p50_s is None) == (p90_s is None)
        assert p50_s is None or NOW_S <= p50_s <= (p90_s or 0.0)
    json.dumps(asdict(plan), allow_nan=False)  # a numpy scalar or an infinity would raise


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(worlds(max_jobs=25), st.sampled_from(sorted(SCORES)))
def test_long_queues_pass_the_verifier_under_both_strategies(
    snapshot: Snapshot, placement: str
) -> None:
    for policy in (RULES, OPTIMISING):
        verify(snapshot, plan_of(snapshot, replace(policy, placement=placement)))


@settings(max_examples=60, deadline=None)
@given(worlds(), st.sampled_from(sorted(SCORES)))
def test_no_tenant_starts_more_than_its_quota_makes_available(
    snapshot: Snapshot, placement: str
) -> None:
    plan = plan_of(snapshot, replace(RULES, placement=placement))
    session = Session(snapshot, RULES, now_s=NOW_S)
    ledger = QuotaLedger(session.tree)
    for held in snapshot.running:
        for charge in session.hold_of(held).charges:
            ledger.add(held.spec.tenant, charge)
    jobs = {job.uid: job for job in snapshot.pending}
    for start in plan.starts:
        job = jobs[start.uid]
        flavor = session.flavor_of.get(start.flavor, -1)
        for charge in session.charges(job, flavor, len(start.replicas)):
            assert ledger.available(job.tenant, charge.flavor) >= charge.amount
            ledger.add(job.tenant, charge)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=40, deadline=None)
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(
    policy: Policy, snapshot: Snapshot, random: Random
) -> None:
    pending, held = list(snapshot.pending), list(snapshot.running)
    random.shuffle(pending)
    random.shuffle(held)
    top, left, right, inner = snapshot.tenants
    shuffled = replace(
        snapshot,
        pending=tuple(pending),
        running=tuple(held),
        tenants=random.choice([(top, right, left, inner), (top, left, inner, right)]),
    )
    assert plan_of(snapshot, policy) == plan_of(shuffled, policy)


@settings(max_examples=60, deadline=None)
@given(worlds() | worlds(eventful=True), st.data())
def test_a_waiting_job_of_lower_order_never_delays_a_higher_one(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    plan = plan_of(snapshot, BY_CLASS_AND_AGE)
    waiting = [p for p in plan.pending if p.position]
    if not waiting:
        return
    lower = data.draw(st.sampled_from(waiting))
    left = [job for job in snapshot.pending if job.uid != lower.uid]
    without = plan_of(with_pending(snapshot, left), BY_CLASS_AND_AGE)
    for higher in waiting:
        if higher.position < lower.position:
            after = next((p for p in without.pending if p.uid == higher.uid), None)
            assert after is not None
            assert after.expected_start_p50_s == higher.expected_start_p50_s
    jobs = {job.uid: job for job in snapshot.pending}

    def order(uid: str, parts: Mapping[str, float]) -> tuple[float, float, str]:
        return -sum(parts.values()), jobs[uid].submitted_s, uid

    last = order(lower.uid, lower.priority_parts)
    ahead = {s.uid for s in plan.starts if order(s.uid, s.priority_parts) < last}
    assert ahead <= {s.uid for s in without.starts}


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=60, deadline=None)
@given(worlds())
def test_jobs_of_a_lower_class_change_nothing_for_a_higher_one(
    policy: Policy, snapshot: Snapshot
) -> None:
    """Where no quota divides them: of any class, who owns room goes before who borrows."""
    owners = tuple(replace(tenant, quotas={}) for tenant in snapshot.tenants)
    snapshot = replace(snapshot, tenants=owners)
    by_class = replace(policy, order=BY_CLASS_AND_AGE.order)
    by_class = replace(by_class, objective=ObjectiveWeights(performance=0.0, fairness=0.0))
    higher = [job for job in snapshot.pending if job.priority >= 1]
    both, alone = plan_of(snapshot, by_class), plan_of(with_pending(snapshot, higher), by_class)
    if both.solver.strategy != alone.solver.strategy:
        return  # the plan of the one was beaten by its rules plan, that of the other was not
    started = {start.uid: start.replicas for start in both.starts}
    for start in alone.starts:
        assert started[start.uid] == start.replicas


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_optimising_is_never_worth_less_than_the_rules(snapshot: Snapshot) -> None:
    plan = plan_of(snapshot, OPTIMISING)
    assert plan.solver.objective is not None
    assert plan.solver.objective_rules is not None
    assert plan.solver.objective >= plan.solver.objective_rules


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_what_would_help_helps_when_tried(snapshot: Snapshot) -> None:
    """The change is made, the whole queue decided again: it starts, or it can run at all."""
    assert_advice_is_true(snapshot, lambda world: plan_of(world, RULES))


MIXED = replace(OPTIMISING, kinds=(("training", "rules"),))
"""Decides every other job of a world by the rules."""


@pytest.mark.parametrize("policy", [OPTIMISING, MIXED], ids=["every kind", "some kinds"])
@settings(max_examples=40, deadline=None)
@given(worlds())
def test_what_would_help_helps_where_a_program_decides(policy: Policy, snapshot: Snapshot) -> None:
    """Tried with the strategies that decide, not with the rules alone."""
    kinds = ["training" if n % 2 and policy is MIXED else "batch" for n in range(99)]
    queue = [replace(job, kind=kind) for job, kind in zip(snapshot.pending, kinds, strict=False)]
    snapshot = with_pending(snapshot, queue)
    assert_advice_is_true(snapshot, lambda world: plan_of(world, policy))


@settings(max_examples=30, deadline=None)
@given(worlds(max_jobs=6))
def test_an_estimate_says_what_the_cycle_would_say(snapshot: Snapshot) -> None:
    if not snapshot.pending:
        return
    *others, asked = snapshot.pending
    said = estimate(with_pending(snapshot, others), RULES, asked, now_s=NOW_S)
    plan = plan_of(snapshot, RULES)
    answers: tuple[Start | Pending, ...] = (*plan.starts, *plan.pending)
    done = next(answer for answer in answers if answer.uid == asked.uid)
    if isinstance(said, Start):
        assert said == done
    else:
        assert not isinstance(done, Start)
        assert said.code == done.code
        assert said.position == done.position
    if not isinstance(said, Start):
        for remedy in said.remedies:
            if remedy.params.get("starts_now"):
                world, changed = apply(with_pending(snapshot, others), asked, remedy)
                tried = plan_of(with_pending(world, [*others, changed]), RULES)
                assert asked.uid in {s.uid for s in tried.starts}


HELD = st.lists(
    st.tuples(st.sampled_from(TENANTS), st.sampled_from([*FLAVORS, "cpu"]), st.integers(0, 9000)),
    max_size=9,
)


@settings(max_examples=60, deadline=None)
@given(trees(), HELD)
def test_a_ledger_loaded_at_once_is_the_one_filled_step_by_step(
    tenants: list[TenantNode], held: list[tuple[str, str, int]]
) -> None:
    tree = QuotaTree(tenants)
    stepwise, loaded = QuotaLedger(tree), QuotaLedger(tree)
    own = np.zeros((1, len(tree.flavors), len(tree.slugs)), dtype=np.int64)
    for slug, flavor, amount in held:
        stepwise.add(slug, Charge(flavor, amount))
        if flavor in tree.flavors:
            own[0, tree.flavors[flavor], tree.index[slug]] += amount
    loaded.load(own)
    assert (loaded.usage == stepwise.usage).all()
