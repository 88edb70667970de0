"""No forbidden pair on a device, in any world and whatever the strategy."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide
from tests.builders import NOW_S
from tests.properties.worlds import worlds

CLASSES = ("", "cv", "lm")
RATES = st.sampled_from([0.2, 0.49, 0.5, 0.9])
PAIRS = st.dictionaries(
    st.tuples(st.sampled_from(CLASSES[1:]), st.sampled_from(CLASSES[1:])),
    st.tuples(RATES, RATES),
)


@st.composite
def shared(draw: st.DrawFn) -> Snapshot:
    snapshot = draw(worlds())
    queue = [
        replace(one, interference=draw(st.sampled_from(CLASSES)), hold="")
        for one in snapshot.pending
    ]
    return replace(snapshot, pending=tuple(queue), pairs=draw(PAIRS))


@pytest.mark.parametrize("strategy", ["rules", "optimising"])
@settings(max_examples=40, deadline=None)
@given(shared())
def test_no_device_has_a_forbidden_pair(strategy: str, snapshot: Snapshot) -> None:
    plan = decide(snapshot, Policy(strategy=strategy), now_s=NOW_S, budget_s=5.0)
    assert plan.solver.status not in {"error", "invalid"}, plan.solver.note
    verify(snapshot, plan)
    classes = {job.uid: job.interference for job in snapshot.pending}
    on_device: dict[int, list[str]] = {}
    for start in plan.starts:
        for replica in start.replicas:
            for device in replica.devices:
                on_device.setdefault(device, []).append(classes[start.uid])
    for sharing in on_device.values():
        for pair in combinations(sharing, 2):
            for rates in (snapshot.pairs.get(pair), snapshot.pairs.get(pair[::-1])):
                assert rates is None or min(rates) >= 0.5


@settings(max_examples=30, deadline=None)
@given(shared())
def test_a_table_in_which_nobody_loses_changes_nothing(snapshot: Snapshot) -> None:
    kind = Policy(strategy="rules")
    calm = replace(snapshot, pairs=dict.fromkeys(snapshot.pairs, (0.5, 1.0)))
    bare = replace(snapshot, pairs={})
    assert decide(calm, kind, now_s=NOW_S, budget_s=5.0) == decide(
        bare, kind, now_s=NOW_S, budget_s=5.0
    )
