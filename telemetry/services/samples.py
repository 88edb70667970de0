"""Writes samples: by COPY, for there are thousands every few seconds."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import connection

from telemetry.models import Cluster

COLUMNS = (
    "at",
    "cluster_id",
    "node_id",
    "device_id",
    "job_uid",
    "utilised_frac",
    "allocated_frac",
    "memory_used_mib",
    "power_w",
    "temperature_c",
)

SampleRow = tuple[
    datetime,
    int,
    int | None,
    int | None,
    UUID | None,
    float | None,
    float | None,
    int | None,
    float | None,
    float | None,
]
"""The values of COLUMNS."""

MEMORY_MIB_MOST = 2**53


def samples_write(*, rows: Iterable[SampleRow]) -> int:
    """Append samples to the partitions of their days; return how many."""
    count = 0
    statement = f"COPY telemetry_sample ({', '.join(COLUMNS)}) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)
            count += 1
    return count


def write_job_samples(
    *, cluster: Cluster, rows: Sequence[tuple[str, float | None, int | None]], now: datetime
) -> int:
    """Append what running jobs use now; return how many samples.

    Args:
        cluster: where they run.
        rows: (job uid, cores busy, resident MiB), of all replicas together; None = not known. The
            cores go into `utilised_frac`, where 1.0 is one whole core.
        now: of the samples.
    """
    cleaned: list[SampleRow] = [
        (now, cluster.pk, None, None, UUID(uid), _amount(cores), None, _mib(memory), None, None)
        for uid, cores, memory in rows
    ]
    return samples_write(rows=cleaned) if cleaned else 0


def _amount(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) and value >= 0 else None


def _mib(value: int | None) -> int | None:
    return None if value is None or value < 0 else min(value, MEMORY_MIB_MOST)
