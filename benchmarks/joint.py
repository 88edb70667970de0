"""One program for the whole queue at once, to compare the `optimising` strategy with.

It leaves out the order of the queue: that higher priority classes go first, and in each those whose
tenant has room in its quota. So its bound holds for every plan, but plans that keep that order may
never come near it; `benchmarks.bands` is the reference that keeps it, too. HiGHS
solves it for as long as one likes; CP-SAT, where it is installed, solves the same program beside
it. What each chooses is placed by the same turns and valued alike.
"""

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.cp_sat import solve_cp_sat
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.objective import Objective
from scheduler.decide.strategies.optimising.bands import start_chosen
from scheduler.decide.strategies.optimising.classes import group_jobs, group_nodes
from scheduler.decide.strategies.optimising.engines import Highs, positions
from scheduler.decide.strategies.optimising.model import Model, build
from scheduler.decide.strategies.optimising.search import Choice
from scheduler.decide.turns import Turns


def solve_highs(
    model: Model, seconds: float, seed: int
) -> tuple[tuple[list[int], list[int]] | None, float | None]:
    """Return what HiGHS finds in that time, from nothing, and the bound that it proves.

    Args:
        model: the program.
        seconds: each for its relaxation and for the whole numbers.
        seed: of HiGHS.

    Returns:
        (options,) jobs and (options,) replicas, None where nothing was found; and what no point of
        the program is worth more than, None where not even the relaxation was solved.
    """
    integers = [option.jobs for option in model.options]
    engine = Highs(model.problem, integers, seed)
    relaxed = engine.relax(seconds)
    if relaxed is None:
        return None, None
    upper = np.array([variable.upBound for variable in integers], dtype=np.float64)
    found = engine.solve(np.zeros_like(upper), upper, None, limit_s=seconds)
    bound = min(relaxed.bound, found.bound) if found else relaxed.bound
    proved = bound if math.isfinite(bound) else None
    if found is None:
        return None, proved
    replicas = [option.replicas for option in model.options]
    at = [positions(model.problem, names) for names in (integers, replicas)]
    jobs, sizes = (np.rint(found.values[columns]).astype(int).tolist() for columns in at)
    return (jobs, sizes), proved


class Joint:
    """The program of one snapshot."""

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self._snapshot, self._policy = snapshot, policy
        turns = Turns(snapshot, policy, now_s=snapshot.now_s)
        self.objective = Objective(turns)
        self._queue = list(turns.queue())
        groups = group_nodes(turns.session)
        classes, _ = group_jobs(turns.session, self._queue, groups, most=len(self._queue))
        self._base = self.objective.base
        self.model: Model = build(turns.session, self.objective, self._base, classes, groups)

    def highs(self, seconds: float) -> dict[str, Any]:
        """Return what HiGHS finds and proves in that time."""
        began_s = time.perf_counter()
        found, bound = solve_highs(self.model, seconds, self._policy.seed)
        took_s = time.perf_counter() - began_s
        return self._figures("highs", took_s, self._placed(*found) if found else None, bound)

    def cp_sat(self, seconds: float) -> dict[str, Any]:
        """Return what CP-SAT finds and proves in that time, on the program in whole numbers."""
        began_s = time.perf_counter()
        values, bound = solve_cp_sat(self.model.problem, seconds, self._policy.seed)
        took_s = time.perf_counter() - began_s
        if not values:
            return self._figures("cp-sat", took_s, None, bound)
        jobs = [round(values[option.jobs.name]) for option in self.model.options]
        replicas = [round(values[option.replicas.name]) for option in self.model.options]
        return self._figures("cp-sat", took_s, self._placed(jobs, replicas), bound)

    def _figures(
        self, solver: str, took_s: float, value: float | None, bound: float | None
    ) -> dict[str, Any]:
        """The bound becomes one of the objective: what nothing started is worth, and the gain."""
        least = self.objective.value(self._base) - self.model.constant
        whole = least + bound if bound is not None and math.isfinite(bound) else None
        return {
            "solver": solver,
            "seconds": round(took_s, 3),
            "objective": value,
            "bound": whole,
        }

    def _placed(self, jobs: Sequence[int], replicas: Sequence[int]) -> float:
        """Return the objective once what was chosen is placed, as far as it finds a place."""
        turns = Turns(self._snapshot, self._policy, now_s=self._snapshot.now_s)
        choices = [
            Choice(option.kind, option.flavor, x, y)
            for option, x, y in zip(self.model.options, jobs, replicas, strict=True)
            if x > 0
        ]
        start_chosen(turns, choices)
        return self.objective.value(self.objective.after(turns.starts))
