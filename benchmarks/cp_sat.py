"""CP-SAT on a program built with PuLP, for comparison only: the product does not need it."""

import math
from typing import Any

ROW_SCALE, ROW_MOST = 1e10, 2.0**60
"""Rows are multiplied by this and rounded, for the solver knows integers only; by less where their
sums would pass the second."""

STEPS = {"t": 10**6, "log": 10**6, "o": 1000}
"""Steps per unit of the continuous variables, by the first part of their names; all others of
these programs are counts."""

FAR = 1000
"""A bound for variables that have none: parts and logarithms of the objective, and borrowed
devices, lie far inside."""


def solve_cp_sat(problem: Any, seconds: float, seed: int) -> tuple[dict[str, float], float]:
    """Return name -> value of the best point ({} = none) and the bound of the maximisation.

    Raises:
        SystemExit: ortools is not installed.
    """
    try:
        from ortools.sat.python import cp_model  # noqa: PLC0415 - only who compares needs it
    except ImportError as missing:
        message = "CP-SAT needs ortools: pip install -r requirements-benchmarks.txt"
        raise SystemExit(message) from missing
    model = cp_model.CpModel()
    steps = {v.name: _steps(v) for v in problem.variables()}
    made = {v.name: _variable(model, v, steps[v.name]) for v in problem.variables()}
    for row in problem.constraints():
        _add_row(model, row, made, steps)
    model.maximize(
        sum(
            round(c * ROW_SCALE / steps[v.name]) * made[v.name]
            for v, c in problem.objective.items()
        )
    )
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = abs(seed) % (2**31 - 1)
    status = solver.solve(model)
    bound = solver.best_objective_bound / ROW_SCALE
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return {}, bound if status == cp_model.UNKNOWN else math.inf
    return {name: solver.value(v) / steps[name] for name, v in made.items()}, bound


def _steps(variable: Any) -> int:
    return STEPS.get(variable.name.split("_")[0], 1)


def _variable(model: Any, variable: Any, steps: int) -> Any:
    low, high = _bounds(variable)
    return model.new_int_var(math.ceil(low * steps), math.floor(high * steps), variable.name)


def _bounds(variable: Any) -> tuple[float, float]:
    low = -FAR if variable.lowBound is None else variable.lowBound
    return low, FAR if variable.upBound is None else variable.upBound


def _add_row(model: Any, row: Any, made: dict[str, Any], steps: dict[str, int]) -> None:
    terms = list(row.items())
    most = sum(abs(c) * max(map(abs, _bounds(v))) for v, c in terms) + abs(row.constant) + 1.0
    scale = min(ROW_SCALE, ROW_MOST / most)
    left = sum(round(c * scale / steps[v.name]) * made[v.name] for v, c in terms)
    right = round(-row.constant * scale)
    slack = round(len(terms) * scale / 10**6)  # what rounding to steps may take
    if row.sense <= 0:
        model.add(left <= right + slack * (row.sense == 0))
    if row.sense >= 0:
        model.add(left >= right - slack * (row.sense == 0))
