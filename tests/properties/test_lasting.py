"""A plan that is carried over says what a new decision would say."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fleets import after
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.cycle import decide
from scheduler.decide.lasting import Decided
from tests.builders import NOW_S
from tests.properties.worlds import worlds

RULES = Policy(strategy="rules")
NOBODY = PreemptionPolicy(by_reclaim=False, by_fair_share=False)
NOBODY_EVICTED = replace(RULES, preemption=NOBODY)


def plan_of(snapshot: Snapshot, policy: Policy, *, last: Decided | None = None) -> Plan:
    return decide(snapshot, policy, now_s=snapshot.now_s, budget_s=5.0, last=last)


def at_rest(snapshot: Snapshot, policy: Policy) -> Decided | None:
    """Return the world once nobody starts any more, if that comes soon."""
    for _ in range(3):
        plan = plan_of(snapshot, policy)
        if plan.preempts or plan.resizes:
            return None
        if not plan.starts:
            return Decided(snapshot, policy, plan)
        snapshot = after(snapshot, plan)
    return None


@settings(max_examples=150, deadline=None)
@given(worlds(), st.sampled_from([0.0, 0.5, 7.0, 59.0]), st.sampled_from([RULES, NOBODY_EVICTED]))
def test_a_plan_carried_over_says_what_a_new_decision_would(
    snapshot: Snapshot, passed_s: float, policy: Policy
) -> None:
    last = at_rest(snapshot, policy)
    if last is None:
        return
    later = replace(last.snapshot, now_s=NOW_S + passed_s)
    kept, anew = plan_of(later, policy, last=last), plan_of(later, policy)
    assert kept.starts == anew.starts
    assert [(p.uid, p.code, p.position) for p in kept.pending] == [
        (p.uid, p.code, p.position) for p in anew.pending
    ]
    for old, new in zip(kept.pending, anew.pending, strict=True):
        assert (old.expected_start_p90_s is None) == (new.expected_start_p90_s is None)
        if old.expected_start_p50_s is not None:
            assert old.expected_start_p50_s >= later.now_s
