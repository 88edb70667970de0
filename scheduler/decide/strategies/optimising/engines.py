"""The solvers: HiGHS in this process, and CBC as a program of its own, both built by PuLP."""

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pulp

FloatArray: TypeAlias = npt.NDArray[np.float64]

GAP_FRAC = 0.001
"""Good enough: the tangents' own error is of this size."""

FEASIBLE_POINT = 2
"""HiGHS' kSolutionStatusFeasible."""


class Found(NamedTuple):
    """A point of the program.

    Attributes:
        values: (variables,) in the order of `problem.variables()`.
        objective: what it is worth; the program is maximised.
        bound: no point of the program that was solved is worth more; infinite = unknown.
    """

    values: FloatArray
    objective: float
    bound: float


class Engine(Protocol):
    """Solves one program again and again, under other bounds of its integer variables."""

    def relax(self, limit_s: float, /) -> Found | None:
        """Return the optimum without integrality; None = not found in time."""
        ...

    def solve(
        self, lower: FloatArray, upper: FloatArray, start: FloatArray | None, /, *, limit_s: float
    ) -> Found | None:
        """Return the best integer point found in time.

        Args:
            lower: (integers,) bounds.
            upper: (integers,) bounds.
            start: (integers,) a point to begin with; None = none is known.
            limit_s: seconds.
        """
        ...


def positions(problem: Any, wanted: Sequence[Any]) -> npt.NDArray[np.int32]:
    """Return (wanted,) the place of each variable in `problem.variables()`."""
    at = {variable.name: i for i, variable in enumerate(problem.variables())}
    return np.array([at[variable.name] for variable in wanted], dtype=np.int32)


class Highs:
    """HiGHS through PuLP: built once, on one thread (a forked worker has none to miss)."""

    def __init__(self, problem: Any, integers: Sequence[Any], seed: int) -> None:
        self._problem, self._seed = problem, seed % (2**31 - 1)
        self._columns = positions(problem, integers)
        self._engine: Any = None

    def relax(self, limit_s: float, /) -> Found | None:
        """Build the program and return its optimum without integrality."""
        solver = pulp.HiGHS(
            msg=False,
            timeLimit=limit_s,
            threads=1,
            gapRel=GAP_FRAC,
            random_seed=self._seed,
            solve_relaxation=True,
        )
        self._problem.solve(solver)
        self._engine = self._problem.solverModel
        self._engine.setOptionValue("solve_relaxation", False)
        found = self._read()
        return found._replace(bound=found.objective) if found and self._is_optimal() else None

    def solve(
        self, lower: FloatArray, upper: FloatArray, start: FloatArray | None, /, *, limit_s: float
    ) -> Found | None:
        """Change the bounds and solve on."""
        engine, count = self._engine, len(self._columns)
        engine.setOptionValue("time_limit", float(limit_s))
        engine.changeColsBounds(count, self._columns, lower, upper)
        if start is not None:
            engine.setSolution(count, self._columns, start)
        engine.run()
        return self._read()

    def _is_optimal(self) -> bool:
        engine = self._engine
        return bool(engine.modelStatusToString(engine.getModelStatus()) == "Optimal")

    def _read(self) -> Found | None:
        engine = self._engine
        info = engine.getInfo()
        if info.primal_solution_status != FEASIBLE_POINT:
            return None
        offset = float(engine.getLp().offset_)
        bound = offset - float(info.mip_dual_bound)  # PuLP hands over the negative, as a minimum
        return Found(
            np.array(engine.getSolution().col_value),
            offset - float(info.objective_function_value),
            bound if math.isfinite(bound) else math.inf,
        )


class Cbc:
    """CBC through PuLP: a process and a file for every solve, so better for few large ones."""

    def __init__(self, problem: Any, integers: Sequence[Any], seed: int) -> None:
        self._problem, self._integers, self._seed = problem, integers, seed

    def relax(self, limit_s: float, /) -> Found | None:
        """Return the optimum without integrality."""
        found = self._run(limit_s, mip=False)
        return found._replace(bound=found.objective) if found else None

    def solve(
        self, lower: FloatArray, upper: FloatArray, start: FloatArray | None, /, *, limit_s: float
    ) -> Found | None:
        """Write the program with these bounds and solve it."""
        for i, variable in enumerate(self._integers):
            variable.lowBound, variable.upBound = float(lower[i]), float(upper[i])
            if start is not None:
                variable.setInitialValue(float(min(max(start[i], lower[i]), upper[i])))
        return self._run(limit_s, mip=True, warmStart=start is not None)

    def _run(self, limit_s: float, **options: Any) -> Found | None:
        solver = pulp.COIN_CMD(
            path=cbc_path(),
            msg=False,
            threads=1,
            timeLimit=limit_s,
            gapRel=GAP_FRAC,
            options=[f"randomCbcSeed {self._seed % (2**31 - 1)}"],
            **options,
        )
        self._problem.solve(solver)
        if self._problem.sol_status not in _CBC_FOUND:
            return None
        values = np.array([v.varValue or 0.0 for v in self._problem.variables()])
        worth = float(pulp.value(self._problem.objective))
        proved = self._problem.sol_status == pulp.LpSolutionOptimal
        return Found(values, worth, worth + GAP_FRAC * abs(worth) if proved else math.inf)


_CBC_FOUND = (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)


def cbc_path() -> str | None:
    """Return where CBC is: on the path, else the one that PuLP ships for some platforms."""
    shipped = pulp.PULP_CBC_CMD.pulp_cbc_path
    return shutil.which("cbc") or (shipped if Path(shipped).is_file() else None)


ENGINES: Mapping[str, Callable[[Any, Sequence[Any], int], Engine]] = {"highs": Highs, "cbc": Cbc}
"""`Policy.solver` -> engine."""


def available(name: str) -> bool:
    """Return whether a solver can be run on this machine."""
    return name != "cbc" or cbc_path() is not None
