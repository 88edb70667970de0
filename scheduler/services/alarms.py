"""Alarms where the rules have to answer for a cluster's strategy."""

import logging
from datetime import datetime

from scheduler.core.plan import FAILED, NOT_NEEDED, Plan, SolverReport
from scheduler.core.policy import Policy
from scheduler.decide.strategies.base import RULES
from scheduler.models import StrategyAlarm
from scheduler.services.stored import stored_text
from telemetry.models import Cluster

GOOD_CYCLES = 10
"""After so many answers in a row without a failure an alarm clears itself."""

logger = logging.getLogger(__name__)


def strategy_noted(*, cluster: Cluster, policy: Policy, plan: Plan, now: datetime) -> None:
    """Raise, count or clear a cluster's alarms by how its strategies did in one cycle.

    Cycles in which one was not tried say nothing of it: a quiet minute mends no solver. Called by
    one scheduler at a time, under the cluster's lock.
    """
    if plan.solver.status in FAILED:
        _failed(cluster, plan.solver, now)
        return
    for alarm in StrategyAlarm.objects.filter(cluster=cluster, cleared_at=None):
        if _is_proof(alarm, policy, plan):
            _went_well(cluster, alarm, now)


def _is_proof(alarm: StrategyAlarm, policy: Policy, plan: Plan) -> bool:
    """Return whether the strategy has answered in this cycle, or the policy names it no more.

    The rules answer in every cycle: what another strategy improves is theirs, and was checked.
    """
    if alarm.strategy == RULES:
        return not plan.carried_from_s
    if alarm.strategy not in {policy.strategy, *dict(policy.kinds).values()}:
        return True
    tried = plan.solver.asked == alarm.strategy and plan.solver.status != NOT_NEEDED
    return tried and not plan.carried_from_s


def _went_well(cluster: Cluster, alarm: StrategyAlarm, now: datetime) -> None:
    alarm.good_count += 1
    if alarm.good_count >= GOOD_CYCLES:
        alarm.cleared_at = now
        logger.info(
            "strategy alarm cleared cluster=%s strategy=%s count=%s",
            cluster.slug,
            alarm.strategy,
            alarm.count,
        )
    alarm.save(update_fields=["good_count", "cleared_at"])


def _failed(cluster: Cluster, solver: SolverReport, now: datetime) -> None:
    """Count the failure with the strategy's open alarm, or open one."""
    alarm, _ = StrategyAlarm.objects.get_or_create(
        cluster=cluster,
        strategy=solver.asked,
        cleared_at=None,
        defaults={"count": 0, "since": now, "last_at": now, "status": solver.status},
    )
    alarm.status, alarm.note, alarm.last_at = solver.status, stored_text(solver.note), now
    alarm.count, alarm.good_count = alarm.count + 1, 0
    alarm.save(update_fields=["status", "note", "last_at", "count", "good_count"])
    logger.error(
        "strategy replaced by the rules cluster=%s strategy=%s status=%s count=%s note=%s",
        cluster.slug,
        solver.asked,
        solver.status,
        alarm.count,
        solver.note,
    )
