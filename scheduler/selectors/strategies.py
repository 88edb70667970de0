"""How the strategies of clusters do: alarms, and what shadows would have decided."""

from django.db.models import QuerySet

from scheduler.models import ShadowPlan, StrategyAlarm
from telemetry.models import Cluster


def strategy_alarms() -> QuerySet[StrategyAlarm]:
    """Return the alarms that are not cleared, of clusters in use, by cluster; the latest last."""
    opened = StrategyAlarm.objects.filter(cleared_at=None, cluster__enabled=True)
    return opened.select_related("cluster").order_by("cluster__slug", "last_at", "pk")


def shadow_list(*, cluster: Cluster) -> QuerySet[ShadowPlan]:
    """Return what shadows decided beside a cluster's cycles, newest first."""
    return (
        ShadowPlan.objects.filter(cycle__cluster=cluster)
        .select_related("cycle")
        .order_by("-cycle_id")
    )
