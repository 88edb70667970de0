"""How near the replicas of a job are: required, preferred, and on one node by link, NUMA, NIC."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import JobSpec, RunningJob
from scheduler.core.topology import Level, TopologyWish
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide
from scheduler.decide.feasibility import Layout
from scheduler.decide.scoring import choose_whole
from scheduler.decide.topology import narrowed, reach
from tests.builders import NOW_S, FleetBuilder, job, running, world

RULES = Policy(strategy="rules")


def plan_of(
    fleet: FleetBuilder,
    jobs: Sequence[JobSpec],
    held: Sequence[RunningJob] = (),
    policy: Policy = RULES,
) -> Plan:
    snapshot = world(fleet, jobs, running=held)
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
    assert plan.solver.status != "error", plan.solver.note
    verify(snapshot, plan)
    return plan


def nodes_of(plan: Plan, uid: str = "a") -> list[int]:
    (start,) = [start for start in plan.starts if start.uid == uid]
    return sorted(replica.node for replica in start.replicas)


def two_blocks() -> FleetBuilder:
    """Racks of 2, 4 and 3 nodes, of 1 device each; the first two racks in block x."""
    fleet = FleetBuilder()
    for name, rack, block in [
        ("n0", "r0", "x"),
        ("n1", "r0", "x"),
        ("n2", "r1", "x"),
        ("n3", "r1", "x"),
        ("n4", "r1", "x"),
        ("n5", "r1", "x"),
        ("n6", "r0", "y"),
        ("n7", "r0", "y"),
        ("n8", "r0", "y"),
    ]:
        fleet.node(name, devices=1, rack=rack, block=block)
    return fleet


REQUIRED: dict[str, tuple[dict[str, Any], list[int]]] = {
    "3 in the smallest rack that holds them, y/r0 of 3": (
        {"replicas": 3, "within": "rack"},
        [6, 7, 8],
    ),
    "4 fit rack x/r1 only": ({"replicas": 4, "within": "rack"}, [2, 3, 4, 5]),
    "2 fit rack x/r0 exactly": ({"replicas": 2, "within": "rack"}, [0, 1]),
    "5 fit no rack, but block x of 6": ({"replicas": 5, "within": "block"}, [0, 1, 2, 3, 4]),
    "2 in the smallest block, and there in its one rack": (
        {"replicas": 2, "within": "block"},
        [6, 7],
    ),
    "3 in the smallest block, y": ({"replicas": 3, "within": "block"}, [6, 7, 8]),
    "elastic: as many as the largest rack holds": (
        {"replicas": 2, "replicas_max": 9, "within": "rack"},
        [2, 3, 4, 5],
    ),
    "preferred rack, 3: as if required": ({"replicas": 3, "near": "rack"}, [6, 7, 8]),
    "preferred rack, 5: the next level up": (
        {"replicas": 5, "near": "rack"},
        [0, 1, 2, 3, 4],
    ),
    "preferred rack, 8: block x of 6 and two of y": (
        {"replicas": 8, "near": "rack"},
        [0, 1, 2, 3, 4, 5, 6, 7],
    ),
}


@pytest.mark.parametrize(
    ("wish", "expected"), [pytest.param(*case, id=name) for name, case in REQUIRED.items()]
)
def test_a_gang_goes_to_the_smallest_domain_that_holds_it(
    wish: dict[str, Any], expected: list[int]
) -> None:
    assert nodes_of(plan_of(two_blocks(), [job("a", devices=1, **wish)])) == expected


def test_racks_of_one_name_in_two_blocks_are_two_racks() -> None:
    plan = plan_of(two_blocks(), [job("a", devices=1, replicas=5, within="rack")])
    assert plan.pending[0].code == "never_fits"
    assert plan.pending[0].evidence["topology"] == "rack"
    assert plan.pending[0].evidence["replicas_when_empty"] == 4


def test_nodes_without_the_label_are_in_no_domain_of_a_required_level() -> None:
    fleet = FleetBuilder().node("n0", devices=2).node("n1", devices=1, rack="r")
    (answer,) = plan_of(fleet, [job("a", devices=2, within="rack")]).pending
    assert answer.code == "never_fits"
    assert nodes_of(plan_of(fleet, [job("a", devices=2, near="rack")])) == [0]


def test_a_gang_waits_for_its_rack_and_says_that_it_does() -> None:
    held = [running(job(f"old{n}", devices=1, limit_s=500), n, (n,)) for n in (2, 7)]
    plan = plan_of(two_blocks(), [job("a", devices=1, replicas=4, within="rack")], held)
    (answer,) = plan.pending
    assert answer.code == "fragmented"
    assert answer.evidence["topology"] == "rack"
    assert (answer.evidence["replicas_that_fit"], answer.evidence["replicas_anywhere"]) == (3, 7)
    assert answer.expected_start_p50_s == NOW_S + 500


def test_a_gang_that_insists_on_a_rack_is_told_that_preferring_it_starts_it_now() -> None:
    """Room for 3 at most in one rack, for 7 in all; of never fits, r1 of 4 is the largest rack."""
    held = [running(job(f"old{n}", devices=1, limit_s=500), n, (n,)) for n in (2, 7)]
    for replicas in (4, 5):
        asked = job("a", devices=1, replicas=replicas, within="rack")
        (answer,) = plan_of(two_blocks(), [asked], held).pending
        helps = {remedy.code: remedy.params for remedy in answer.remedies}
        assert helps["prefer_topology"] == {"topology": "rack", "starts_now": True}
        assert len(nodes_of(plan_of(two_blocks(), [prefers_it(asked)], held))) == replicas


def prefers_it(asked: JobSpec) -> JobSpec:
    return replace(asked, topology=TopologyWish(Level.RACK, required=False))


def test_who_would_wait_anyhow_is_not_told_to_prefer_its_topology() -> None:
    held = [running(job(f"old{n}", devices=1, limit_s=500), n, (n,)) for n in range(6)]
    (answer,) = plan_of(
        two_blocks(), [job("a", devices=1, replicas=4, within="rack")], held
    ).pending
    assert "prefer_topology" not in {remedy.code for remedy in answer.remedies}


def test_a_replica_for_each_node_waits_for_nodes_and_is_told_that_sharing_them_starts_it() -> None:
    fleet = FleetBuilder().node("n0", devices=2).node("n1", devices=2)
    held = [running(job("old", devices=2, limit_s=500), 1, (2, 3))]
    (answer,) = plan_of(
        fleet, [job("a", devices=1, replicas=2, placement="one_per_node")], held
    ).pending
    assert answer.code == "fragmented"
    assert answer.evidence["placement_wish"] == "one_per_node"
    assert (answer.evidence["replicas_that_fit"], answer.evidence["replicas_anywhere"]) == (1, 2)
    assert answer.remedies[0].code == "share_nodes"
    assert answer.remedies[0].params == {"starts_now": True}


def islands() -> FleetBuilder:
    """n0: islands of 2 and 4, cards of 4 and 2; n1: two of 3; NUMA nodes of 3 each on both."""
    fleet = FleetBuilder()
    numa = [0, 0, 0, 1, 1, 1]
    fleet.node("n0", devices=6, groups=[0, 0, 1, 1, 1, 1], numa=numa, nics=[0, 0, 0, 0, 1, 1])
    return fleet.node("n1", devices=6, groups=[0, 0, 0, 1, 1, 1], numa=numa)


WITHIN_NODE: dict[str, tuple[dict[str, Any], set[int]]] = {
    "4 devices in one island": ({"devices": 4, "within": "link"}, {2, 3, 4, 5}),
    "2 replicas of 2 in one island": (
        {"devices": 2, "replicas": 2, "within": "link"},
        {2, 3, 4, 5},
    ),
    "4 replicas of 1 prefer one island": (
        {"devices": 1, "replicas": 4, "near": "link"},
        {2, 3, 4, 5},
    ),
    "3 replicas of 1 on one NUMA node": (
        {"devices": 1, "replicas": 3, "within": "numa"},
        {0, 1, 2},
    ),
    "2 replicas of 2 at one network card": (
        {"devices": 2, "replicas": 2, "within": "nic"},
        {0, 1, 2, 3},
    ),
    "2 devices prefer the smaller card": ({"devices": 2, "near": "nic"}, {4, 5}),
}


@pytest.mark.parametrize(
    ("wish", "expected"), [pytest.param(*case, id=name) for name, case in WITHIN_NODE.items()]
)
def test_replicas_share_an_island_of_their_node(wish: dict[str, Any], expected: set[int]) -> None:
    (start,) = plan_of(islands(), [job("a", **wish)]).starts
    assert {device for replica in start.replicas for device in replica.devices} == expected


def test_a_required_island_is_not_made_of_two() -> None:
    plan = plan_of(islands(), [job("a", devices=5, within="link")])
    assert plan.pending[0].code == "never_fits"
    assert plan.pending[0].evidence["topology"] == "link"


def test_a_device_without_links_is_an_island_of_its_own() -> None:
    fleet = FleetBuilder().node("n0", devices=2)
    assert len(plan_of(fleet, [job("a", devices=1, within="link")]).starts) == 1
    assert plan_of(fleet, [job("a", devices=2, within="link")]).starts == ()


def test_two_shares_may_be_of_one_device_without_links() -> None:
    fleet = FleetBuilder().node("n0", devices=2)
    (start,) = plan_of(fleet, [job("a", devices=1, milli=500, replicas=2, within="link")]).starts
    assert [replica.devices for replica in start.replicas] == [(0,), (0,)]


@pytest.mark.parametrize("level", ["numa", "nic"])
def test_what_is_not_known_of_devices_cannot_be_promised(level: str) -> None:
    fleet = FleetBuilder().node("n0", devices=2)
    assert plan_of(fleet, [job("a", devices=1, within=level)]).starts == ()


def test_a_job_without_devices_has_no_island_to_be_in() -> None:
    plan = plan_of(islands(), [job("a", within="link")])
    assert plan.pending[0].evidence == {"mistake": "topology"}


def test_one_replica_a_node_where_that_is_asked() -> None:
    fleet = FleetBuilder().node("n0", devices=8).node("n1", devices=1)
    asked = job("a", devices=1, replicas=2, replicas_max=4, placement="one_per_node")
    assert nodes_of(plan_of(fleet, [asked])) == [0, 1]
    more = job("a", devices=1, replicas=3, placement="one_per_node")
    assert plan_of(fleet, [more]).pending[0].code == "never_fits"


@pytest.mark.parametrize(("wish", "expected"), [("", [0, 0]), ("pack", [0, 0]), ("spread", [0, 1])])
def test_a_job_may_wish_to_be_packed_or_spread_whatever_the_policy(
    wish: str, expected: list[int]
) -> None:
    fleet = FleetBuilder().node("n0", devices=2).node("n1", devices=2)
    plan = plan_of(fleet, [job("a", devices=1, replicas=2, placement=wish)])
    assert nodes_of(plan) == expected


def test_optimising_keeps_the_wishes_too() -> None:
    plan = plan_of(
        two_blocks(),
        [job("a", devices=1, replicas=4, within="rack"), job("b", devices=1, replicas=2)],
        policy=Policy(strategy="optimising"),
    )
    assert nodes_of(plan, "a") == [2, 3, 4, 5]


def test_devices_are_near_by_link_then_by_numa_then_by_network_card() -> None:
    """Six devices, links known of none: 0..3 on NUMA 0 (cards 0, 0, 1, 1), 4 and 5 on NUMA 1."""
    fleet = FleetBuilder().node("n0", devices=6, numa=[0, 0, 0, 0, 1, 1], nics=[0, 0, 1, 1, 2, 3])
    layout = Layout(fleet.build())
    groups = [grid[0] for grid in layout.nearness]
    assert choose_whole(np.arange(6), groups, 2) == [0, 1]  # one card of one NUMA node
    columns = np.array([1, 2, 4, 5])
    assert choose_whole(columns, [grid[0][columns] for grid in layout.nearness], 2) == [1, 2]


def test_reach_and_narrowing_by_hand() -> None:
    """Counts 2 2 | 3 1 of racks r0 and r1, and 5 on a node in no rack."""
    fleet = FleetBuilder()
    for name, rack in [("a", "r0"), ("b", "r0"), ("c", "r1"), ("d", "r1"), ("e", "")]:
        fleet.node(name, rack=rack)
    layout, counts = Layout(fleet.build()), np.array([2, 2, 3, 1, 5])
    hard = TopologyWish(Level.RACK, required=True)
    assert reach(layout, counts, hard) == 4
    assert reach(layout, counts, None) == 13
    assert narrowed(layout, counts, hard, 4).tolist() == [2, 2, 0, 0, 0]  # equal: the first
    soft = TopologyWish(Level.RACK, required=False)
    assert narrowed(layout, counts, soft, 8).tolist() == [2, 2, 3, 1, 0]
    assert narrowed(layout, counts, soft, 9).tolist() == [2, 2, 3, 1, 5]
