"""Keeps samples: in a partition a day, rolled up by minute and hour, dropped when old."""

import logging
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from telemetry.models import Cluster, Rollup

logger = logging.getLogger(__name__)

AHEAD_DAYS: Final = 2
MINUTE_S: Final = 60
HOUR_S: Final = 3600
SETTLE_S: Final = 10.0
"""A period is rolled up this long after its end: samples of its last moment may still commit."""
LOCK_TIMEOUT: Final = "5s"
LOCK_KEY: Final = 7_214_001
"""Of the advisory lock under which partitions are made; any number that nobody else uses."""

_PARTITION: Final = re.compile(r"telemetry_sample_(\d{4})(\d\d)(\d\d)")
_PARTITIONS: Final = """
SELECT child.relname FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
WHERE inhparent = 'telemetry_sample'::regclass
"""
_MAKE_PARTITION: Final = (
    "LOCK TABLE telemetry_sample IN SHARE UPDATE EXCLUSIVE MODE",
    "LOCK TABLE telemetry_sample_default IN ACCESS EXCLUSIVE MODE",
    "CREATE TABLE {name} (LIKE telemetry_sample INCLUDING DEFAULTS)",
    """WITH moved AS (
        DELETE FROM telemetry_sample_default WHERE at >= '{start}' AND at < '{end}' RETURNING *
    ) INSERT INTO {name} SELECT * FROM moved""",
    "ALTER TABLE telemetry_sample ATTACH PARTITION {name} FOR VALUES FROM ('{start}') TO ('{end}')",
)
"""Attaching, unlike CREATE TABLE ... PARTITION OF, lets readers and writers of other days go on."""

_ROLL_UP_SAMPLES: Final = """
INSERT INTO telemetry_rollup (period_s, at, cluster_id, node_id, device_id, job_uid,
    utilised_mean_frac, utilised_max_frac, allocated_mean_frac, memory_max_mib, power_mean_w,
    temperature_max_c, sample_count)
SELECT %(period_s)s, date_bin(%(period)s, at, 'epoch'), cluster_id, node_id, device_id, job_uid,
    avg(utilised_frac), max(utilised_frac), avg(allocated_frac), max(memory_used_mib),
    avg(power_w), max(temperature_c), count(*)
FROM telemetry_sample
WHERE cluster_id = ANY(%(clusters)s) AND at >= %(start)s AND at < %(end)s
GROUP BY 2, 3, 4, 5, 6
"""
_ROLL_UP_MINUTES: Final = """
INSERT INTO telemetry_rollup (period_s, at, cluster_id, node_id, device_id, job_uid,
    utilised_mean_frac, utilised_max_frac, allocated_mean_frac, memory_max_mib, power_mean_w,
    temperature_max_c, sample_count)
SELECT %(period_s)s, date_bin(%(period)s, at, 'epoch'), cluster_id, node_id, device_id, job_uid,
    sum(utilised_mean_frac * sample_count)
        / sum(sample_count) FILTER (WHERE utilised_mean_frac IS NOT NULL),
    max(utilised_max_frac),
    sum(allocated_mean_frac * sample_count)
        / sum(sample_count) FILTER (WHERE allocated_mean_frac IS NOT NULL),
    max(memory_max_mib),
    sum(power_mean_w * sample_count) / sum(sample_count) FILTER (WHERE power_mean_w IS NOT NULL),
    max(temperature_max_c), sum(sample_count)
FROM telemetry_rollup
WHERE period_s = 60 AND cluster_id = ANY(%(clusters)s) AND at >= %(start)s AND at < %(end)s
GROUP BY 2, 3, 4, 5, 6
"""
_AGAIN: Final = """
ON CONFLICT ON CONSTRAINT rollup_unique_subject DO UPDATE SET
    utilised_mean_frac = excluded.utilised_mean_frac,
    utilised_max_frac = excluded.utilised_max_frac,
    allocated_mean_frac = excluded.allocated_mean_frac,
    memory_max_mib = excluded.memory_max_mib,
    power_mean_w = excluded.power_mean_w,
    temperature_max_c = excluded.temperature_max_c,
    sample_count = excluded.sample_count
"""


def samples_partition(*, day: date) -> tuple[str, ...]:
    """Make the partitions of `day` and the two days after it; return the new ones.

    Samples of such a day that went into the default partition before move into theirs.
    """
    wanted = {_name(d): d for d in (day + timedelta(days=n) for n in range(AHEAD_DAYS + 1))}
    with transaction.atomic(), connection.cursor() as cursor:
        if wanted.keys() <= set(_partitions(cursor)):
            return ()
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
        missing = [name for name in wanted if name not in set(_partitions(cursor))]
        for name in missing:
            start = _midnight(wanted[name])
            end = start + timedelta(days=1)
            for statement in _MAKE_PARTITION:
                cursor.execute(
                    statement.format(name=name, start=start.isoformat(), end=end.isoformat())
                )
    return tuple(missing)


def retain(*, now: datetime) -> tuple[str, ...]:
    """Drop samples and rollups that are older than the settings keep; return dropped partitions.

    Whole days go: a day is dropped once its last moment is older than SAMPLE_KEEP_DAYS.
    """
    oldest = (now - timedelta(days=settings.SAMPLE_KEEP_DAYS)).date()
    with connection.cursor() as cursor:
        names = [name for name in _partitions(cursor) if (d := _day(name)) and d < oldest]
    for name in names:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
        logger.info("samples_dropped partition=%s", name)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM telemetry_sample_default WHERE at < %s", [_midnight(oldest)])
    Rollup.objects.filter(at__lt=now - timedelta(days=settings.ROLLUP_KEEP_DAYS)).delete()
    return tuple(names)


def roll_up(*, now: datetime) -> int:
    """Sum up samples of minutes, and minutes of hours, that are over; return rows written.

    Doing it again gives the same rows. An hour's means weigh each minute by its samples.
    """
    clusters = list(Cluster.objects.values_list("pk", flat=True))
    minutes = _roll_up(_ROLL_UP_SAMPLES, MINUTE_S, clusters, now)
    return minutes + _roll_up(_ROLL_UP_MINUTES, HOUR_S, clusters, now)


def _roll_up(statement: str, period_s: int, clusters: Sequence[int], now: datetime) -> int:
    end = _floor(now - timedelta(seconds=SETTLE_S), period_s)
    written = (
        Rollup.objects.filter(period_s=period_s, at__lt=end)
        .order_by("-at")
        .values_list("at", flat=True)
        .first()
    )
    start = written if written is not None else end - timedelta(days=settings.SAMPLE_KEEP_DAYS)
    if written == end - timedelta(seconds=period_s):
        return 0
    values: dict[str, Any] = {
        "period_s": period_s,
        "period": timedelta(seconds=period_s),
        "clusters": clusters,
        "start": start,
        "end": end,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement + _AGAIN, values)
        return int(cursor.rowcount)


def _partitions(cursor: CursorWrapper) -> list[str]:
    cursor.execute(_PARTITIONS)
    return [name for (name,) in cursor.fetchall()]


def _name(day: date) -> str:
    return f"telemetry_sample_{day:%Y%m%d}"


def _day(partition: str) -> date | None:
    found = _PARTITION.fullmatch(partition)
    return date(*(int(part) for part in found.groups())) if found else None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _floor(at: datetime, period_s: int) -> datetime:
    return datetime.fromtimestamp(at.timestamp() // period_s * period_s, tz=UTC)
