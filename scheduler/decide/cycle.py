"""One decision, on one screen: the function that production, estimate and benchmarks call."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from importlib import import_module
from operator import attrgetter

from scheduler.core.errors import InvalidPlanError
from scheduler.core.plan import FAILED, Plan, SolverReport, Start
from scheduler.core.policy import Policy
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import Expectation, JobSpec, Snapshot
from scheduler.core.verify import verify
from scheduler.decide import advice
from scheduler.decide.lasting import Decided, carried_over
from scheduler.decide.strategies.base import RULES, STRATEGIES, Strategy
from scheduler.decide.strategies.rules import REPORT, turns_of
from scheduler.decide.turns import Turns
from scheduler.decide.validate import validate, validate_policy, validate_times

LATE_FRAC, LATE_LEAST_S = 0.1, 0.05
"""A strategy is late that takes longer than its budget by this part, and by so much at least."""

EVERYTHING = attrgetter(*(field.name for field in fields(Expectation)))
"""Of an `Expectation`, to order them by."""


def decide(
    snapshot: Snapshot,
    policy: Policy,
    *,
    now_s: float,
    budget_s: float,
    clock: Callable[[], float] | None = None,
    last: Decided | None = None,
) -> Plan:
    """Return the plan for a snapshot under a policy.

    Deterministic for a given snapshot, policy and `now_s`, but for what a solver finds in time.

    Args:
        snapshot: the frozen world.
        policy: which strategy, and its weights.
        now_s: epoch seconds.
        budget_s: seconds that the decision may take.
        clock: monotonic seconds, to measure and keep the budget; without it no time is reported.
        last: the last decision, if known: its plan is carried over where only time has moved.

    Raises:
        InvalidSnapshotError: the snapshot contradicts itself, or `now_s` is no time.
        InvalidPolicyError: the policy cannot be followed, or the budget is no time.
    """
    validate_times(now_s=now_s, budget_s=budget_s)
    spent_s = _stopwatch(clock)
    same = carried_over(last, snapshot, policy, now_s=now_s) if last else None
    if same:
        return _timed(same, spent_s())
    validate_policy(policy)
    validate(snapshot)
    snapshot = _ordered(snapshot)
    plan = _decided(snapshot, policy, now_s=now_s, budget_s=budget_s - spent_s(), clock=clock)
    if plan.solver.asked != RULES:
        left_s = 0.0 if plan.solver.status in FAILED else budget_s - spent_s()
        trials = _trials(policy, now_s=now_s, left_s=left_s, each_s=spent_s(), clock=clock)
        plan = replace(plan, pending=advice.kept(snapshot, plan.pending, trials))
    return _timed(plan, spent_s())


def _decided(
    snapshot: Snapshot,
    policy: Policy,
    *,
    now_s: float,
    budget_s: float,
    clock: Callable[[], float] | None,
) -> Plan:
    """Return the plan for an ordered snapshot; what it advises was tried with the rules' turns."""
    spent_s, asked = _stopwatch(clock), asked_of(snapshot, policy)
    turns = turns_of(snapshot, policy, now_s=now_s)
    report = replace(REPORT, asked=asked)
    if asked != RULES:
        draft = turns.draft(replace(report, wall_s=spent_s()))
        left_s = max(0.0, budget_s - spent_s())
        plan = _improved(snapshot, policy, draft, now_s=now_s, budget_s=left_s, clock=clock)
        if plan.solver.strategy != RULES:
            return plan
        report = plan.solver
    return _checked(snapshot, policy, turns.plan(report), now_s=now_s)


def _trials(
    policy: Policy,
    *,
    now_s: float,
    left_s: float,
    each_s: float,
    clock: Callable[[], float] | None,
) -> advice.Trials:
    """Return what tries advice with the strategies that decide."""
    lean = replace(policy, remedy_depth=0, expects_starts=False)

    def decides(world: Snapshot, budget_s: float) -> Plan:
        return _decided(_ordered(world), lean, now_s=now_s, budget_s=budget_s, clock=clock)

    return advice.Trials(decides, left_s=left_s, each_s=each_s, spent_s=_stopwatch(clock))


def estimate(
    snapshot: Snapshot,
    policy: Policy,
    job: JobSpec,
    *,
    now_s: float,
    budget_s: float = 0.0,
    clock: Callable[[], float] | None = None,
) -> Start | Pending:
    """Return what a cycle of the rules would say of a job that is not in the queue yet.

    The job takes its place in the queue, so those ahead of it are served first. Every remedy that
    says `starts_now` was tried in a cycle of its own, with the strategies that decide.

    Where the job could have others evicted once it has waited for its delay, and those have run for
    as long as they are spared, `would_evict` in the evidence says how many, when it may ask and
    when the room is there; its expected start (P50) is then no later. That was
    tried on the world as it is: nobody is told to go yet, and those who would be may have ended by
    then, so that P90 stays with what is sure.

    Args:
        snapshot: the frozen world.
        policy: which strategy, and its weights.
        job: that is asked about.
        now_s: epoch seconds.
        budget_s: seconds that trials of advice may take where another strategy than the rules
            decides; 0 = none, so that nobody is promised a start.
        clock: monotonic seconds, to keep that budget.

    Raises:
        InvalidSnapshotError: the snapshot contradicts itself, or holds the job already.
    """
    spent_s = _stopwatch(clock)
    asked = replace(snapshot, pending=(*snapshot.pending, job))
    plan = _turns(asked, policy, job, now_s=now_s).plan(REPORT)
    if plan.starts and plan.starts[-1].uid == job.uid:
        return plan.starts[-1]
    answer = next(pending for pending in plan.pending if pending.uid == job.uid)
    if asked_of(asked, policy) != RULES:
        each_s, left_s = spent_s(), budget_s - spent_s()
        trials = _trials(policy, now_s=now_s, left_s=left_s, each_s=each_s, clock=clock)
        (answer,) = advice.kept(asked, [answer], trials)
    later, p50_s = answer.evidence.get("would_evict"), answer.expected_start_p50_s
    if not isinstance(later, Mapping) or p50_s is None:
        return answer
    return replace(answer, expected_start_p50_s=min(p50_s, float(later["room_at_s"])))


def _turns(asked: Snapshot, policy: Policy, job: JobSpec, *, now_s: float) -> Turns:
    """Return the turns up to the job's own; if it starts, it is the last that does."""
    validate_times(now_s=now_s)
    validate_policy(policy)
    validate(asked)
    turns = Turns(_ordered(asked), policy, now_s=now_s, focus=job.uid)
    for ranked in turns.queue():
        turns.turn(ranked)
        if ranked.job.uid == job.uid:
            break
    turns.widen()
    return turns


def asked_of(snapshot: Snapshot, policy: Policy) -> str:
    """Return the strategy that is asked: another one than the rules where it decides any job.

    With nothing in the queue the cluster's own one answers.
    """
    named = {policy.strategy_of(job.kind) for job in snapshot.pending}
    return next(iter(sorted(named - {RULES})), RULES) if named else policy.strategy


def _ordered(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot in one order, that sums of floats and solvers' ties not depend on it."""
    depth: dict[str | None, int] = {None: -1}
    for tenant in snapshot.tenants:  # parents come first
        depth[tenant.slug] = depth[tenant.parent] + 1
    return replace(
        snapshot,
        pending=tuple(sorted(snapshot.pending, key=lambda job: job.uid)),
        running=tuple(sorted(snapshot.running, key=lambda job: job.spec.uid)),
        tenants=tuple(sorted(snapshot.tenants, key=lambda one: (depth[one.slug], one.slug))),
        reservations=tuple(sorted(snapshot.reservations, key=lambda one: one.id)),
        expectations=tuple(sorted(snapshot.expectations, key=EVERYTHING)),
    )


def load(strategy: str) -> Strategy:
    """Return a strategy by its key in `STRATEGIES`; KeyError names an unknown one."""
    module, _, name = STRATEGIES[strategy].rpartition(".")
    loaded: Strategy = getattr(import_module(module), name)
    return loaded


def _checked(snapshot: Snapshot, policy: Policy, plan: Plan, *, now_s: float) -> Plan:
    """Return the rules plan if it holds, else one that starts nothing and says so.

    Then nobody else's plan is taken: other strategies begin with the rules plan, and what is wrong
    with it is to be seen, whatever they would make of it.
    """
    try:
        verify(snapshot, plan, policy, now_s=now_s)
    except InvalidPlanError as broken:
        report = SolverReport(RULES, plan.solver.asked, "invalid", note=str(broken))
        nothing = undecided(snapshot, report, now_s=now_s)
        return replace(nothing, fair_shares=plan.fair_shares, clashes=plan.clashes)
    return plan


def undecided(snapshot: Snapshot, report: SolverReport, *, now_s: float) -> Plan:
    """Return the plan of a cycle in which nothing could be decided: everything stays as it is.

    Args:
        snapshot: may contradict itself.
        report: says what went wrong.
        now_s: epoch seconds.
    """
    pending = tuple(
        Pending(job.uid, WaitReason.PENDING_EVALUATION)
        for job in sorted(snapshot.pending, key=lambda job: job.uid)
    )
    return Plan(snapshot.cluster, now_s, (), pending, (), report)


def _improved(
    snapshot: Snapshot,
    policy: Policy,
    rules: Plan,
    *,
    now_s: float,
    budget_s: float,
    clock: Callable[[], float] | None,
) -> Plan:
    """Return what the strategy makes of the rules' draft; that draft, and why, if it fails."""
    asked = rules.solver.asked
    took_s = _stopwatch(clock)
    if _checked(snapshot, policy, rules, now_s=now_s) is not rules:
        return rules
    try:
        plan = load(asked)(
            snapshot, policy, now_s=now_s, budget_s=budget_s, incumbent=rules, clock=clock
        )
        verify(snapshot, plan, policy, now_s=now_s)
    except InvalidPlanError as broken:
        return _replaced(rules, "invalid", str(broken))
    except Exception as failure:  # noqa: BLE001 - a strategy is a plug-in: the rules answer for it
        return _replaced(rules, "error", f"{type(failure).__name__}: {failure}")
    if took_s() > budget_s + max(LATE_LEAST_S, LATE_FRAC * policy.budget_s):
        return _replaced(rules, "late", f"{took_s():.2f} s of {budget_s:.2f} s")
    return plan


def _replaced(rules: Plan, status: str, note: str) -> Plan:
    return replace(rules, solver=SolverReport(RULES, rules.solver.asked, status, note=note))


def _stopwatch(clock: Callable[[], float] | None) -> Callable[[], float]:
    """Return what tells the seconds since now; always 0 without a clock."""
    began_s = clock() if clock else 0.0
    return lambda: clock() - began_s if clock else 0.0


def _timed(plan: Plan, wall_s: float) -> Plan:
    return replace(plan, solver=replace(plan.solver, wall_s=wall_s))
