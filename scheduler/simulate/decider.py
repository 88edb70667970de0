"""Who decides in a simulation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide import cycle
from scheduler.decide.lasting import Decided
from scheduler.decide.scoring import LEARNING

Decider: TypeAlias = Callable[[Snapshot, float], Plan]
"""(snapshot, now_s) -> plan; same input, same plan."""

Watch: TypeAlias = Callable[[Snapshot, Plan], None]
"""Is shown each cycle's snapshot and plan, before the plan is carried out."""


def looks_at_mix(decider: Decider) -> bool:
    """Return whether a decider looks at what has arrived lately (`Snapshot.demand_mix`).

    It does unless it says otherwise in an attribute of that name: to work that out takes some
    milliseconds for each job that arrives.
    """
    return bool(getattr(decider, "looks_at_mix", True))


def by_policy(policy: Policy) -> Decider:
    """Return the decider that production uses, under a policy; deterministic for `rules`."""
    return _Product(policy)


@dataclass(slots=True)
class _Product:
    """Decides as the loop does: where only time has moved, the last plan is carried over."""

    policy: Policy
    last: Decided | None = None

    @property
    def looks_at_mix(self) -> bool:
        """Whether its placement does, as in `scheduler.snapshots`."""
        return self.policy.placement in LEARNING

    def __call__(self, snapshot: Snapshot, now_s: float) -> Plan:
        """Return the plan of one cycle."""
        plan = cycle.decide(
            snapshot, self.policy, now_s=now_s, budget_s=self.policy.budget_s, last=self.last
        )
        self.last = Decided(snapshot, self.policy, plan)
        return plan
