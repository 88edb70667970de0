"""Strategies that fail in each of the ways in which one can."""

import time
from collections.abc import Callable
from dataclasses import replace

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.strategies.rules import decide

MODULE = __name__


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def raising(snapshot: Snapshot, policy: Policy, /, **options: object) -> Plan:
    """Divide by nothing."""
    del snapshot, policy, options
    message = "no such thing"
    raise ZeroDivisionError(message)


def late(
    snapshot: Snapshot,
    policy: Policy,
    /,
    *,
    now_s: float,
    budget_s: float,
    incumbent: Plan | None = None,
    clock: Callable[[], float] | None = None,
) -> Plan:
    """Take twice the time allowed."""
    if isinstance(clock, Clock):
        clock.now_s += 2 * budget_s
    return decide(snapshot, policy, now_s=now_s, budget_s=budget_s, incumbent=incumbent)


def greedy(snapshot: Snapshot, policy: Policy, /, *, now_s: float, **_: object) -> Plan:
    """Put every job where the first one is."""
    plan = decide(snapshot, policy, now_s=now_s, budget_s=1.0)
    first = plan.starts[0]
    starts = tuple(replace(first, uid=job.uid) for job in snapshot.pending)
    return replace(plan, starts=starts, pending=())


def shifting(snapshot: Snapshot, policy: Policy, /, *, now_s: float, **_: object) -> Plan:
    """Decide as of a second later."""
    return decide(snapshot, policy, now_s=now_s + 1, budget_s=1.0)


def sleepy(
    snapshot: Snapshot, policy: Policy, /, *, now_s: float, budget_s: float, **_: object
) -> Plan:
    """Take longer than allowed, by a clock on the wall."""
    time.sleep(budget_s + 0.1)
    return decide(snapshot, policy, now_s=now_s, budget_s=budget_s)
