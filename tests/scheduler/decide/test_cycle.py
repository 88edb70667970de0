"""Who is asked, and who answers where a strategy fails."""

from dataclasses import replace

import pytest

from scheduler.core.errors import InvalidPlanError, InvalidPolicyError
from scheduler.core.plan import FAILED, Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.core.verify import verify
from scheduler.decide import cycle
from scheduler.decide.cycle import asked_of, decide
from scheduler.decide.shadow import compare
from scheduler.decide.strategies.base import STRATEGIES
from scheduler.decide.strategies.optimising import engines
from scheduler.decide.validate import validate_policy
from tests.builders import NOW_S, FleetBuilder, job, world
from tests.scheduler.decide import misbehaving

FAILURES = {
    "one that raises": ("raising", "error", "ZeroDivisionError: no such thing"),
    "one that is late": ("late", "late", "4.00 s of 2.00 s"),
    "one that places two jobs on one device": ("greedy", "invalid", "2000 taken"),
}


def two_devices() -> Snapshot:
    """The rules give the first comer the fast device, which only `picky` needs."""
    fleet = FleetBuilder().flavor("fast", cu=900.0).flavor("slow", cu=100.0)
    fleet.node("n1", devices=1, flavor="fast").node("n2", devices=1, flavor="slow")
    first = job("any", devices=1, flavors=["fast", "slow"], submitted_s=NOW_S - 10)
    return world(fleet, [first, job("picky", devices=1, flavors=["fast"])])


def of_kinds(snapshot: Snapshot, **kinds: str) -> Snapshot:
    jobs = [replace(one, kind=kinds.get(one.uid, one.kind)) for one in snapshot.pending]
    return replace(snapshot, pending=tuple(jobs))


def decided(snapshot: Snapshot, policy: Policy) -> Plan:
    clock = misbehaving.Clock()
    return decide(snapshot, policy, now_s=NOW_S, budget_s=policy.budget_s, clock=clock)


@pytest.mark.parametrize(("name", "status", "note"), FAILURES.values(), ids=FAILURES.keys())
def test_the_rules_answer_for(
    name: str, status: str, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STRATEGIES, name, f"{misbehaving.MODULE}.{name}")
    plan = decided(two_devices(), Policy(strategy=name, budget_s=2.0))
    assert [start.uid for start in plan.starts] == ["any"]
    report = plan.solver
    assert (report.strategy, report.asked, report.status) == ("rules", name, status)
    assert note in report.note
    assert status in FAILED


def test_rules_that_break_an_invariant_are_recorded_whoever_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The program would find a plan, and nobody would ever learn of what is wrong."""

    def refuses_rules(snapshot: Snapshot, plan: Plan, policy: Policy, *, now_s: float) -> None:
        if plan.solver.strategy == "rules":
            raise InvalidPlanError("2000 taken")
        verify(snapshot, plan, policy, now_s=now_s)

    monkeypatch.setattr(cycle, "verify", refuses_rules)
    plan = decided(two_devices(), Policy(strategy="optimising"))
    report = plan.solver
    assert (report.strategy, report.asked, report.status) == ("rules", "optimising", "invalid")
    assert (report.note, plan.starts) == ("2000 taken", ())


def test_a_strategy_that_shifts_the_time_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, "shifting", f"{misbehaving.MODULE}.shifting")
    report = decided(two_devices(), Policy(strategy="shifting")).solver
    assert (report.status, report.note) == ("invalid", f"the plan is of {NOW_S + 1}")


def test_the_time_that_validation_takes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """1.5 s of a budget of 2 s are gone when the strategy begins: 0.5 s are left."""
    clock = misbehaving.Clock()

    def slow(_: Snapshot) -> None:
        clock.now_s += 1.5

    monkeypatch.setattr(cycle, "validate", slow)
    monkeypatch.setitem(STRATEGIES, "late", f"{misbehaving.MODULE}.late")
    plan = decide(
        two_devices(), Policy(strategy="late", budget_s=2.0), now_s=NOW_S, budget_s=2.0, clock=clock
    )
    assert (plan.solver.status, plan.solver.note) == ("late", "1.00 s of 0.50 s")
    assert plan.solver.wall_s == 2.5


def test_a_strategy_that_is_a_little_late_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twice 0.04 s is 0.04 s too late, and 0.05 s are always granted."""
    monkeypatch.setitem(STRATEGIES, "late", f"{misbehaving.MODULE}.late")
    plan = decided(two_devices(), Policy(strategy="late", budget_s=0.04))
    assert plan.solver.status == "not_needed"


def test_a_kind_is_decided_by_its_own_strategy() -> None:
    snapshot = of_kinds(two_devices(), any="notebook", picky="training")
    by_rules = Policy(strategy="rules")
    chosen = replace(by_rules, kinds=(("training", "optimising"),))
    assert asked_of(snapshot, by_rules) == "rules"
    assert asked_of(snapshot, chosen) == "optimising"
    assert asked_of(replace(snapshot, pending=()), chosen) == "rules"
    notebooks = of_kinds(two_devices(), any="notebook", picky="notebook")
    assert asked_of(notebooks, replace(chosen, strategy="optimising")) == "optimising"
    only_rules = Policy(strategy="optimising", kinds=(("notebook", "rules"),))
    assert asked_of(notebooks, only_rules) == "rules"


def test_jobs_that_the_rules_decide_go_first_and_the_program_takes_the_rest() -> None:
    """Alone, the program would give `any` the slow device, and both would start."""
    snapshot = of_kinds(two_devices(), any="notebook", picky="training")
    policy = Policy(strategy="optimising", kinds=(("notebook", "rules"),))
    plan = decided(snapshot, policy)
    assert {start.uid: start.flavor for start in plan.starts} == {"any": "fast"}
    whole = decided(snapshot, Policy(strategy="optimising"))
    assert {start.uid: start.flavor for start in whole.starts} == {"any": "slow", "picky": "fast"}


WRONG = {
    "a strategy that there is not": Policy(kinds=(("batch", "magic"),)),
    "a shadow that there is not": Policy(shadow="magic"),
    "a solver that there is not": Policy(solver="magic"),
    "a kind named twice": Policy(kinds=(("batch", "rules"), ("batch", "rules"))),
}


@pytest.mark.parametrize("policy", WRONG.values(), ids=WRONG.keys())
def test_a_policy_is_refused_that_names(policy: Policy) -> None:
    with pytest.raises(InvalidPolicyError):
        validate_policy(policy)


def test_two_strategies_beside_the_rules_cannot_make_one_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(STRATEGIES, "late", f"{misbehaving.MODULE}.late")
    validate_policy(Policy(strategy="late", kinds=(("batch", "rules"),)))
    with pytest.raises(InvalidPolicyError, match="more than one strategy"):
        validate_policy(Policy(strategy="optimising", kinds=(("batch", "late"),)))


def test_a_shadow_is_compared_with_what_is_carried_out() -> None:
    """The program moves `any` to the slow device and starts `picky`, too."""
    snapshot, policy = two_devices(), Policy(strategy="rules", shadow="optimising")
    carried = decided(snapshot, policy)
    found = compare(snapshot, policy, carried, now_s=NOW_S, budget_s=5.0)
    assert found.plan.solver.strategy == "optimising"
    assert (found.only_carried, found.only_shadow, found.moved) == ((), ("picky",), ("any",))
    assert found.objective_shadow > found.objective
    assert found.objective == found.plan.solver.objective_rules


def test_a_shadow_that_decides_alike_differs_in_nothing() -> None:
    snapshot = world(FleetBuilder().node("n1", devices=4), [job("a", devices=2)])
    policy = Policy(strategy="optimising", shadow="rules", kinds=(("batch", "optimising"),))
    found = compare(snapshot, policy, decided(snapshot, policy), now_s=NOW_S, budget_s=5.0)
    assert found.plan.solver.strategy == "rules"
    assert (found.only_carried, found.only_shadow, found.moved) == ((), (), ())
    assert found.objective_shadow == found.objective


def test_a_solver_that_is_not_installed_is_replaced_and_it_is_said_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engines, "cbc_path", lambda: None)
    plan = decided(two_devices(), Policy(strategy="optimising", solver="cbc"))
    assert len(plan.starts) == 2
    assert plan.solver.solver == "highs"
    assert plan.solver.note == "cbc is not installed, highs solved"


@pytest.mark.skipif(not engines.available("cbc"), reason="there is no CBC here")
def test_the_other_solver_decides_as_well() -> None:
    policy = Policy(strategy="optimising", solver="cbc")
    plan = decide(two_devices(), policy, now_s=NOW_S, budget_s=5.0)
    assert len(plan.starts) == 2
    assert (plan.solver.solver, plan.solver.note) == ("cbc", "")
