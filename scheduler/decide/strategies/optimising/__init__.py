"""The objective, maximised: a program per priority class chooses, the turns place and explain.

Higher priority classes are decided first and their blocked jobs reserve before a lower class is
looked at, so no lower job is ever started in the way of a higher class. Within a class those go
first whose tenant has room in its quota, and who waits for longer than the policy's patience has
its turn as under the rules; among the others the program may choose freely. The better of its plan
and the rules plan is returned.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from scheduler.core.plan import NOT_NEEDED, Plan, SolverReport, Start
from scheduler.core.policy import SOLVERS, Policy
from scheduler.core.snapshot import JobSpec, Snapshot
from scheduler.decide.objective import Objective
from scheduler.decide.session import Session
from scheduler.decide.strategies.base import RULES
from scheduler.decide.strategies.optimising.bands import LEAST_SOLVE_S, Bands, Outcome, in_bands
from scheduler.decide.strategies.optimising.classes import Key, key_of
from scheduler.decide.strategies.optimising.engines import available
from scheduler.decide.strategies.optimising.watch import OutOfTimeError, Watch
from scheduler.decide.turns import Turns

NAME = "optimising"
PASS_FACTOR = 1.5
"""Placing and explaining is given so much of the time that the rules needed for their draft."""

PLAN_FACTOR = 0.5
"""Of that, this much is for what comes last: who does not come to it in time gives up."""

BAND_PART = 0.4
"""Of the time left, a band gets its part of the jobs left, and at least this: high classes are
small, and come first."""


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
    rules_s, began_s = incumbent.solver.wall_s if incumbent else 0.0, clock() if clock else 0.0
    watch = Watch(budget_s - PASS_FACTOR * rules_s, clock, began_s)
    if incumbent and watch.left_s() < LEAST_SOLVE_S:
        return _kept(incumbent, "timeout", None)
    turns = Turns(snapshot, policy, now_s=now_s)
    objective = Objective(turns)
    value = objective.value(objective.after(incumbent.starts)) if incumbent else -math.inf
    own = [job for job in turns.candidates if policy.strategy_of(job.kind) != RULES]
    if incumbent and not _could_be_better(turns.session, objective, incumbent, own):
        return _kept(incumbent, NOT_NEEDED, value)
    if incumbent and watch.left_s() < LEAST_SOLVE_S:
        return _kept(incumbent, "timeout", value)
    until = Watch(budget_s - PLAN_FACTOR * rules_s if incumbent else math.inf, clock, began_s)
    try:
        outcome = _decide_bands(turns, objective, incumbent, watch, until)
    except OutOfTimeError:
        if incumbent is None:
            raise
        return _kept(incumbent, "timeout", value)
    return _reported(_better(turns, objective, incumbent, outcome), policy)


def _decide_bands(
    turns: Turns, objective: Objective, incumbent: Plan | None, watch: Watch, until: Watch
) -> Outcome:
    """Decide band after band; each may take a part of the time that is left."""
    chosen = {start.uid: start.flavor for start in incumbent.starts} if incumbent else {}
    whole = Bands(turns, objective, _solver(turns.policy), chosen, until)
    waiting, outcome = len(turns.candidates), Outcome([])
    for band in in_bands(turns, incumbent):
        limit_s = watch.left_s() * max(BAND_PART, len(band) / waiting)
        whole.decide(band, watch.part(limit_s), outcome)
        waiting -= len(band)
    turns.widen()
    return outcome


def _solver(policy: Policy) -> str:
    """Return the policy's solver, the first of all where that one is not installed."""
    return policy.solver if available(policy.solver) else SOLVERS[0]


def _kept(incumbent: Plan, status: str, value: float | None, gap: float | None = None) -> Plan:
    """Return the rules plan under this strategy's report."""
    gap = 0.0 if status == NOT_NEEDED else gap
    report = SolverReport(RULES, NAME, status, value, value, gap)
    return replace(incumbent, solver=report)


def _reported(plan: Plan, policy: Policy) -> Plan:
    """Return the plan with the solver that was run, and why if it was not the one asked for."""
    solver, note = _solver(policy), plan.solver.note
    if solver != policy.solver:
        note = f"{policy.solver} is not installed, {solver} solved"
    return replace(plan, solver=replace(plan.solver, solver=solver, note=note))


def _better(turns: Turns, objective: Objective, incumbent: Plan | None, outcome: Outcome) -> Plan:
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


def _gap(outcome: Outcome, value: float, found: float) -> float | None:
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
