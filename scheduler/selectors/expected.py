"""How well expected starts have held lately."""

from dataclasses import dataclass

from scheduler.models import ExpectedStart
from telemetry.models import Cluster

SCORE_COUNT = 200
LEAST_COUNT = 20
"""Of so many of the last waits that ended with a start a score is made, and of no fewer."""


@dataclass(frozen=True, slots=True)
class ExpectedScore:
    """Of the last jobs of a cluster that waited for their first start.

    Attributes:
        count: how many there are.
        p50_pct, p90_pct: how many of a hundred had started by their P50, and by their P90.
    """

    count: int
    p50_pct: float
    p90_pct: float


def expected_score(*, cluster: Cluster) -> ExpectedScore | None:
    """Return how well expected starts have held lately; None where too few jobs waited.

    It says nothing of any one job, so that everybody may see it.
    """
    rows = (
        ExpectedStart.objects.filter(cluster=cluster, over_at__isnull=False, started=True)
        .order_by("-over_at", "job_id")
        .values_list("given_at", "over_at", "told_p50_s", "told_p90_s")[:SCORE_COUNT]
    )
    waits = [
        ((over_at - given_at).total_seconds(), p50_s, p90_s)
        for given_at, over_at, p50_s, p90_s in rows
        if over_at is not None
    ]
    if len(waits) < LEAST_COUNT:
        return None
    held50 = sum(waited_s <= p50_s for waited_s, p50_s, _ in waits)
    held90 = sum(waited_s <= p90_s for waited_s, _, p90_s in waits)
    return ExpectedScore(len(waits), 100 * held50 / len(waits), 100 * held90 / len(waits))
