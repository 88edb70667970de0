"""How busy something was over a span: for the ledger, at the end of a placement.

From samples while they are kept, from rollups of minutes before that.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

_DEVICES = """
SELECT AVG(frac) FROM (
    SELECT device_id, AVG(utilised_frac) AS frac FROM telemetry_sample
    WHERE device_id = ANY(%(ids)s) AND at >= %(since)s AND at < %(until)s
    GROUP BY device_id
) AS per_device
"""
_DEVICES_ROLLED = """
SELECT AVG(frac) FROM (
    SELECT device_id, SUM(utilised_mean_frac * sample_count) / SUM(sample_count) AS frac
    FROM telemetry_rollup
    WHERE period_s = 60 AND device_id = ANY(%(ids)s) AND at >= %(since)s AND at < %(until)s
        AND utilised_mean_frac IS NOT NULL
    GROUP BY device_id
) AS per_device
"""
_JOB = """
SELECT AVG(utilised_frac) FROM telemetry_sample
WHERE job_uid = %(job)s AND at >= %(since)s AND at < %(until)s
"""
_JOB_ROLLED = """
SELECT SUM(utilised_mean_frac * sample_count) / SUM(sample_count) FROM telemetry_rollup
WHERE period_s = 60 AND job_uid = %(job)s AND at >= %(since)s AND at < %(until)s
    AND utilised_mean_frac IS NOT NULL
"""


def devices_utilised_mean(
    *, device_ids: Sequence[int], since: datetime, until: datetime
) -> float | None:
    """Return the mean utilisation of some devices, 0..1; None where nothing was measured."""
    span = {"ids": list(device_ids), "since": since, "until": until}
    return _mean(_DEVICES, _DEVICES_ROLLED, span)


def job_cores_mean(*, job_uid: UUID, since: datetime, until: datetime) -> float | None:
    """Return the mean number of busy cores of a job; None where nothing was measured."""
    span = {"job": job_uid, "since": since, "until": until}
    return _mean(_JOB, _JOB_ROLLED, span)


def _mean(sampled: str, rolled: str, span: dict[str, Any]) -> float | None:
    """Ask samples first where all of the span's are still kept, else rollups.

    The span ends about now, so whether its samples are kept shows in its length; asking the table
    for its oldest sample would read all of it.
    """
    queries = [sampled, rolled]
    if span["until"] - span["since"] > timedelta(days=settings.SAMPLE_KEEP_DAYS):
        queries.reverse()
    means = (_first(query, span) for query in queries)
    return next((mean for mean in means if mean is not None), None)


def _first(query: str, parameters: dict[str, Any]) -> float | None:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        (value,) = cursor.fetchone()
    return None if value is None else float(value)
