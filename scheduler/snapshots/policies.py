"""The stored policy of a cluster -> the engine's."""

import logging

from scheduler.choices import JobKind
from scheduler.core.policy import (
    SOLVERS,
    ObjectiveWeights,
    Policy,
    PreemptionPolicy,
    PriorityWeights,
    QosFactors,
)
from scheduler.decide.strategies.base import RULES, STRATEGIES
from scheduler.models import SchedulingPolicy
from scheduler.selectors.policies import policy_get
from scheduler.weights import in_force
from telemetry.models import Cluster

logger = logging.getLogger(__name__)


def policy_of(cluster: Cluster) -> Policy:
    """Return how decisions are made on a cluster."""
    row = policy_get(cluster=cluster)
    weights = in_force(row.weights)
    known = row.strategy in STRATEGIES
    if not known:
        logger.error("strategy unknown cluster=%s strategy=%s", cluster.slug, row.strategy)
    return Policy(
        strategy=row.strategy if known else RULES,
        budget_s=row.budget_s,
        placement=row.placement,
        order=PriorityWeights(**weights["order"]),
        objective=ObjectiveWeights(**weights["objective"]),
        qos=QosFactors(**weights["qos"]),
        backfill_depth=int(weights["queue"]["backfill_depth"]),
        remedy_depth=int(weights["queue"]["remedy_depth"]),
        patience_s=weights["queue"]["patience_s"],
        solver=row.solver if row.solver in SOLVERS else SOLVERS[0],
        kinds=_kinds(row.kinds, row.strategy if known else RULES),
        power_cap_w=row.power_cap_w,
        shadow=row.shadow if row.shadow in STRATEGIES else "",
        preemption=_preemption(row, cluster.clock_scale),
    )


def _preemption(row: SchedulingPolicy, clock_scale: float) -> PreemptionPolicy:
    """Return when jobs may be evicted; stored in the cluster's seconds, decided in real ones."""
    return PreemptionPolicy(
        by_priority=row.preempt_by_priority,
        by_reclaim=row.preempt_by_reclaim,
        by_fair_share=row.preempt_by_fair_share,
        delay_s=row.preempt_delay_s / clock_scale,
        min_runtime_s=row.preempt_min_runtime_s / clock_scale,
        most_evictions=row.preempt_most_evictions,
        grace_s=row.preempt_grace_s / clock_scale,
    )


def _kinds(given: object, strategy: str) -> tuple[tuple[str, str], ...]:
    """Return (kind, strategy) as stored; what is not known any more is left to the cluster's."""
    values = given if isinstance(given, dict) else {}
    good = {k: s for k, s in sorted(values.items()) if k in JobKind.values and s in STRATEGIES}
    beside = {strategy, *good.values()} - {RULES}
    if len(good) < len(values) or len(beside) > 1:
        logger.error("strategies of kinds not obeyed kinds=%s", values)
    return tuple(good.items()) if len(beside) <= 1 else ()
