"""The contract of a strategy and the visible table of those that exist."""

from collections.abc import Callable
from typing import Protocol

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot


class Strategy(Protocol):
    """Turns a snapshot into a plan; pure, deterministic for a given seed.

    `incumbent` is the rules plan to start from and to beat, a draft: who finds no better returns it
    under a report of its own, and the rules complete it. `clock` gives monotonic seconds.
    """

    def __call__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        /,
        *,
        now_s: float,
        budget_s: float,
        incumbent: Plan | None = None,
        clock: Callable[[], float] | None = None,
    ) -> Plan: ...


RULES = "rules"
"""The strategy that answers where another one fails."""

STRATEGIES: dict[str, str] = {
    "rules": "scheduler.decide.strategies.rules.decide",
    "optimising": "scheduler.decide.strategies.optimising.decide",
}
"""Key -> import path, loaded on first use."""
