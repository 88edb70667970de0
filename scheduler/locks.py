"""One scheduler per cluster at a time: a PostgreSQL advisory lock.

It belongs to the database connection, so a worker that dies frees it, and two workers are safe.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection

NAMESPACE = 0x4B49  # "KI": keeps our keys apart from those of others in the same database


@contextmanager
def cluster_lock(cluster_id: int, *, wait_s: float) -> Iterator[bool]:
    """Hold the lock of a cluster's scheduler; yields False where somebody else kept it."""
    held = _lock(cluster_id, wait_s)
    try:
        yield held
    finally:
        if held:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [NAMESPACE, cluster_id])


def _lock(cluster_id: int, wait_s: float) -> bool:
    with connection.cursor() as cursor:
        if wait_s <= 0:
            cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [NAMESPACE, cluster_id])
            return bool(cursor.fetchone()[0])
        cursor.execute(
            "SELECT set_config('lock_timeout', %s, false)", [f"{round(wait_s * 1000)}ms"]
        )
        try:
            cursor.execute("SELECT pg_advisory_lock(%s, %s)", [NAMESPACE, cluster_id])
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", "") != "55P03":  # lock_not_available
                raise
            return False
        finally:
            cursor.execute("SELECT set_config('lock_timeout', '0', false)")
        return True
