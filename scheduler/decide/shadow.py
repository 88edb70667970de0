"""Shadow running: what another strategy would have decided on the same snapshot."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.cycle import decide
from scheduler.decide.objective import Objective
from scheduler.decide.turns import Turns


@dataclass(frozen=True, slots=True)
class Comparison:
    """A plan that was carried out beside one that was not, valued by the same objective.

    Attributes:
        plan: of the shadow.
        objective, objective_shadow: value of the plan carried out, and of the shadow's.
        only_carried, only_shadow: uids of jobs that only one of them starts, sorted.
        moved: uids of jobs that both start, on other flavors or in other numbers, sorted.
    """

    plan: Plan
    objective: float
    objective_shadow: float
    only_carried: tuple[str, ...]
    only_shadow: tuple[str, ...]
    moved: tuple[str, ...]


def compare(
    snapshot: Snapshot,
    policy: Policy,
    carried: Plan,
    *,
    now_s: float,
    budget_s: float,
    clock: Callable[[], float] | None = None,
) -> Comparison:
    """Return what the policy's shadow decides beside the plan that is carried out.

    The shadow decides every kind of job, and no strategy of the shadow's own plan is a shadow.

    Args:
        snapshot: that both are decided on.
        policy: names the shadow, and gives the weights that value both plans.
        carried: the plan that is carried out.
        now_s: epoch seconds of the decision.
        budget_s: seconds that the shadow may take.
        clock: monotonic seconds.

    Raises:
        InvalidPolicyError: the policy names no strategy as shadow, or one that does not exist.
    """
    alone = replace(policy, strategy=policy.shadow, kinds=(), shadow="", remedy_depth=0)
    plan = decide(snapshot, alone, now_s=now_s, budget_s=budget_s, clock=clock)
    objective = Objective(Turns(snapshot, policy, now_s=now_s))
    ours = {start.uid: (start.flavor, len(start.replicas)) for start in carried.starts}
    theirs = {start.uid: (start.flavor, len(start.replicas)) for start in plan.starts}
    return Comparison(
        plan=plan,
        objective=objective.value(objective.after(carried.starts)),
        objective_shadow=objective.value(objective.after(plan.starts)),
        only_carried=tuple(sorted(ours.keys() - theirs.keys())),
        only_shadow=tuple(sorted(theirs.keys() - ours.keys())),
        moved=tuple(sorted(uid for uid in ours.keys() & theirs if ours[uid] != theirs[uid])),
    )
