"""Who decides in a simulation."""

from collections.abc import Callable
from typing import TypeAlias

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide import cycle

Decider: TypeAlias = Callable[[Snapshot, float], Plan]
"""(snapshot, now_s) -> plan; same input, same plan."""

Watch: TypeAlias = Callable[[Snapshot, Plan], None]
"""Is shown each cycle's snapshot and plan, before the plan is carried out."""


def by_policy(policy: Policy) -> Decider:
    """Return the decider that production uses, under a policy; deterministic for `rules`."""
    return lambda snapshot, now_s: cycle.decide(
        snapshot, policy, now_s=now_s, budget_s=policy.budget_s
    )
