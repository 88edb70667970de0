"""Runs a program on HiGHS through PuLP."""

import math
from dataclasses import dataclass
from typing import Any

import pulp

from scheduler.decide.strategies.optimising.classes import JobClass
from scheduler.decide.strategies.optimising.model import Model

GAP_FRAC = 0.001
"""Good enough: the tangents' own error is of this size."""


@dataclass(frozen=True, slots=True)
class Choice:
    """So many jobs of a class start on a flavor, with so many replicas in sum."""

    kind: JobClass
    flavor: int
    jobs: int
    replicas: int


@dataclass(frozen=True, slots=True)
class Solution:
    """What the solver found.

    Attributes:
        status: optimal, feasible, timeout where it found nothing, or error.
        choices: what starts.
        bound: no plan is worth more than this under the tangents; None = unknown. It leaves out
            the parts of the objective that the program does not change.
    """

    status: str
    choices: tuple[Choice, ...] = ()
    bound: float | None = None


def solve(model: Model, *, limit_s: float, seed: int) -> Solution:
    """Return the best that HiGHS finds within the limit.

    On one thread, so that a forked worker has none to miss, and with a fixed seed.

    Raises:
        pulp.PulpSolverError: HiGHS is not installed.
    """
    solver = pulp.HiGHS(
        msg=False,
        timeLimit=limit_s,
        threads=1,
        gapRel=GAP_FRAC,
        random_seed=seed % (2**31 - 1),
    )
    model.problem.solve(solver)
    engine: Any = model.problem.solverModel
    optimal = engine.modelStatusToString(engine.getModelStatus()) == "Optimal"
    info = engine.getInfo()
    if info.primal_solution_status != FEASIBLE_POINT:
        return Solution("timeout")
    bound = _bound(engine, float(info.mip_dual_bound))
    return _read(model, optimal=optimal, bound=bound if math.isfinite(bound) else None)


FEASIBLE_POINT = 2
"""HiGHS' kSolutionStatusFeasible."""


def _bound(engine: Any, dual_bound: float) -> float:
    """Return the bound of the maximisation, without its constant.

    PuLP 3 hands HiGHS the minimisation of the negative and keeps the constant; PuLP 4 hands it all.
    """
    program = engine.getLp()
    sign = 1.0 if "Maximize" in str(program.sense_) else -1.0
    return sign * (dual_bound - float(program.offset_))


def _read(model: Model, *, optimal: bool, bound: float | None) -> Solution:
    if any(option.jobs.varValue is None for option in model.options):
        return Solution("timeout")
    choices = []
    for option in model.options:
        jobs = round(option.jobs.varValue)
        replicas = round(option.replicas.varValue)
        if jobs > 0:
            choices.append(Choice(option.kind, option.flavor, jobs, replicas))
    return Solution("optimal" if optimal else "feasible", tuple(choices), bound)
