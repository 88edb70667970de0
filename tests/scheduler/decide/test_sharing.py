"""Fractions that share devices: who never shares with whom, and which device is chosen."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from scheduler.core.errors import InvalidSnapshotError
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.snapshot import JobSpec, RunningJob
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide
from scheduler.decide.foes import met_pairs
from tests.builders import NOW_S, FleetBuilder, job, running, world

RULES = Policy(strategy="rules")
PAIRS = {("lm", "cv"): (0.4, 0.9)}
LIKE = {("lm", "lm"): (0.45, 0.45)}


def share(uid: str, name: str, *, milli: int = 300, **fields: Any) -> JobSpec:
    memory = fields.pop("gpu_memory_mib", 10_000)
    return replace(
        job(uid, devices=1, milli=milli, gpu_memory_mib=memory, limit_s=600.0, **fields),
        interference=name,
    )


def plan(
    queue: Sequence[JobSpec],
    devices: int,
    pairs: dict[tuple[str, str], tuple[float, float]],
    *,
    held: Sequence[RunningJob] = (),
    policy: Policy = RULES,
) -> Plan:
    fleet = FleetBuilder().node("n1", devices=devices)
    snapshot = replace(world(fleet, queue, running=held), pairs=pairs)
    decided = decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
    assert decided.solver.status not in {"error", "invalid"}, decided.solver.note
    verify(snapshot, decided)
    return decided


def places(decided: Plan) -> dict[str, list[int]]:
    return {s.uid: [d for r in s.replicas for d in r.devices] for s in decided.starts}


@pytest.mark.parametrize("strategy", ["rules", "optimising"])
def test_two_that_slow_each_other_down_go_to_two_devices(strategy: str) -> None:
    queue = [share("a", "lm"), share("b", "cv"), share("c", "lm"), share("d", "")]
    found = places(plan(queue, 2, PAIRS, policy=Policy(strategy=strategy)))
    assert found.keys() == {"a", "b", "c", "d"}
    assert found["b"] not in (found["a"], found["c"])


def test_nobody_is_advised_to_share_with_a_class_that_it_would_meet_then() -> None:
    """A whole device is not to be had; a share of the one that is half taken would meet `lm`."""
    held = [running(share("r", "lm", milli=500), 0, [0], gpu_memory_mib=10_000)]
    asks = share("a", "cv", milli=1000, gpu_memory_mib=0)
    (alone,) = plan([asks], 1, {}, held=held).pending
    assert "smaller_share" in {remedy.code for remedy in alone.remedies}
    (waits,) = plan([asks], 1, PAIRS, held=held).pending
    assert "smaller_share" not in {remedy.code for remedy in waits.remedies}


def test_without_the_table_they_share_one() -> None:
    found = places(plan([share("a", "lm"), share("b", "cv")], 2, {}))
    assert found == {"a": [0], "b": [0]}


def test_who_finds_only_foes_starts_when_they_have_ended() -> None:
    held = [running(share("r", "lm"), 0, [0], started_s=NOW_S - 200, gpu_memory_mib=10_000)]
    decided = plan([share("b", "cv")], 1, PAIRS, held=held)
    assert not decided.starts
    waits = decided.pending[0]
    assert waits.expected_start_p90_s == NOW_S + 400  # 600 s less the 200 it ran
    free = waits.evidence["free"]
    assert isinstance(free, dict)
    assert (waits.code, free["gpu_milli"]) == ("fragmented", 0)  # 700, but not for it


def test_nobody_starts_in_the_way_of_a_foe_that_is_planned() -> None:
    # a whole device is held for 400 s more, then b (cv) is to begin on it; c (lm) needs 600 s
    whole = replace(job("r", devices=1, limit_s=600.0), uid="r")
    held = [running(whole, 0, [0], started_s=NOW_S - 200)]
    first = replace(share("b", "cv", milli=900), submitted_s=NOW_S - 50)
    decided = plan([first, share("c", "lm", milli=100)], 1, PAIRS, held=held)
    waits = {p.uid: p.expected_start_p90_s for p in decided.pending}
    assert waits == {"b": NOW_S + 400, "c": NOW_S + 1000}


def test_who_can_not_bear_its_like_takes_a_device_for_each_replica() -> None:
    wide = share("a", "lm", replicas=2, replicas_max=3)
    assert places(plan([wide], 2, LIKE)) == {"a": [0, 1]}
    assert places(plan([wide], 2, {})) == {"a": [0, 0, 0]}


def test_a_whole_device_has_no_neighbours_to_bear() -> None:
    queue = [replace(job(uid, devices=1), interference="lm") for uid in "ab"]
    assert places(plan(queue, 2, LIKE)) == {"a": [0], "b": [1]}


def test_a_foe_is_evicted_where_priority_allows_it() -> None:
    policy = Policy(
        strategy="rules",
        preemption=PreemptionPolicy(by_priority=True, delay_s=0.0, min_runtime_s=0.0),
    )
    held = [running(share("r", "lm"), 0, [0], started_s=NOW_S - 200, gpu_memory_mib=10_000)]
    queue = [replace(share("b", "cv", priority=9), submitted_s=NOW_S - 100)]
    decided = plan(queue, 1, PAIRS, held=held, policy=policy)
    assert [one.uid for one in decided.preempts] == ["r"]


def test_a_fraction_goes_where_least_memory_is_left_among_equal_shares() -> None:
    # both devices have 700 thousandths free, the second one less memory: 30 GB of 80
    held = [
        running(share("r", ""), 0, [0], gpu_memory_mib=10_000),
        running(share("s", "", gpu_memory_mib=50_000), 0, [1], gpu_memory_mib=50_000),
    ]
    assert places(plan([share("a", "")], 2, {}, held=held)) == {"a": [1]}
    spread = Policy(strategy="rules", placement="spread")
    assert places(plan([share("a", "")], 2, {}, held=held, policy=spread)) == {"a": [0]}


@pytest.mark.parametrize(
    "pairs", [{("a", "b"): (float("nan"), 1.0)}, {("a", "b"): (1.0, 1.1)}, {("", "b"): (1.0, 1.0)}]
)
def test_a_table_that_makes_no_sense_is_refused(
    pairs: dict[tuple[str, str], tuple[float, float]],
) -> None:
    with pytest.raises(InvalidSnapshotError):
        plan([], 1, pairs)


def test_who_waits_for_a_device_without_its_foes_is_told_its_class() -> None:
    """Of the one device 700 thousandths are free, but beside `cv`, which `lm` can't bear."""
    held = [running(share("old", "cv"), 0, (0,), gpu_memory_mib=10_000)]
    (answer,) = plan([share("a", "lm")], 1, PAIRS, held=held).pending
    assert answer.code == "fragmented"
    assert answer.evidence["interference"] == "lm"
    assert (answer.evidence["replicas_that_fit"], answer.evidence["replicas_anywhere"]) == (0, 2)


def test_pairs_of_which_one_side_is_not_there_cost_nothing() -> None:
    fleet = FleetBuilder().node("n1", devices=1)
    held = [running(share("old", "cv"), 0, (0,), gpu_memory_mib=10_000)]
    pairs = {("lm", "cv"): (0.1, 0.1), ("lm", "rl"): (0.1, 0.1), ("rl", "rl"): (0.1, 0.1)}
    both = replace(world(fleet, [share("a", "lm")], running=held), pairs=pairs)
    assert met_pairs(both) == {("lm", "cv"): (0.1, 0.1)}
    whole = replace(job("w", devices=2), interference="rl")  # shares with nobody anyhow
    assert met_pairs(replace(both, pending=(whole,))) == {}
