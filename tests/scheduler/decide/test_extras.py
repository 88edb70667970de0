"""What elastic jobs get beyond what their tenant owns, and when."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduler.core.plan import Plan, Start
from scheduler.core.policy import Policy
from scheduler.core.resources import ONE_PER_NODE
from scheduler.core.snapshot import JobSpec
from scheduler.decide.cycle import decide, estimate
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

TENANTS = [tenant("site"), tenant("a", under="site", a100=2), tenant("b", under="site", a100=6)]

ELASTIC = job("e", devices=1, replicas=1, replicas_max=8, priority=1, tenant="a")
"""Of tenant a, which owns two of the eight devices; b owns six."""

OWNER = job("o", devices=4, tenant="b")


def plan_of(queue: Sequence[JobSpec], *, strategy: str = "rules") -> Plan:
    snapshot = world(
        FleetBuilder().node("n1", devices=4).node("n2", devices=4),
        queue,
        tenants=TENANTS,
    )
    plan = decide(snapshot, Policy(strategy=strategy), now_s=NOW_S, budget_s=5.0)
    assert plan.solver.status != "error", plan.solver.note
    return plan


def sizes(plan: Plan) -> dict[str, int]:
    return {start.uid: len(start.replicas) for start in plan.starts}


def devices_of(start: Start) -> list[int]:
    return [device for place in start.replicas for device in place.devices]


@pytest.mark.parametrize("strategy", ["rules", "optimising"])
def test_an_owner_behind_an_elastic_job_starts_with_it(strategy: str) -> None:
    """Eight devices: e begins with the two that a owns, o takes its four, e gets the other two."""
    plan = plan_of([ELASTIC, OWNER], strategy=strategy)
    assert sizes(plan) == {"e": 4, "o": 1}
    assert sorted(d for start in plan.starts for d in devices_of(start)) == list(range(8))


def test_what_is_left_is_handed_out_before_those_who_must_borrow() -> None:
    """a owns nothing more when c comes up, so e, which is ahead of c, gets all that is left."""
    borrower = job("c", devices=1, tenant="a")
    plan = plan_of([ELASTIC, OWNER, borrower])
    assert sizes(plan) == {"e": 4, "o": 1}


def test_who_has_nobody_behind_gets_all_at_once() -> None:
    (start,) = plan_of([ELASTIC]).starts
    assert devices_of(start) == list(range(8))


def test_who_borrows_from_the_first_gets_it_in_turn() -> None:
    """b has its six: so x borrows as e would, and is behind it."""
    full = job("o", devices=1, replicas=6, tenant="b", priority=1)
    late = job("x", devices=1, replicas=1, replicas_max=2, tenant="b")
    assert sizes(plan_of([ELASTIC, full, late])) == {"e": 2, "o": 6}
    assert sizes(plan_of([full, late])) == {"o": 6, "x": 2}


def test_one_whose_replicas_stand_to_each_other_is_placed_at_once() -> None:
    """Both nodes have to hold one of e, so o has no whole node where e came first."""
    apart = replace(ELASTIC, replicas_max=3, placement_wish=ONE_PER_NODE)
    assert sizes(plan_of([apart, OWNER])) == {"e": 2}


def test_an_estimate_tells_all_that_the_job_would_get() -> None:
    snapshot = world(
        FleetBuilder().node("n1", devices=4).node("n2", devices=4),
        [OWNER],
        tenants=TENANTS,
    )
    answer = estimate(snapshot, Policy(), ELASTIC, now_s=NOW_S)
    assert isinstance(answer, Start)
    assert len(answer.replicas) == 8


def test_who_goes_first_is_cut_though_its_department_must_borrow() -> None:
    """d2 holds the one that d1 owns, so that d must borrow; e is overdue, or room was made for it.

    It begins with the one that d1 owns; o takes three of its four, and nothing is left to borrow.
    """
    tree = [
        tenant("site"),
        tenant("d", under="site"),
        tenant("d1", under="d", a100=1),
        tenant("d2", under="d"),
        tenant("b", under="site", a100=4),
    ]
    held = running(job("held", tenant="d2", devices=1), 0, (0,))
    late = replace(ELASTIC, tenant="d1", replicas_max=4, priority=0, submitted_s=NOW_S - 90_000)
    owner = job("o", devices=1, replicas=3, tenant="b")
    fleet = FleetBuilder().node("n", devices=5)
    promised = replace(late, promised_s=NOW_S - 30, submitted_s=NOW_S - 100)
    for first in (late, promised):
        snapshot = world(fleet, [first, owner], running=[held], tenants=tree)
        plan = decide(snapshot, Policy(), now_s=NOW_S, budget_s=5.0)
        assert sizes(plan)["o"] == 3
        assert sizes(plan)["e"] == 1


def test_who_is_overdue_sees_no_surplus_handed_out_before_it() -> None:
    """e is first and begins with the one that a owns; l, overdue too, is within d1's quota."""
    tree = [
        tenant("site"),
        tenant("a", under="site", a100=1),
        tenant("d", under="site"),
        tenant("d1", under="d", a100=1),
        tenant("d2", under="d"),
        tenant("b", under="site", a100=3),
    ]
    held = running(job("held", tenant="d2", devices=1), 0, (0,))
    first = replace(ELASTIC, replicas_max=4, submitted_s=NOW_S - 90_000)
    late = job("l", devices=1, tenant="d1", submitted_s=NOW_S - 80_000)
    owner = job("o", devices=3, tenant="b")
    fleet = FleetBuilder().node("n", devices=5)
    snapshot = world(fleet, [first, late, owner], running=[held], tenants=tree)
    plan = decide(snapshot, Policy(), now_s=NOW_S, budget_s=5.0)
    assert sizes(plan) == {"e": 3, "l": 1}  # o needs three, and only two are left: e has them
