"""One program for the whole queue at once, to compare the `optimising` strategy with.

It leaves out that higher priority classes go first, so its bound holds for every plan: nobody can
do better than that. HiGHS solves it for as long as one likes; CP-SAT, where it is installed, solves
the same program beside it. What each chooses is placed by the same turns and valued alike.
"""

import time
from collections.abc import Mapping, Sequence
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
        integers = [option.jobs for option in self.model.options]
        engine = Highs(self.model.problem, integers, self._policy.seed)
        found = engine.relax(seconds)
        if found is None:
            return {"solver": "highs", "seconds": seconds, "objective": None, "bound": None}
        bound = found.bound
        upper = np.array([variable.upBound for variable in integers], dtype=np.float64)
        better = engine.solve(np.zeros_like(upper), upper, None, limit_s=seconds)
        took_s = time.perf_counter() - began_s
        if better is not None:
            found, bound = better, min(bound, better.bound)
        at = positions(self.model.problem, integers)
        names = [option.replicas for option in self.model.options]
        at_replicas = positions(self.model.problem, names)
        jobs, replicas = found.values[at].tolist(), found.values[at_replicas].tolist()
        value = self._placed(jobs, replicas) if better is not None else None
        return self._figures("highs", took_s, value, bound)

    def cp_sat(self, seconds: float) -> dict[str, Any]:
        """Return what CP-SAT finds and proves in that time, on the program in whole numbers."""
        began_s = time.perf_counter()
        values, bound = solve_cp_sat(self.model.problem, seconds, self._policy.seed)
        took_s = time.perf_counter() - began_s
        value = self._of_values(values) if values else None
        return self._figures("cp-sat", took_s, value, bound)

    def _of_values(self, values: Mapping[str, float]) -> float:
        jobs = [values[option.jobs.name] for option in self.model.options]
        return self._placed(jobs, [values[option.replicas.name] for option in self.model.options])

    def _figures(
        self, solver: str, took_s: float, value: float | None, bound: float
    ) -> dict[str, Any]:
        """The bound becomes one of the objective: what nothing started is worth, and the gain."""
        whole = self.objective.value(self._base) + bound - self.model.constant
        return {
            "solver": solver,
            "seconds": round(took_s, 3),
            "objective": value,
            "bound": whole if np.isfinite(whole) else None,
        }

    def _placed(self, jobs: Sequence[float], replicas: Sequence[float]) -> float:
        """Return the objective once what was chosen is placed, as far as it finds a place."""
        turns = Turns(self._snapshot, self._policy, now_s=self._snapshot.now_s)
        choices = [
            Choice(option.kind, option.flavor, round(x), round(y))
            for option, x, y in zip(self.model.options, jobs, replicas, strict=True)
            if round(x) > 0
        ]
        start_chosen(turns, choices)
        return self.objective.value(self.objective.after(turns.starts))
