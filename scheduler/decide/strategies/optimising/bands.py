"""One band of the queue at a time: the program chooses, the turns place what it chose.

The program counts nodes in groups, so that now and then something that it chose finds no place.
What is left over then gets another, smaller program on what is left free.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pulp

from scheduler.core.plan import Plan
from scheduler.core.snapshot import JobSpec
from scheduler.decide.objective import Objective
from scheduler.decide.ordering import Ranked
from scheduler.decide.strategies.base import RULES
from scheduler.decide.strategies.optimising.classes import group_jobs, group_nodes
from scheduler.decide.strategies.optimising.engines import ENGINES, FloatArray, positions
from scheduler.decide.strategies.optimising.model import Model, build
from scheduler.decide.strategies.optimising.search import Choice, Solution, search
from scheduler.decide.strategies.optimising.watch import OutOfTimeError, Watch
from scheduler.decide.turns import Turns, parts_of

LEAST_SOLVE_S = 0.02
"""With less time than this a solve is not begun."""

ROUNDS = 3
"""So many programs a band gets while something that was chosen found no place."""


SPLITS = 3
"""So often those with room in quota are told from the others of their class: who of them finds no
place leaves that room to others of its tenant."""


@dataclass(slots=True)
class Outcome:
    """How the bands went together.

    Attributes:
        statuses: of each band's first program.
        slack: what the bounds leave to be gained, in sum; None = unknown.
    """

    statuses: list[str]
    slack: float | None = 0.0


def in_bands(turns: Turns, incumbent: Plan | None) -> Iterator[list[Ranked]]:
    """Give the jobs in bands: by priority class and, in each, tenants with room in quota first.

    So nobody borrows what another who waits in its class owns, only to have it reclaimed. Before
    all go those that room is being made for.
    """
    if incumbent:
        parts = parts_of(incumbent)
        jobs = sorted(
            turns.candidates,
            key=lambda job: (-sum(parts[job.uid].values()), job.submitted_s, job.uid),
        )
        ranked = [Ranked(job, k + 1, parts[job.uid]) for k, job in enumerate(jobs)]
    else:
        ranked = list(turns.queue())

    ranked.sort(key=lambda one: (*_class(one), one.position))
    for _, members in groupby(ranked, key=_class):
        waiting = list(members)
        for _ in range(SPLITS):
            owners, others = turns.split_by_quota(waiting)
            if not (owners and others):
                break  # all alike, and still so if they were told apart again
            yield owners
            waiting = others
        yield waiting


def _class(one: Ranked) -> tuple[bool, int]:
    return not one.job.promised_s, -one.job.priority


@dataclass(frozen=True, slots=True)
class Bands:
    """What all bands have in common.

    Attributes:
        turns: what was decided so far.
        objective: to be maximised.
        engine: key of `ENGINES`.
        chosen: uid -> flavor, what the rules plan starts.
        until: when every job is to have had its turn.
    """

    turns: Turns
    objective: Objective
    engine: str
    chosen: Mapping[str, str]
    until: Watch

    def decide(self, band: Sequence[Ranked], watch: Watch, outcome: Outcome) -> None:
        """Start what the programs choose of one band, then give every other job its turn.

        Jobs of kinds that the rules decide get theirs first, and those out of patience; the program
        is not asked about them.

        Raises:
            OutOfTimeError: it takes too long.
        """
        own: list[Ranked] = []
        for ranked in band:
            if self._is_free(ranked.job):
                own.append(ranked)
            else:
                self._turn(ranked)
        before = self._value()
        first, left = self._solved(own, watch)
        for _ in range(ROUNDS - 1):
            if not left or watch.left_s() < LEAST_SOLVE_S:
                break
            _, left = self._solved(left, watch)
        started = {start.uid for start in self.turns.starts}
        for ranked in own:
            if ranked.job.uid not in started:
                self._turn(ranked)
        outcome.statuses.append(first.status)
        if first.bound is None or outcome.slack is None:
            outcome.slack = None
        else:
            outcome.slack += max(0.0, first.bound - (self._value() - before))

    def _is_free(self, job: JobSpec) -> bool:
        """Return whether the program may choose about a job."""
        policy, waited_s = self.turns.policy, self.turns.now_s - job.submitted_s
        return waited_s < policy.patience_s and policy.strategy_of(job.kind) != RULES

    def _turn(self, ranked: Ranked) -> None:
        if self.until.left_s() < 0:
            raise OutOfTimeError
        self.turns.turn(ranked)

    def _value(self) -> float:
        return self.objective.value(self.objective.after(self.turns.starts))

    def _solved(self, band: Sequence[Ranked], watch: Watch) -> tuple[Solution, list[Ranked]]:
        """Start what one program chooses; return its answer, and who waits if it fell short."""
        solution = self._solve(band, watch)
        started = start_chosen(self.turns, solution.choices)
        if not started or len(started) == sum(choice.jobs for choice in solution.choices):
            return solution, []
        return solution, [ranked for ranked in band if ranked.job.uid not in started]

    def _solve(self, band: Sequence[Ranked], watch: Watch) -> Solution:
        """Return what the program chooses; its bound is the gain over the standing before."""
        session = self.turns.session
        groups = group_nodes(session)
        classes, complete = group_jobs(session, band, groups)
        if not classes:
            return Solution("optimal", (), 0.0 if complete else None)
        standing = self.objective.after(self.turns.starts)
        model = build(session, self.objective, standing, classes, groups)
        if watch.left_s() < LEAST_SOLVE_S:
            return Solution("timeout")
        try:
            solution = self._search(model, watch)
        except pulp.PulpSolverError:
            return Solution("error")
        if solution.bound is None or not complete:
            return replace(solution, bound=None)
        return replace(solution, bound=solution.bound - model.constant)

    def _search(self, model: Model, watch: Watch) -> Solution:
        integers, seed = [option.jobs for option in model.options], self.turns.policy.seed
        engine = ENGINES[self.engine](model.problem, integers, seed)
        columns = positions(model.problem, integers)
        return search(model, engine, columns, start=self._start(model), watch=watch, seed=abs(seed))

    def _start(self, model: Model) -> FloatArray:
        """Return (options,) how many jobs the rules plan starts of each."""
        name = self.turns.session.flavor_name
        return np.array(
            [
                sum(
                    self.chosen.get(ranked.job.uid) == name(option.flavor)
                    for ranked in option.kind.jobs
                )
                for option in model.options
            ],
            dtype=np.float64,
        )


def start_chosen(turns: Turns, choices: Sequence[Choice]) -> set[str]:
    """Place the chosen jobs, the largest replicas first; return the uids that found a place."""
    wanted, given = [], Counter[str]()
    for choice in choices:
        first = choice.kind.jobs[0].job.uid  # names the class
        members = choice.kind.jobs[given[first] : given[first] + choice.jobs]
        given[first] += choice.jobs
        for ranked, replicas in zip(members, _sizes(choice), strict=True):
            wanted.append((ranked, choice, replicas))
    started: set[str] = set()
    for ranked, choice, replicas in sorted(wanted, key=_largest_first):
        sized = ranked._replace(job=replace(ranked.job, replicas_max=replicas))
        if turns.try_start(sized, [choice.flavor]):
            started.add(ranked.job.uid)
    return started


def _largest_first(wanted: tuple[Ranked, Choice, int]) -> tuple[int, int, int]:
    ranked, _, replicas = wanted
    shape = ranked.job.shape
    return -shape.device_milli, -replicas, ranked.position


def _sizes(choice: Choice) -> list[int]:
    """Return the gang sizes of the chosen jobs: as equal as can be, within the bounds."""
    job = choice.kind.job
    base, more = divmod(choice.replicas, choice.jobs)
    sizes = [base + (k < more) for k in range(choice.jobs)]
    return [min(job.replicas_max, max(job.replicas_min, size)) for size in sizes]
