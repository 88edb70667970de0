"""Alarms where the rules have to answer for a cluster's strategy."""

import logging
from datetime import datetime

from scheduler.core.plan import FAILED, SolverReport
from scheduler.models import StrategyAlarm
from scheduler.services.stored import stored_text
from telemetry.models import Cluster

GOOD_CYCLES = 10
"""After so many cycles in a row without a failure an alarm clears itself."""

logger = logging.getLogger(__name__)


def strategy_noted(*, cluster: Cluster, solver: SolverReport, now: datetime) -> None:
    """Raise, count or clear a cluster's alarm by how its strategy did in one cycle.

    Called by one scheduler at a time, under the cluster's lock.
    """
    alarm = StrategyAlarm.objects.filter(cluster=cluster, cleared_at=None).first()
    if solver.status in FAILED:
        _failed(cluster, alarm, solver, now)
    elif alarm is not None:
        _went_well(cluster, alarm, now)


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
