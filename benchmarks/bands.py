"""A long solve under the same rules as the `optimising` strategy, to compare its plans with.

Bands of the queue are decided in the strategy's order, what one starts and reserves is fixed before
the next is looked at, and jobs that a program does not choose get the same turns. Only the search
differs: HiGHS alone takes each program from nothing to a proof, in as much time as one likes.
"""

import math
import time
from typing import Any

from benchmarks.joint import solve_highs
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.objective import Objective
from scheduler.decide.strategies.optimising.bands import Bands, Outcome, in_bands
from scheduler.decide.strategies.optimising.model import Model
from scheduler.decide.strategies.optimising.search import Choice, Solution
from scheduler.decide.strategies.optimising.watch import Watch
from scheduler.decide.strategies.rules import REPORT, turns_of
from scheduler.decide.turns import Turns


class _Exact(Bands):
    """Bands whose programs HiGHS solves alone: no neighbourhoods, no start from the rules plan."""

    def _search(self, model: Model, watch: Watch) -> Solution:
        found, bound = solve_highs(model, watch.left_s(), self.turns.policy.seed)
        if found is None:
            return Solution("timeout", bound=bound)
        choices = tuple(
            Choice(option.kind, option.flavor, jobs, replicas)
            for option, jobs, replicas in zip(model.options, *found, strict=True)
            if jobs > 0
        )
        return Solution("feasible", choices, bound)


def in_bands_highs(snapshot: Snapshot, policy: Policy, seconds: float) -> dict[str, Any]:
    """Return what HiGHS finds and proves, with so many seconds for every band.

    The bound is the objective and what each band could gain by its own proof, on what those ahead
    of it left. It is one for plans that are made so, band by band; another choice in a band ahead
    may leave more to those behind.
    """
    began_s = time.perf_counter()
    rules = turns_of(snapshot, policy, now_s=snapshot.now_s).draft(REPORT)
    turns = Turns(snapshot, policy, now_s=snapshot.now_s)
    objective = Objective(turns)
    bands = _Exact(turns, objective, "highs", {}, Watch(math.inf, None))
    outcome = Outcome([])
    for band in in_bands(turns, rules):
        bands.decide(band, Watch(seconds, time.perf_counter, time.perf_counter()), outcome)
    value = objective.value(objective.after(turns.starts))
    return {
        "solver": "highs",
        "seconds": round(time.perf_counter() - began_s, 3),
        "bands": len(outcome.statuses),
        "objective": value,
        "bound": None if outcome.slack is None else value + outcome.slack,
    }
