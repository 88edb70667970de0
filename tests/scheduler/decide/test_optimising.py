import math
from dataclasses import replace
from typing import Any

import numpy as np
import pulp
import pytest

from scheduler.core.errors import InvalidPlanError
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide import cycle
from scheduler.decide.strategies.optimising import bands, engines
from scheduler.decide.strategies.optimising.tangents import RATIO, tangents
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

OPTIMISING = Policy(strategy="optimising")


def plan_of(snapshot: Snapshot, *, budget_s: float = 5.0) -> Plan:
    return cycle.decide(snapshot, OPTIMISING, now_s=NOW_S, budget_s=budget_s)


def two_kinds() -> FleetBuilder:
    fleet = FleetBuilder().flavor("fast", cu=900.0).flavor("slow", cu=100.0)
    return fleet.node("n1", devices=1, flavor="fast").node("n2", devices=1, flavor="slow")


def contested() -> Snapshot:
    """The rules give the picky-less job the fast device, so the picky one is left out."""
    first = job("any", devices=1, flavors=["fast", "slow"], submitted_s=NOW_S - 10)
    return world(two_kinds(), [first, job("picky", devices=1, flavors=["fast"])])


def test_the_envelope_lies_on_or_above_the_logarithm_and_within_the_bound() -> None:
    """m = 1.15 * 0.139762 / 0.15 = 1.071509; the error is m - 1 - ln m = 0.002441."""
    lines = tangents(0.01, 1.0, RATIO)
    x = np.linspace(0.01, 1.0, 5001)
    envelope = np.min([line.slope * x + line.intercept for line in lines], axis=0)
    gap: np.ndarray[tuple[int], np.dtype[np.float64]] = envelope - np.log(x)
    assert gap.min() > -1e-12
    assert gap.max() == pytest.approx(0.002441, abs=3e-5)


def test_one_point_has_one_tangent() -> None:
    (line,) = tangents(0.5, 0.5)
    assert line.slope == 2.0
    assert line.intercept == pytest.approx(math.log(0.5) - 1)


def test_both_jobs_start_where_the_rules_start_one() -> None:
    plan = plan_of(contested())
    assert {start.uid: start.flavor for start in plan.starts} == {"any": "slow", "picky": "fast"}
    assert plan.solver.strategy == "optimising"
    assert plan.solver.status == "optimal"
    assert plan.solver.objective is not None
    assert plan.solver.objective_rules is not None
    assert plan.solver.objective > plan.solver.objective_rules
    assert plan.solver.gap_frac == pytest.approx(0.0, abs=0.01)


def test_a_fleet_without_contention_needs_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bands, "search", None)
    plan = plan_of(world(FleetBuilder().node("n1", devices=4), [job("a", devices=2)]))
    assert [start.uid for start in plan.starts] == ["a"]
    assert plan.solver.status == "not_needed"


def test_without_time_the_rules_answer_and_it_is_said_so() -> None:
    plan = plan_of(contested(), budget_s=0.0)
    assert [start.uid for start in plan.starts] == ["any"]
    assert (plan.solver.strategy, plan.solver.asked) == ("rules", "optimising")
    assert plan.solver.status == "timeout"


def test_a_strategy_that_raises_is_replaced_by_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Plan:
        msg = "solver crashed"
        raise RuntimeError(msg)

    real = cycle.load
    monkeypatch.setattr(cycle, "load", lambda key: broken if key == "optimising" else real(key))
    plan = plan_of(contested())
    assert [start.uid for start in plan.starts] == ["any"]
    assert (plan.solver.status, plan.solver.asked) == ("error", "optimising")
    assert plan.solver.note == "RuntimeError: solver crashed"


def test_a_plan_that_breaks_an_invariant_is_replaced_by_the_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = cycle.load

    def forgetful(*args: Any, **options: Any) -> Plan:
        plan = real("optimising")(*args, **options)
        return replace(plan, starts=())

    monkeypatch.setattr(cycle, "load", lambda key: forgetful if key == "optimising" else real(key))
    plan = plan_of(contested())
    assert plan.solver.status == "invalid"
    assert "is answered 0 times" in plan.solver.note


def test_a_lower_class_never_takes_what_a_higher_class_could_use() -> None:
    """One device; the higher job is alone worth less than two small lower ones."""
    jobs = [job("high", devices=2, priority=1)]
    jobs += [job(f"low{i}", devices=1, submitted_s=NOW_S - 99) for i in range(2)]
    plan = plan_of(world(FleetBuilder().node("n1", devices=2), jobs))
    assert [start.uid for start in plan.starts] == ["high"]


@pytest.mark.parametrize(("patience_days", "first"), [(3, "large"), (1, "old")])
def test_who_waits_for_longer_than_the_patience_is_no_longer_passed(
    patience_days: int, first: str
) -> None:
    """Four devices used are worth more than three, and two of a kind have no other merit."""
    two_days = job("old", devices=3, submitted_s=NOW_S - 2 * 86400)
    snapshot = world(FleetBuilder().node("n1", devices=4), [two_days, job("large", devices=4)])
    policy = replace(OPTIMISING, patience_s=patience_days * 86400.0)
    plan = cycle.decide(snapshot, policy, now_s=NOW_S, budget_s=5.0)
    assert [start.uid for start in plan.starts] == [first]


def two_owners(each: int) -> Snapshot:
    """Eight devices of which a and b own two each, c four that it lends; a and b ask for more."""
    tree = [tenant("root", a100=0), tenant("a", under="root", a100=2)]
    tree += [tenant("b", under="root", a100=2), tenant("c", under="root", a100=4)]
    waiting = [
        job(f"{owner}{k}", tenant=owner, devices=1, submitted_s=NOW_S - 100 + k)
        for owner in "ab"
        for k in range(each)
    ]
    return world(FleetBuilder().node("n1", devices=8), waiting, tenants=tree)


def test_a_class_is_decided_in_two_bands_however_many_change_from_owner_to_borrower() -> None:
    """Of 20 jobs two of a's and two of b's are within their quotas; all the others would borrow."""
    turns = Turns(two_owners(10), OPTIMISING, now_s=NOW_S)
    sizes = []
    for band in bands.in_bands(turns, None):
        sizes.append(len(band))
        for ranked in band:
            turns.turn(ranked)
    assert sizes == [4, 16]


def test_owners_that_find_no_place_leave_their_quota_to_others_of_their_tenant() -> None:
    """a0 would take all that a owns, but has to wait for b's device; a1 may have it meanwhile."""
    tree = [tenant("root", a100=0), tenant("a", under="root", a100=4)]
    tree += [tenant("b", under="root", a100=0)]
    waiting = [
        job("a0", tenant="a", devices=4, submitted_s=NOW_S - 9),
        job("a1", tenant="a", devices=2, submitted_s=NOW_S - 8),
        job("b0", tenant="b", devices=2, submitted_s=NOW_S - 7),
    ]
    fleet = FleetBuilder().node("n1", devices=4).node("n2", devices=2)
    held = [running(job("b1", tenant="b", devices=1), 0, [0])]
    snapshot = world(fleet, waiting, running=held, tenants=tree)
    turns = Turns(snapshot, OPTIMISING, now_s=NOW_S)
    order = []
    for band in bands.in_bands(turns, None):
        order.append([ranked.job.uid for ranked in band])
        for ranked in band:
            turns.turn(ranked)
    assert order == [["a0"], ["a1"], ["b0"]]


def test_nobody_borrows_what_one_of_its_class_waits_for_and_owns() -> None:
    """b could use all four devices; e owns them and wants three, so they are e's."""
    tree = [tenant("root", a100=0), tenant("e", under="root", a100=4)]
    tree += [tenant("b", under="root", a100=0)]
    waiting = [job("owner", tenant="e", devices=3), job("borrower", tenant="b", devices=4)]
    plan = plan_of(world(FleetBuilder().node("n1", devices=4), waiting, tenants=tree))
    assert [start.uid for start in plan.starts] == ["owner"]


def test_a_solver_that_fails_leaves_the_turns_to_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> engines.Found:
        raise pulp.PulpSolverError

    monkeypatch.setattr(engines.Highs, "relax", broken)
    plan = plan_of(contested())
    assert [start.uid for start in plan.starts] == ["any"]
    assert (plan.solver.strategy, plan.solver.status) == ("rules", "error")
    assert plan.solver.gap_frac is None


def test_rules_that_break_an_invariant_start_nothing_and_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuses(*_: object, **__: object) -> None:
        msg = "cpu of node 0"
        raise InvalidPlanError(msg)

    monkeypatch.setattr(cycle, "verify", refuses)
    plan = cycle.decide(contested(), Policy(strategy="rules"), now_s=NOW_S, budget_s=1.0)
    assert plan.starts == ()
    assert {pending.code.value for pending in plan.pending} == {"pending_evaluation"}
    assert (plan.solver.status, plan.solver.note) == ("invalid", "cpu of node 0")
