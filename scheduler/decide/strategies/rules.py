"""The rules: every job gets its turn in order; the blocked ones reserve, the rest backfill."""

from collections.abc import Callable

from scheduler.core.plan import NOT_NEEDED, Plan, SolverReport
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.turns import Turns

NAME = "rules"

REPORT = SolverReport(NAME, NAME, NOT_NEEDED)


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
    """Return the plan of the rules; they need neither budget nor incumbent nor clock."""
    del budget_s, incumbent, clock
    return turns_of(snapshot, policy, now_s=now_s).plan(REPORT)


def turns_of(snapshot: Snapshot, policy: Policy, *, now_s: float) -> Turns:
    """Return the turns of the whole queue, in order."""
    turns = Turns(snapshot, policy, now_s=now_s)
    for ranked in turns.queue():
        turns.turn(ranked)
    turns.widen()
    return turns
