"""What past expectations were worth, as the engine learns from it."""

from datetime import datetime

from scheduler.core.snapshot import Expectation
from scheduler.models import ExpectedStart
from telemetry.models import Cluster

OVER_COUNT = 100
WAITING_COUNT = 1600
"""So many of the last waits that are over, and of those that last, are learnt from."""

COLUMNS = ("given_at", "over_at", "planned_p50_s", "planned_p90_s", "started", "gang", "told_p90_s")


def expectations(cluster: Cluster, now: datetime) -> tuple[Expectation, ...]:
    """Return what was said of the last jobs that waited, and what has become of it; one query."""
    rows = ExpectedStart.objects.filter(cluster=cluster)
    over = rows.filter(over_at__isnull=False).order_by("-over_at", "job_id")
    waiting = rows.filter(over_at__isnull=True).order_by("-given_at", "job_id")
    both = over.values_list(*COLUMNS)[:OVER_COUNT].union(
        waiting.values_list(*COLUMNS)[:WAITING_COUNT], all=True
    )
    return tuple(
        Expectation(p50_s, p90_s, ((over_at or now) - given_at).total_seconds(), *rest)
        for given_at, over_at, p50_s, p90_s, *rest in both
    )
