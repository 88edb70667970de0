"""The solvers and the search, on programs small enough to see the answer."""

import numpy as np
import pytest

from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.objective import Objective
from scheduler.decide.strategies.optimising import engines
from scheduler.decide.strategies.optimising.classes import group_jobs, group_nodes
from scheduler.decide.strategies.optimising.engines import ENGINES, Engine, positions
from scheduler.decide.strategies.optimising.model import Model, build
from scheduler.decide.strategies.optimising.search import Solution, search
from scheduler.decide.strategies.optimising.watch import Watch
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, FleetBuilder, job, tenant, world

SOLVERS = [
    "highs",
    pytest.param(
        "cbc",
        marks=pytest.mark.skipif(not engines.available("cbc"), reason="there is no CBC here"),
    ),
]


def program(snapshot: Snapshot) -> Model:
    turns = Turns(snapshot, Policy(), now_s=NOW_S)
    objective = Objective(turns)
    groups = group_nodes(turns.session)
    classes, _ = group_jobs(turns.session, list(turns.queue()), groups)
    return build(turns.session, objective, objective.base, classes, groups)


def crowded() -> Snapshot:
    """Seven devices for two jobs of four and three of two: 4 + 2 leaves one idle."""
    jobs = [job(f"four{i}", devices=4) for i in range(2)] + [
        job(f"two{i}", devices=2) for i in range(3)
    ]
    return world(FleetBuilder().node("n1", devices=7), jobs)


def engine_of(name: str, model: Model) -> Engine:
    return ENGINES[name](model.problem, [option.jobs for option in model.options], 0)


def searched(name: str, model: Model, watch: Watch, start: list[float] | None = None) -> Solution:
    columns = positions(model.problem, [option.jobs for option in model.options])
    given = None if start is None else np.array(start)
    return search(model, engine_of(name, model), columns, start=given, watch=watch, seed=0)


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_finds_that_three_small_jobs_beat_a_large_one(name: str) -> None:
    """2 + 2 + 2 and 4 + 2 hold six devices alike; three jobs served are worth more than two."""
    solution = searched(name, program(crowded()), Watch(5.0, None))
    chosen = {c.kind.job.shape.devices: c.jobs for c in solution.choices}
    assert chosen == {2: 3}
    assert solution.status == "optimal"


@pytest.mark.parametrize("name", SOLVERS)
def test_no_point_is_worth_more_than_the_relaxation(name: str) -> None:
    model = program(crowded())
    engine = engine_of(name, model)
    relaxed = engine.relax(5.0)
    upper = np.array([option.jobs.upBound for option in model.options])
    found = engine.solve(np.zeros(2), upper, None, limit_s=5.0)
    assert relaxed is not None
    assert found is not None
    assert relaxed.objective > found.objective
    assert found.objective <= found.bound
    assert relaxed.bound == relaxed.objective


@pytest.mark.parametrize("name", SOLVERS)
def test_fixed_jobs_stay_fixed(name: str) -> None:
    model = program(crowded())
    engine = engine_of(name, model)
    engine.relax(5.0)
    four = [float(option.kind.job.shape.devices == 4) for option in model.options]
    found = engine.solve(np.array(four), np.array(four), None, limit_s=5.0)
    assert found is not None
    at = positions(model.problem, [option.jobs for option in model.options])
    assert found.values[at].round().tolist() == four


def test_without_the_time_to_improve_the_better_of_rounding_and_the_rules_is_returned() -> None:
    """The clock gives the relaxation its time, then nothing: what was rounded is all there is."""
    seconds = iter([0.0, 0.0, 0.0, 0.1, 0.1, 0.1, 0.1, *[9.0] * 50])
    watch = Watch(1.0, lambda: next(seconds))
    solution = searched("highs", program(crowded()), watch, start=[0.0, 3.0])
    assert solution.status in {"feasible", "optimal"}
    assert solution.bound is not None


def test_time_that_is_up_after_the_relaxation_leaves_nothing_found() -> None:
    seconds = iter([0.0, 0.0, *[9.0] * 50])
    solution = searched("highs", program(crowded()), Watch(1.0, lambda: next(seconds)))
    assert (solution.status, solution.choices) == ("timeout", ())


def test_many_kinds_of_jobs_are_improved_near_what_is_known() -> None:
    """Sixty tenants with a job of their own each: more options than one neighbourhood frees."""
    names = [f"t{i:02d}" for i in range(60)]
    jobs = [job(f"j{name}", tenant=name, devices=1 + i % 3) for i, name in enumerate(names)]
    fleet = FleetBuilder()
    for n in range(8):
        fleet.node(f"n{n}", devices=5)
    snapshot = world(fleet, jobs, tenants=[tenant(name) for name in names])
    solution = searched("highs", program(snapshot), Watch(10.0, None))
    held = sum(c.jobs * c.kind.job.shape.devices for c in solution.choices)
    assert held <= 40
    assert solution.status == "optimal"


def test_a_watch_without_a_clock_counts_the_limits_it_gave() -> None:
    watch = Watch(2.0, None)
    assert watch.give(0.5) == 0.5
    assert watch.left_s() == 1.5
    assert watch.part(1.0).left_s() == 1.0


def test_a_solver_that_is_not_installed_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("pulp.PULP_CBC_CMD.pulp_cbc_path", "/nonexistent/cbc")
    assert not engines.available("cbc")
    assert engines.available("highs")
