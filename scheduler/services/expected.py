"""Keeps what jobs were told of their first start, and when they started: past errors teach."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import connection, transaction

from scheduler.choices import JobState
from scheduler.core.reasons import Pending
from scheduler.services.stored import stored_float
from telemetry.models import Cluster

_END = """
UPDATE scheduler_expectedstart said SET over_at = %s, started = job.attempt > 0
FROM scheduler_job job
WHERE said.cluster_id = %s AND said.over_at IS NULL
    AND job.uid = said.job_id AND job.state <> %s
"""
_BEGIN = """
INSERT INTO scheduler_expectedstart (
    job_id, cluster_id, given_at, planned_p50_s, planned_p90_s, told_p50_s, told_p90_s,
    gang, started
)
SELECT job.uid, %s, %s, news.planned_p50_s, news.planned_p90_s, news.told_p50_s, news.told_p90_s,
    job.replicas_min > 1, false
FROM unnest(%s::uuid[], %s::float8[], %s::float8[], %s::float8[], %s::float8[])
    AS news(uid, planned_p50_s, planned_p90_s, told_p50_s, told_p90_s)
JOIN scheduler_job job ON job.uid = news.uid
WHERE job.state = %s AND job.attempt = 0
ON CONFLICT (job_id) DO NOTHING
"""


class _Said(NamedTuple):
    """What a plan says of one job, waits in seconds from now."""

    uid: str
    planned_p50_s: float
    planned_p90_s: float
    told_p50_s: float
    told_p90_s: float


def expected_note(*, cluster: Cluster, pending: Sequence[Pending], now: datetime) -> None:
    """Keep what is said first of each job that waits for its first start, and whose wait is over.

    A wait is over that ends with a start, and one that is given up: until then it lasted.
    """
    said = [one for held in pending for one in _said(held, now.timestamp())]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_END, [now, cluster.pk, JobState.QUEUED])
        if said:
            columns = [list(column) for column in zip(*said, strict=True)]
            cursor.execute(_BEGIN, [cluster.pk, now, *columns, JobState.QUEUED])


def _said(held: Pending, now_s: float) -> Iterator[_Said]:
    """Give what is said of a job, if anything is."""
    times = [
        stored_float(at_s)
        for at_s in (
            held.planned_p50_s,
            held.planned_p90_s,
            held.expected_start_p50_s,
            held.expected_start_p90_s,
        )
    ]
    waits = [max(0.0, at_s - now_s) for at_s in times if at_s is not None]
    if len(waits) == len(times):
        planned_s, planned_late_s, told_s, told_late_s = waits
        late = max(planned_s, planned_late_s), max(told_s, told_late_s)
        yield _Said(held.uid, planned_s, late[0], told_s, late[1])
