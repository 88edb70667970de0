"""A plan that is carried over says what a new decision would say."""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fleets import after
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.reasons import Pending, Remedy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.cycle import decide
from scheduler.decide.lasting import Decided, remembered, same_world
from tests.properties.worlds import worlds

RULES = Policy(strategy="rules")
POLICIES = (
    RULES,
    replace(RULES, preemption=PreemptionPolicy(by_reclaim=False, by_fair_share=False)),
    replace(RULES, preemption=PreemptionPolicy(by_priority=True, min_runtime_s=205.0)),
    replace(RULES, preemption=PreemptionPolicy(by_priority=True, delay_s=35.0, min_runtime_s=0.0)),
    replace(RULES, placement="spread", power_cap_w=2000.0, backfill_depth=2),
)
MOVES = ("lasts_until_s", "carried_from_s", "now_s")
"""What a plan says of itself."""

AGES = (
    "priority_parts",
    "expected_start_p50_s",
    "expected_start_p90_s",
    "planned_p50_s",
    "planned_p90_s",
)
"""What a carried answer may say as it was at most a minute ago."""


def plan_of(snapshot: Snapshot, policy: Policy, *, last: Decided | None = None) -> Plan:
    return decide(snapshot, policy, now_s=snapshot.now_s, budget_s=5.0, last=last)


@st.composite
def restless(draw: st.DrawFn) -> Snapshot:
    """A world in which clocks matter: back-offs, delays, promises, and jobs told to leave."""
    snapshot = draw(worlds(6) | worlds(4, eventful=True))
    now_s, jobs, held = snapshot.now_s, [], []
    for job in snapshot.pending:
        changes: dict[str, Any] = draw(
            st.sampled_from(
                [
                    {},
                    {"not_before_s": now_s + 20},
                    {"submitted_s": now_s - 30},
                    {"promised_s": now_s - 10, "submitted_s": now_s - 500},
                    {"submitted_s": now_s - 7 * 86400 + 15},
                ]
            )
        )
        jobs.append(replace(job, **changes))
    for one in snapshot.running:
        due: dict[str, Any] = draw(
            st.sampled_from([{}, {}, {"ending_s": now_s + 10}, {"started_s": now_s - 590}])
        )
        held.append(replace(one, **due))
    return replace(snapshot, pending=tuple(jobs), running=tuple(held))


def said(plan: Plan) -> Plan:
    """Return the plan without what moves with the time."""
    still: dict[str, Any] = dict.fromkeys(MOVES)
    return replace(plan, pending=tuple(_said(one) for one in plan.pending), **still)


def _said(pending: Pending) -> Pending:
    known: dict[str, Any] = {name: getattr(pending, name) is not None for name in AGES}
    return replace(pending, remedies=tuple(map(_advice, pending.remedies)), **known)


def _advice(remedy: Remedy) -> Remedy:
    limit = "time_limit_s" in remedy.params  # counted from now
    return replace(
        remedy, params={**remedy.params, "time_limit_s": 0.0} if limit else remedy.params
    )


@settings(max_examples=150, deadline=None)
@given(
    restless(),
    st.lists(st.sampled_from([0.0, 0.5, 4.0, 7.0, 25.0]), min_size=1, max_size=6),
    st.sampled_from(POLICIES),
)
def test_a_plan_carried_over_says_what_a_new_decision_would(
    snapshot: Snapshot, steps_s: list[float], policy: Policy
) -> None:
    """Cycle after cycle of a world in which nothing but time moves, once it came to rest."""
    for _ in range(3):
        plan = plan_of(snapshot, policy)
        if not plan.starts:
            break
        snapshot = after(snapshot, plan)
    last: Decided | None = None
    for step_s in steps_s:
        plan = plan_of(snapshot, policy, last=last)
        assert said(plan) == said(plan_of(snapshot, policy))
        for pending in plan.pending:
            if pending.expected_start_p50_s is not None:
                assert pending.expected_start_p50_s >= snapshot.now_s
        last = remembered(last, snapshot, policy, plan)
        snapshot = replace(snapshot, now_s=snapshot.now_s + step_s)


@settings(max_examples=60, deadline=None)
@given(worlds(3), worlds(3))
def test_worlds_are_the_same_only_if_all_parts_are(one: Snapshot, other: Snapshot) -> None:
    parts = ("fleet", "pending", "running", "tenants", "reservations", "runtime_ratios")
    for name in parts:
        changed = replace(one, **{name: getattr(other, name)})
        equal = repr(getattr(one, name)) == repr(getattr(other, name))
        assert same_world(one, changed) == equal
