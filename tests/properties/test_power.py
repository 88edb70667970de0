"""A power cap in every world, whatever the strategy."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide
from scheduler.decide.power import board_mw
from tests.builders import NOW_S
from tests.properties.worlds import worlds

CAPS = st.integers(0, 40).map(lambda n: n * 100.0)


def watts(snapshot: Snapshot, flavor: str) -> float:
    names = [one.name for one in snapshot.fleet.flavors]
    return board_mw(snapshot.fleet.flavors)[names.index(flavor)] / 1000 if flavor else 0.0


@pytest.mark.parametrize("strategy", ["rules", "optimising"])
@settings(max_examples=40, deadline=None)
@given(worlds(), CAPS)
def test_no_plan_passes_the_cap(strategy: str, snapshot: Snapshot, cap_w: float) -> None:
    policy = Policy(strategy=strategy, power_cap_w=cap_w)
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
    assert plan.solver.status not in {"error", "invalid"}, plan.solver.note
    verify(snapshot, plan, policy)
    jobs = {job.uid: job for job in snapshot.pending}
    added_w = sum(
        jobs[s.uid].shape.device_milli / 1000 * len(s.replicas) * watts(snapshot, s.flavor)
        for s in plan.starts
    )
    fleet = snapshot.fleet
    held_w = sum(
        (1000 - int(free)) / 1000 * watts(snapshot, fleet.flavors[flavor].name)
        for free, flavor in zip(fleet.device_free_milli, fleet.device_flavor, strict=True)
    )
    assert added_w == 0 or held_w + added_w <= cap_w + 1e-6


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_a_cap_that_nothing_reaches_changes_nothing(snapshot: Snapshot) -> None:
    free = decide(snapshot, Policy(strategy="rules"), now_s=NOW_S, budget_s=5.0)
    capped = Policy(strategy="rules", power_cap_w=1e9)
    assert decide(snapshot, capped, now_s=NOW_S, budget_s=5.0) == free


@settings(max_examples=40, deadline=None)
@given(worlds(), CAPS)
def test_who_waits_for_power_is_shown_what_is_missing(snapshot: Snapshot, cap_w: float) -> None:
    policy = Policy(strategy="rules", power_cap_w=cap_w)
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
    for pending in plan.pending:
        if pending.code == "waiting_for_power":
            asked_w, held_w = pending.evidence["asked_w"], pending.evidence["held_w"]
            assert isinstance(asked_w, float)
            assert isinstance(held_w, float)
            assert held_w + asked_w > cap_w
            assert asked_w <= cap_w
