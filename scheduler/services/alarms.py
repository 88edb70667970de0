"""Alarms where the rules have to answer for a cluster's strategy."""

import logging
from datetime import datetime

from scheduler.core.plan import FAILED, NOT_NEEDED, Plan, SolverReport
from scheduler.decide.strategies.base import RULES
from scheduler.models import StrategyAlarm
from scheduler.services.stored import stored_text
from telemetry.models import Cluster

GOOD_CYCLES = 10
"""After so many answers in a row without a failure an alarm clears itself."""

logger = logging.getLogger(__name__)


def strategy_noted(*, cluster: Cluster, plan: Plan, now: datetime) -> None:
    """Raise, count or clear a cluster's alarm by how its strategy did in one cycle.

    Cycles in which it was not tried say nothing: a quiet minute mends no solver. Called by one
    scheduler at a time, under the cluster's lock.
    """
    alarm = StrategyAlarm.objects.filter(cluster=cluster, cleared_at=None).first()
    if plan.solver.status in FAILED:
        _failed(cluster, alarm, plan.solver, now)
    elif alarm is not None and _is_proof(alarm, plan):
        _went_well(cluster, alarm, now)


def _is_proof(alarm: StrategyAlarm, plan: Plan) -> bool:
    """Return whether the strategy has answered, or is not asked any more."""
    if plan.solver.asked != alarm.strategy:
        return True
    answered = plan.solver.status != NOT_NEEDED or plan.solver.asked == RULES
    return answered and not plan.carried_from_s


def _went_well(cluster: Cluster, alarm: StrategyAlarm, now: datetime) -> None:
    alarm.good_count += 1
    if alarm.good_count >= GOOD_CYCLES:
        alarm.cleared_at = now
        logger.info("strategy alarm cleared cluster=%s count=%s", cluster.slug, alarm.count)
    alarm.save(update_fields=["good_count", "cleared_at"])


def _failed(
    cluster: Cluster, alarm: StrategyAlarm | None, solver: SolverReport, now: datetime
) -> None:
    if alarm is None:
        alarm = StrategyAlarm(cluster=cluster, count=0, since=now)
    alarm.strategy, alarm.status = solver.asked, solver.status
    alarm.note, alarm.last_at = stored_text(solver.note), now
    alarm.count, alarm.good_count = alarm.count + 1, 0
    alarm.save()
    logger.error(
        "strategy replaced by the rules cluster=%s strategy=%s status=%s count=%s note=%s",
        cluster.slug,
        solver.asked,
        solver.status,
        alarm.count,
        solver.note,
    )
