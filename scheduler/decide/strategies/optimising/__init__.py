"""The objective, maximised: a program per priority class chooses, the turns place and explain.

Higher priority classes are decided first and their blocked jobs reserve before a lower class is
looked at, so no lower job is ever started in the way of a higher class. Within a class the program
may choose freely. The better of its plan and the rules plan is returned.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import pulp

from scheduler.core.plan import Plan, SolverReport, Start
from scheduler.core.policy import Policy
from scheduler.core.snapshot import JobSpec, Snapshot
from scheduler.decide.objective import Objective
from scheduler.decide.ordering import Ranked
from scheduler.decide.session import Session
from scheduler.decide.strategies.optimising.classes import Key, group_jobs, group_nodes, key_of
from scheduler.decide.strategies.optimising.model import build
from scheduler.decide.strategies.optimising.solver import Choice, Solution, solve
from scheduler.decide.turns import Turns, parts_of

NAME = "optimising"
RULES = "rules"

SOLVER_PART = 0.8
"""Part of the time left for solving that one priority class may take; the next ones need some."""

PASS_FACTOR = 1.0
"""Placing and explaining is given so much of the time that the rules needed for it."""

LEAST_SOLVE_S = 0.02
"""With less time than this a solve is not begun."""


@dataclass(slots=True)
class _Watch:
    """What is left of the budget; without a clock only the solves are limited."""

    budget_s: float
    clock: Callable[[], float] | None
    began_s: float = 0.0
    given_s: float = 0.0

    def left_s(self) -> float:
        spent = self.clock() - self.began_s if self.clock else self.given_s
        return self.budget_s - spent


@dataclass(slots=True)
class _Outcome:
    """How the solves of all priority classes went together."""

    statuses: list[str]
    slack: float | None = 0.0


def decide(
    snapshot: Snapshot,
    policy: Policy,
    /,
    *,
    now_s: float,
    budget_s: float,
    incumbent: Plan | None = None,
    clock: Callable[[], float] | None = None,
) -> Plan:
    """Return the better of the incumbent and the plan of the program.

    Args:
        snapshot: the frozen world, valid.
        policy: weights of the objective.
        now_s: epoch seconds.
        budget_s: seconds that may be taken, placing and explaining included.
        incumbent: the rules plan for the same snapshot; without it there is nothing to compare.
        clock: monotonic seconds; without it the budget limits the solves only.
    """
    pass_s = PASS_FACTOR * incumbent.solver.wall_s if incumbent else 0.0
    watch = _Watch(budget_s - pass_s, clock, clock() if clock else 0.0)
    if incumbent and watch.left_s() < LEAST_SOLVE_S:
        return _kept(incumbent, "timeout", None)
    turns = Turns(snapshot, policy, now_s=now_s)
    objective = Objective(turns)
    value = objective.value(objective.after(incumbent.starts)) if incumbent else -math.inf
    if incumbent and not _could_be_better(turns.session, objective, incumbent, turns.candidates):
        return _kept(incumbent, "not_needed", value)
    if incumbent and watch.left_s() < LEAST_SOLVE_S:
        return _kept(incumbent, "timeout", value)
    outcome = _Outcome([])
    for band in _bands(turns, incumbent, policy, now_s):
        _decide_band(turns, objective, band, watch, outcome)
    return _better(turns, objective, incumbent, outcome)


def _kept(incumbent: Plan, status: str, value: float | None, gap: float | None = None) -> Plan:
    gap = 0.0 if status == "not_needed" else gap
    report = SolverReport(RULES, NAME, status, value, value, gap)
    return replace(incumbent, solver=report)


def _better(turns: Turns, objective: Objective, incumbent: Plan | None, outcome: _Outcome) -> Plan:
    found = objective.value(objective.after(turns.starts))
    rules = objective.value(objective.after(incumbent.starts)) if incumbent else -math.inf
    if incumbent and found <= rules:
        bad = (status for status in ("error", "timeout") if status in outcome.statuses)
        return _kept(incumbent, next(bad, "rules_kept"), rules, _gap(outcome, rules, found))
    optimal = all(status == "optimal" for status in outcome.statuses)
    report = SolverReport(
        NAME,
        NAME,
        "optimal" if optimal else "feasible",
        found,
        rules if incumbent else None,
        _gap(outcome, found, found),
    )
    return turns.plan(report)


def _gap(outcome: _Outcome, value: float, found: float) -> float | None:
    """Return the gap of a value to the bounds, relative to the larger of 1 and its size."""
    if outcome.slack is None:
        return None
    return max(0.0, outcome.slack + found - value) / max(1.0, abs(value))


def _could_be_better(
    session: Session, objective: Objective, rules: Plan, jobs: Sequence[JobSpec]
) -> bool:
    """Return whether some plan could be worth more than the rules plan.

    That is so where a job was left out that would fit were it alone, and where one got less than
    the best flavor and size that it could have alone.
    """
    started = {start.uid: start for start in rules.starts}
    answered: dict[Key, tuple[int, float]] = {}
    for job in jobs:
        key = key_of(session, job, 1)
        if key not in answered:
            answered[key] = _alone(session, objective, job)
        replicas, speed = answered[key]
        start = started.get(job.uid)
        if start is None:
            if replicas:
                return True
        elif len(start.replicas) < replicas or _speed(objective, session, job, start) < speed:
            return True
    return False


def _alone(session: Session, objective: Objective, job: JobSpec) -> tuple[int, float]:
    """Return the most replicas and the best speed that the job could have, were it alone."""
    replicas, speed = 0, 0.0
    for flavor in session.allowed(job):
        fit = session.fit_now(job, [flavor], rows=1)
        if fit:
            replicas = max(replicas, fit.replicas)
            speed = max(speed, objective.speed(job, flavor))
    return replicas, speed


def _speed(objective: Objective, session: Session, job: JobSpec, start: Start) -> float:
    return objective.speed(job, session.flavor_of.get(start.flavor, -1))


def _bands(
    turns: Turns, incumbent: Plan | None, policy: Policy, now_s: float
) -> Iterator[list[Ranked]]:
    """Give the jobs in bands: by priority class and, in each, those aged out of patience first."""
    if incumbent:
        parts = parts_of(incumbent)
        jobs = sorted(
            turns.candidates,
            key=lambda job: (-sum(parts[job.uid].values()), job.submitted_s, job.uid),
        )
        ranked = [Ranked(job, k + 1, parts[job.uid]) for k, job in enumerate(jobs)]
    else:
        ranked = list(turns.queue())

    def band(one: Ranked) -> tuple[int, bool]:
        return -one.job.priority, now_s - one.job.submitted_s < policy.order.age_max_s

    for _, members in groupby(sorted(ranked, key=lambda r: (*band(r), r.position)), key=band):
        yield list(members)


def _decide_band(
    turns: Turns, objective: Objective, band: Sequence[Ranked], watch: _Watch, outcome: _Outcome
) -> None:
    """Start what the program chooses of one band, then give every other job its turn."""
    before = objective.after(turns.starts)
    solution = _solve_band(turns, objective, band, watch)
    started = _start_chosen(turns, solution.choices)
    for ranked in band:
        if ranked.job.uid not in started:
            turns.turn(ranked)
    outcome.statuses.append(solution.status)
    gained = objective.value(objective.after(turns.starts)) - objective.value(before)
    if solution.bound is None or outcome.slack is None:
        outcome.slack = None
    else:
        outcome.slack += max(0.0, solution.bound - gained)


def _solve_band(
    turns: Turns, objective: Objective, band: Sequence[Ranked], watch: _Watch
) -> Solution:
    """Return what the program chooses; its bound is the gain over the standing before."""
    session = turns.session
    groups = group_nodes(session)
    classes, complete = group_jobs(session, band, groups)
    if not classes:
        return Solution("optimal", (), 0.0 if complete else None)
    standing = objective.after(turns.starts)
    model = build(session, objective, standing, classes, groups)
    limit_s = watch.left_s() * SOLVER_PART
    if limit_s < LEAST_SOLVE_S:
        return Solution("timeout")
    watch.given_s += limit_s
    try:
        solution = solve(model, limit_s=limit_s, seed=turns.policy.seed)
    except pulp.PulpSolverError:
        return Solution("error")
    if solution.bound is None or not complete:
        return replace(solution, bound=None)
    return replace(solution, bound=solution.bound - model.constant)


def _start_chosen(turns: Turns, choices: Sequence[Choice]) -> set[str]:
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
