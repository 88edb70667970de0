"""One scheduler per cluster at a time: a PostgreSQL advisory lock.

It belongs to the database connection that does the work, so a worker that dies frees it, and a
worker that has lost the connection can't write any more either.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import OperationalError, connection, transaction
from psycopg import Connection, Error

logger = logging.getLogger(__name__)

NAMESPACE = 0x4B49  # "KI": keeps our keys apart from those of others in the same database
LOCK_NOT_AVAILABLE = "55P03"


@contextmanager
def cluster_lock(cluster_id: int, *, wait_s: float) -> Iterator[bool]:
    """Hold the lock of a cluster's scheduler; yields False where somebody else kept it.

    Whatever happens, no connection goes back to the pool with the lock on it: where it can't be
    given back in order, the connection is closed, and PostgreSQL frees it.
    """
    connection.ensure_connection()
    session = connection.connection
    clean = False
    try:
        held = _lock(cluster_id, wait_s)
        clean = not held
        try:
            yield held
        finally:
            if held:
                clean = _unlocked(session, cluster_id)
    finally:
        if not clean:
            session.close()
            if not connection.in_atomic_block:
                connection.close()  # the next query takes another one from the pool


def _lock(cluster_id: int, wait_s: float) -> bool:
    with connection.cursor() as cursor:
        if wait_s <= 0:
            cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [NAMESPACE, cluster_id])
            return bool(cursor.fetchone()[0])
        wait_ms = max(1, round(wait_s * 1000))  # 0 would wait for ever
        try:
            with transaction.atomic():  # the time-out ends with it; the lock is the session's
                cursor.execute("SELECT set_config('lock_timeout', %s, true)", [f"{wait_ms}ms"])
                cursor.execute("SELECT pg_advisory_lock(%s, %s)", [NAMESPACE, cluster_id])
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", "") != LOCK_NOT_AVAILABLE:
                raise
            return False
        return True


def _unlocked(session: Connection[Any], cluster_id: int) -> bool:
    """Give the lock back on the session that took it; False where that could not be done."""
    try:
        with session.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [NAMESPACE, cluster_id])
            row: Any = cursor.fetchone()
            return bool(row[0])
    except Error:
        logger.warning("lock not given back, connection closed cluster_id=%s", cluster_id)
        return False
