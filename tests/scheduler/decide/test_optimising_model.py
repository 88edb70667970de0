"""The program, with its constant and its limits worked out by hand."""

import pytest

from scheduler.core.policy import Policy
from scheduler.core.snapshot import QuotaLine, Snapshot
from scheduler.decide.objective import Objective
from scheduler.decide.strategies.optimising.classes import group_jobs, group_nodes
from scheduler.decide.strategies.optimising.engines import Highs
from scheduler.decide.strategies.optimising.model import Model, build
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, FleetBuilder, job, tenant, world
from tests.scheduler.decide.test_objective import snapshot, waits

ERROR = 0.0025
"""Of a logarithm's tangents, see `tangents`."""


def program(given: Snapshot, **policy: float) -> Model:
    turns = Turns(given, Policy(strategy="optimising", **policy), now_s=NOW_S)  # type: ignore[arg-type]
    objective, groups = Objective(turns), group_nodes(turns.session)
    classes, _ = group_jobs(turns.session, list(turns.queue()), groups)
    return build(turns.session, objective, objective.base, classes, groups)


def optimum(model: Model) -> float:
    found = Highs(model.problem, [option.jobs for option in model.options], 0).relax(10.0)
    assert found is not None
    return found.objective


def most_replicas(model: Model) -> float:
    """Return how many replicas the program lets start, whatever they are worth."""
    model.problem.setObjective(sum(option.replicas for option in model.options))
    return optimum(model)


def test_what_the_program_gains_is_what_the_objective_gains() -> None:
    """As in test_objective. The program leaves out what it cannot change: a's share and the watts
    held. Nothing started: ln 0.224007 + ln 0.51 + 3/4 ln 0.01 = -5.623301. One replica of b:
    ln 0.651950 + ln 0.76 + 3/4 ln 0.676654 - 0.1 x 1400 / 3400 = -1.036347, up to 2.75 tangents'
    errors (weights 1, 1 and 3/4) too high.
    """
    model = program(snapshot(waits(flavors=["fast"])))
    assert model.constant == pytest.approx(-5.623301, abs=3e-6)
    assert -1.036347 - 1e-5 <= optimum(model) <= -1.036347 + 2.75 * ERROR


CASES = {
    # x owns 1 and may borrow 2; y owns 3 and lends 1: 1 + 1
    "what others lend": (QuotaLine(1000, 2000), QuotaLine(3000, None, 1000), 2),
    # y lends all of its 3, x may borrow 2: 1 + 2
    "what one may borrow": (QuotaLine(1000, 2000), QuotaLine(3000), 3),
    # x keeps 1 of its 2 to itself, which it has all the same; y lends 1: 2 + 1
    "what one does not lend": (
        QuotaLine(2000, None, 1000),
        QuotaLine(2000, None, 1000),
        3,
    ),
}


@pytest.mark.parametrize(("x", "y", "most"), CASES.values(), ids=CASES.keys())
def test_no_more_starts_than_the_tree_of_quotas_lets(x: QuotaLine, y: QuotaLine, most: int) -> None:
    tree = [tenant("all"), tenant("x", under="all", a100=x), tenant("y", under="all", a100=y)]
    asked = [job(f"j{i}", tenant="x", devices=1) for i in range(4)]
    given = world(FleetBuilder().node("n", devices=4), asked, tenants=tree)
    assert most_replicas(program(given)) == pytest.approx(most)


def test_no_more_starts_than_the_cap_lets_and_no_more_than_a_group_has() -> None:
    """Boards of 400 W: 900 W are two whole ones and a quarter; the program itself is a relaxation.
    Without a cap, 4 devices and 5 cores carry two jobs of one device and two cores, and a half.
    """
    asked = [job(f"j{i}", devices=1, cpu=2) for i in range(4)]
    given = world(FleetBuilder().node("n", cpu=64, devices=4), asked)
    assert most_replicas(program(given, power_cap_w=900.0)) == pytest.approx(2.25)
    narrow = world(FleetBuilder().node("n", cpu=5, devices=4), asked)
    assert most_replicas(program(narrow)) <= 2.5
