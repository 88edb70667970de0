"""How a program is searched: relax, round, improve near what is known, then prove.

The relaxation of these programs is nearly integral (a handful of a thousand variables are not), so
rounding it is already good. From the best of that and the rules plan a large-neighbourhood search
(Shaw 1998; with a MILP inside: Danna, Rothberg and Le Pape 2005) frees a few variables at a time.
What time is left goes to branch and bound, started from the best point known.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scheduler.decide.strategies.optimising.classes import JobClass
from scheduler.decide.strategies.optimising.engines import GAP_FRAC, Engine, FloatArray, Found
from scheduler.decide.strategies.optimising.model import Model
from scheduler.decide.strategies.optimising.watch import Watch

FREED = 40
"""So many variables a neighbourhood frees beside those that the relaxation splits."""

NEAR_PART = 0.3
"""Part of the time that the neighbourhoods may take."""

NEAR_LIMIT_S = 0.1
"""One neighbourhood takes no longer: it is to be quick, not exact."""

NEAR_MOST, NEAR_STALE = 40, 8
"""So many neighbourhoods at most, and so many without a gain before it is left at that."""

PROOF_RELAXATIONS = 15
"""Branch and bound is begun with the time of so many relaxations, built and solved: HiGHS does not
look at its limit while it presolves, and presolving large programs takes about as many."""

WHOLE = 1e-6
"""A value as near to an integer is one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """So many jobs of a class start on a flavor, with so many replicas in sum."""

    kind: JobClass
    flavor: int
    jobs: int
    replicas: int


@dataclass(frozen=True, slots=True)
class Solution:
    """What was found.

    Attributes:
        status: optimal, feasible, timeout where nothing was found, or error.
        choices: what starts.
        bound: no plan is worth more than this under the tangents; None = unknown. It leaves out
            the parts of the objective that the program does not change.
    """

    status: str
    choices: tuple[Choice, ...] = ()
    bound: float | None = None


@dataclass(slots=True)
class _Search:
    """The best point so far, and the least bound.

    Attributes:
        near: columns of the integer variables.
        upper: (integers,) bounds of the program; the lower ones are 0.
        split: (integers,) those that the relaxation splits.
    """

    engine: Engine
    near: npt.NDArray[np.int32]
    upper: FloatArray
    split: npt.NDArray[np.bool_]
    bound: float
    best: Found | None = None

    def point(self) -> FloatArray | None:
        """Return (integers,) the best point."""
        return None if self.best is None else np.rint(self.best.values[self.near])

    def is_done(self) -> bool:
        """Return whether nothing can be gained that is worth the time."""
        if self.best is None:
            return False
        room = self.bound - self.best.objective
        return room <= GAP_FRAC * max(1.0, abs(self.best.objective)) + WHOLE

    def free(self, free: npt.NDArray[np.bool_], around: FloatArray, limit_s: float) -> bool:
        """Solve with all but the free variables fixed; return whether that was a gain."""
        lower = np.where(free, 0.0, around)
        upper = np.where(free, self.upper, around)
        return self._keep(self.engine.solve(lower, upper, self.point(), limit_s=limit_s))

    def prove(self, limit_s: float) -> None:
        """Solve the whole program from the best point."""
        lower = np.zeros_like(self.upper)
        found = self.engine.solve(lower, self.upper, self.point(), limit_s=limit_s)
        self._keep(found)
        if found is not None:
            self.bound = min(self.bound, found.bound)

    def _keep(self, found: Found | None) -> bool:
        if found is None or (self.best and found.objective <= self.best.objective + WHOLE):
            return False
        self.best = found
        return True


def search(
    model: Model,
    engine: Engine,
    near: npt.NDArray[np.int32],
    *,
    start: FloatArray | None,
    watch: Watch,
    seed: int,
) -> Solution:
    """Return the best found before the watch runs out.

    Args:
        model: the program.
        engine: a solver of it.
        near: columns of `model.options`' job variables.
        start: (options,) jobs that an earlier plan starts; None = no such plan.
        watch: on the time that may be taken.
        seed: of the choice of neighbourhoods.
    """
    began_s = watch.left_s()
    relaxed = engine.relax(began_s)
    if relaxed is None:
        return Solution("timeout")
    relax_s = began_s - watch.left_s()
    values = relaxed.values[near]
    upper = np.array([option.jobs.upBound for option in model.options], dtype=np.float64)
    split = np.abs(values - np.rint(values)) > WHOLE
    state = _Search(engine, near, upper, split, relaxed.bound)
    _begin(state, np.rint(values), start, watch)
    _improve(state, watch, np.random.default_rng(seed))
    left_s = watch.left_s()
    if not state.is_done() and left_s > PROOF_RELAXATIONS * relax_s:
        state.prove(watch.give(left_s))
    return _solution(model, state)


def _begin(state: _Search, rounded: FloatArray, start: FloatArray | None, watch: Watch) -> None:
    """Round what is split as well as can be, and look what the earlier plan is worth."""
    if watch.left_s() > 0:
        state.free(state.split, rounded, min(NEAR_LIMIT_S, watch.left_s()))
    if start is not None and watch.left_s() > 0:
        nothing = np.zeros_like(state.split)
        state.free(nothing, np.minimum(start, state.upper), min(NEAR_LIMIT_S, watch.left_s()))


def _improve(state: _Search, watch: Watch, rng: np.random.Generator) -> None:
    """Free some variables at a time while that pays."""
    until_s, stale = watch.left_s() * (1 - NEAR_PART), 0
    if len(state.upper) <= FREED:
        return  # that would be the whole program
    for _ in range(NEAR_MOST):
        point = state.point()
        left_s = watch.left_s() - until_s
        if point is None or state.is_done() or stale >= NEAR_STALE or left_s <= 0:
            return
        free = state.split.copy()
        free[rng.permutation(len(free))[:FREED]] = True
        gained = state.free(free, point, watch.give(min(NEAR_LIMIT_S, left_s)))
        stale = 0 if gained else stale + 1


def _solution(model: Model, state: _Search) -> Solution:
    if state.best is None:
        return Solution("timeout", bound=state.bound)
    at = {variable.name: i for i, variable in enumerate(model.problem.variables())}
    choices = []
    for option in model.options:
        jobs = round(state.best.values[at[option.jobs.name]])
        replicas = round(state.best.values[at[option.replicas.name]])
        if jobs > 0:
            choices.append(Choice(option.kind, option.flavor, jobs, replicas))
    status = "optimal" if state.is_done() else "feasible"
    bound = state.bound if math.isfinite(state.bound) else None
    return Solution(status, tuple(choices), bound)
