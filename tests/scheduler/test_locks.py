"""The scheduler's lock: one holder, freed by death, waited for, and never left in the pool."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import DataError, OperationalError, connection, transaction

from scheduler import locks
from scheduler.locks import cluster_lock
from tests.processes import django_process

pytestmark = pytest.mark.django_db(transaction=True)

HOLD = """
import sys, django
django.setup()
from scheduler.locks import cluster_lock
with cluster_lock(7, wait_s=0) as held:
    print(held, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def _own_session() -> Iterator[None]:
    yield
    connection.close()


@contextmanager
def another_process() -> Iterator[subprocess.Popen[str]]:
    with django_process(HOLD) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process


def ask(query: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]


def sessions_with_locks() -> object:
    advisory = f"locktype = 'advisory' AND classid = {locks.NAMESPACE}"
    return ask(f"SELECT count(*) FROM pg_locks WHERE {advisory}")  # noqa: S608 - our number


def assert_freed() -> None:
    """Wait a little: a server takes a moment to see that a connection is gone."""
    until = time.monotonic() + 10
    while sessions_with_locks():
        assert time.monotonic() < until, "the lock was left on a session"
        time.sleep(0.02)


def test_while_one_process_holds_it_another_gets_nothing() -> None:
    with another_process():
        with cluster_lock(7, wait_s=0) as held:
            assert held is False
        with cluster_lock(8, wait_s=0) as held:
            assert held is True


def test_waiting_ends_in_time_and_leaves_no_time_out_behind() -> None:
    with another_process():
        with cluster_lock(7, wait_s=0.2) as held:
            assert held is False
        with cluster_lock(7, wait_s=0.0001) as held:  # shorter than a millisecond is not for ever
            assert held is False
    assert ask("SHOW lock_timeout") == "0"


def test_a_killed_holder_frees_it_and_who_waits_gets_it() -> None:
    with another_process() as process:
        threading.Timer(0.3, process.kill).start()
        with cluster_lock(7, wait_s=20) as held:
            assert held is True
    assert_freed()


def test_two_threads_never_hold_it_at_once() -> None:
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(5):
            with cluster_lock(7, wait_s=20) as held:
                assert held
                inside.append(1)
                most.append(len(inside))
                inside.pop()
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(most) == 15
    assert max(most) == 1


def test_an_exception_inside_frees_it() -> None:
    with pytest.raises(ValueError, match="boom"), cluster_lock(7, wait_s=0):
        raise ValueError("boom")
    assert_freed()


def test_a_transaction_around_it_that_is_broken_frees_it() -> None:
    with pytest.raises(DataError), transaction.atomic(), cluster_lock(7, wait_s=0):
        ask("SELECT 1 / 0")
    assert_freed()


def test_a_terminated_connection_is_not_used_again_and_the_next_cycle_works() -> None:
    with pytest.raises(OperationalError), cluster_lock(7, wait_s=0):
        ask("SELECT pg_terminate_backend(pg_backend_pid())")
    with cluster_lock(7, wait_s=0) as held:
        assert held is True
    assert_freed()


def test_an_exception_while_it_is_taken_leaves_no_locked_connection_in_the_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take = locks._lock

    def take_and_fail(cluster_id: int, wait_s: float) -> bool:
        take(cluster_id, wait_s)
        raise TimeoutError("the task's time is over")

    monkeypatch.setattr(locks, "_lock", take_and_fail)
    with pytest.raises(TimeoutError), cluster_lock(7, wait_s=0):
        pass
    monkeypatch.undo()
    assert_freed()


def test_a_connection_closed_inside_takes_the_lock_with_it() -> None:
    with cluster_lock(7, wait_s=0):
        connection.close()
    assert_freed()
