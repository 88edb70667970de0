"""How busy it was: series over time, from samples where the span is short, else from rollups.

Every series has one point for each step of the span; a step without samples is a gap, a point of
None, and never zero.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection

from telemetry.models import Cluster, Device, Node

POINTS_MOST: Final = 600
SAMPLES_SPAN: Final = timedelta(minutes=15)
MINUTES_SPAN: Final = timedelta(days=2)
MINUTE_S: Final = 60
HOUR_S: Final = 3600
NOT_ROLLED_UP: Final = timedelta(minutes=3)
"""The end of a span that has no rollups yet; it is read from samples, or live charts would end
in a gap."""
STEP_LEAST_S: Final = 5
LONGEST_SPAN: Final = timedelta(days=3660)

_SAMPLES: Final = """
SELECT date_bin(%(step)s, at, 'epoch') AS bin, avg(utilised_frac), avg(allocated_frac),
    max(memory_used_mib), avg(power_w), max(temperature_c)
FROM telemetry_sample WHERE at >= %(start)s AND at < %(end)s AND {subject}
GROUP BY bin
"""
_ROLLUPS: Final = """
SELECT date_bin(%(step)s, at, 'epoch') AS bin, avg(utilised_mean_frac), avg(allocated_mean_frac),
    max(memory_max_mib), avg(power_mean_w), max(temperature_max_c)
FROM telemetry_rollup
WHERE period_s = %(period_s)s AND at >= %(start)s AND at < %(end)s AND {subject}
GROUP BY bin
"""
_OF_DEVICES: Final = "cluster_id = %(key)s AND device_id IS NOT NULL"
_OF_NODES: Final = (
    "cluster_id = %(key)s AND node_id IS NOT NULL AND device_id IS NULL AND job_uid IS NULL"
)
_OF_NODE: Final = "cluster_id = %(cluster)s AND node_id = %(key)s AND device_id IS NULL"
_OF_DEVICE: Final = "device_id = %(key)s"
_OF_JOB: Final = "job_uid = %(key)s"


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One step of a series; None = no sample in it, or not known.

    Attributes:
        at: start of the step.
        utilised_frac: mean busy part 0..1; of a job: cores busy, 1.0 = one whole core.
        allocated_frac: mean held part 0..1.
        memory_used_mib: the most.
        power_w: mean.
        temperature_c: the most.
    """

    at: datetime
    utilised_frac: float | None = None
    allocated_frac: float | None = None
    memory_used_mib: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None


def utilisation_series(
    *, cluster: Cluster, since: datetime, until: datetime, points: int = POINTS_MOST
) -> list[SeriesPoint]:
    """Return the mean over all devices of a cluster; over its nodes' cores where it has none."""
    has_devices = Device.objects.filter(node__cluster=cluster).exists()
    subject = _OF_DEVICES if has_devices else _OF_NODES
    return _series(subject, {"key": cluster.pk}, since, until, points)


def cpu_series(
    *, cluster: Cluster, since: datetime, until: datetime, points: int = POINTS_MOST
) -> list[SeriesPoint]:
    """Return the mean over the cores of all nodes of a cluster."""
    return _series(_OF_NODES, {"key": cluster.pk}, since, until, points)


def node_series(
    *, node: Node, since: datetime, until: datetime, points: int = POINTS_MOST
) -> list[SeriesPoint]:
    """Return the cores and memory of one node."""
    return _series(_OF_NODE, {"key": node.pk, "cluster": node.cluster_id}, since, until, points)


def device_series(
    *, device: Device, since: datetime, until: datetime, points: int = POINTS_MOST
) -> list[SeriesPoint]:
    """Return one device."""
    return _series(_OF_DEVICE, {"key": device.pk}, since, until, points)


def job_series(
    *, job_uid: UUID, since: datetime, until: datetime, points: int = POINTS_MOST
) -> list[SeriesPoint]:
    """Return what one job's processes use; whether the viewer may see the job is asked before."""
    return _series(_OF_JOB, {"key": job_uid}, since, until, points)


def _series(
    subject: str,
    subject_values: Mapping[str, str | int | UUID],
    since: datetime,
    until: datetime,
    points: int,
) -> list[SeriesPoint]:
    span = min(until - since, LONGEST_SPAN)
    if span <= timedelta(0):
        return []
    since = until - span
    period_s = _period_s(span)
    step_s = _step_s(span, max(1, min(points, POINTS_MOST)), period_s)
    first = math.floor(since.timestamp() / step_s) * step_s
    bins = [
        datetime.fromtimestamp(at, tz=UTC)
        for at in range(first, math.ceil(until.timestamp()), step_s)
    ]
    values: dict[str, Any] = {
        **subject_values,
        "step": timedelta(seconds=step_s),
        "period_s": period_s,
        "start": bins[0],
        "end": until,
    }
    if period_s == 0:
        found = _points(_SAMPLES, subject, values)
    else:
        tail = max(bins[0], until - NOT_ROLLED_UP) if period_s == MINUTE_S else until
        found = _points(_SAMPLES, subject, {**values, "start": tail})
        found |= _points(_ROLLUPS, subject, values)
    return [found.get(at) or SeriesPoint(at) for at in bins]


def _points(query: str, subject: str, values: dict[str, Any]) -> dict[datetime, SeriesPoint]:
    if values["start"] >= values["end"]:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(query.format(subject=subject), values)
        return {row[0]: SeriesPoint(*row) for row in cursor.fetchall()}


def _period_s(span: timedelta) -> int:
    """Return the period of the rollups to read; 0 = the samples themselves."""
    if span <= SAMPLES_SPAN:
        return 0
    return MINUTE_S if span <= MINUTES_SPAN else HOUR_S


def _step_s(span: timedelta, points: int, period_s: int) -> int:
    """Return a step that gives at most `points` points and is a multiple of the period.

    The first step begins before the span does, hence one point less to share it out to.
    """
    unit_s = period_s or STEP_LEAST_S
    least_s = span.total_seconds() / max(points - 1, 1)
    return max(1, math.ceil(least_s / unit_s)) * unit_s
