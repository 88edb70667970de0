"""What every executor must do, whatever it runs on."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

from scheduler.execute.base import (
    EXECUTORS,
    FINISHED,
    Binding,
    Executor,
    ExecutorRejectedError,
    ExecutorSettings,
    Observation,
    Phase,
)
from tests.scheduler.execute.builders import binding, replicas

SOUND = "00000000-0000-4000-8000-000000000000"
"""A job that the simulated executor does not let fail by chance."""


@dataclass(frozen=True)
class Port:
    """An executor under test, and the time that it is told."""

    build: Callable[[], Executor]
    now_s: Callable[[], float]

    def until(self, job: Binding, holds: Callable[[Observation], bool]) -> Observation:
        end_s = time.monotonic() + 15.0
        while time.monotonic() < end_s:
            for each in self.build().observe(now_s=self.now_s()):
                if (each.uid, each.attempt) == (job.uid, job.attempt) and holds(each):
                    return each
            time.sleep(0.02)
        pytest.fail("it did not come true in time")

    def end_of(self, job: Binding) -> Observation:
        return self.until(job, lambda each: each.phase in FINISHED)


@pytest.fixture(params=sorted(EXECUTORS))
def port(request: pytest.FixtureRequest) -> Iterator[Port]:
    kind: str = request.param
    module, _, name = EXECUTORS[kind].rpartition(".")
    folder = Path(tempfile.mkdtemp(prefix="kilter-test-"))
    folder.chmod(0o711)
    options: dict[str, object] = {"folder": folder}
    start_s = time.time()
    if kind == "simulated":
        options["clock"] = lambda real_s: start_s + (real_s - start_s) * 100.0
    settings = ExecutorSettings("here", options)
    port = Port(lambda: getattr(import_module(module), name)(settings), time.time)
    yield port
    _end_all(port)
    shutil.rmtree(folder)


def _end_all(port: Port) -> None:
    end_s = time.monotonic() + 10.0
    while time.monotonic() < end_s:
        found = port.build().observe(now_s=port.now_s())
        left = [each for each in found if each.phase not in FINISHED]
        if not left:
            return
        for each in left:
            port.build().evict(each.uid, each.attempt, grace_s=0.0, reason="test")
        time.sleep(0.05)


def _long() -> Binding:
    return binding("sleep 600", uid=SOUND, time_limit_s=1000.0, expected_duration_s=900.0)


def test_nothing_is_known_at_first(port: Port) -> None:
    assert list(port.build().observe(now_s=port.now_s())) == []


def test_a_bound_job_is_seen_at_once_by_everybody(port: Port) -> None:
    job = _long()
    port.build().bind(job)
    (seen,) = port.build().observe(now_s=port.now_s())
    assert (seen.uid, seen.attempt) == (job.uid, 1)
    assert seen.phase in {Phase.STARTING, Phase.RUNNING}
    assert seen.finished_s is None
    assert seen.exit_code is None


def test_a_job_runs_and_succeeds(port: Port) -> None:
    job = binding("echo done", uid=SOUND, time_limit_s=600.0, expected_duration_s=60.0)
    port.build().bind(job)
    end = port.end_of(job)
    assert (end.phase, end.exit_code, end.reason) == (Phase.SUCCEEDED, 0, "")
    assert end.started_s is not None
    assert end.finished_s is not None
    assert end.started_s <= end.finished_s
    assert abs(end.finished_s - port.now_s()) < 20.0


def test_an_end_is_told_until_it_is_forgotten_and_stays_the_same(port: Port) -> None:
    job = binding("exit 0", uid=SOUND, time_limit_s=600.0, expected_duration_s=1.0)
    port.build().bind(job)
    end = port.end_of(job)
    assert list(port.build().observe(now_s=port.now_s())) == [end]
    port.build().forget(job.uid, 1)
    assert list(port.build().observe(now_s=port.now_s())) == []


def test_the_same_attempt_twice_has_one_effect_even_when_forgotten(port: Port) -> None:
    job = binding("exit 0", uid=SOUND, time_limit_s=600.0, expected_duration_s=1.0)
    for _ in range(3):
        port.build().bind(job)
    assert len(port.build().observe(now_s=port.now_s())) == 1
    port.end_of(job)
    port.build().forget(job.uid, 1)
    port.build().bind(job)
    assert list(port.build().observe(now_s=port.now_s())) == []


def test_two_attempts_of_a_job_are_told_apart(port: Port) -> None:
    first = binding("exit 0", uid=SOUND, time_limit_s=600.0, expected_duration_s=1.0)
    port.build().bind(first)
    port.end_of(first)
    second = binding("exit 0", uid=SOUND, attempt=2, time_limit_s=600.0, expected_duration_s=1.0)
    port.build().bind(second)
    port.until(second, lambda _: True)
    attempts = {each.attempt for each in port.build().observe(now_s=port.now_s())}
    assert attempts == {1, 2}


def test_an_evicted_job_is_cancelled(port: Port) -> None:
    job = _long()
    port.build().bind(job)
    port.until(job, lambda each: each.phase is Phase.RUNNING)
    port.build().evict(job.uid, 1, grace_s=1.0, reason="user")
    end = port.end_of(job)
    assert (end.phase, end.reason) == (Phase.CANCELLED, "cancelled")
    assert end.message


def test_a_job_is_ended_at_its_time_limit(port: Port) -> None:
    job = binding("sleep 600", uid=SOUND, time_limit_s=1.0, expected_duration_s=900.0)
    port.build().bind(job)
    end = port.end_of(job)
    assert (end.phase, end.reason) == (Phase.TIMED_OUT, "time_limit")


def test_a_gang_is_one_attempt(port: Port) -> None:
    job = binding(
        "sleep 0.3", uid=SOUND, replicas=replicas(3), time_limit_s=60.0, expected_duration_s=9.0
    )
    port.build().bind(job)
    assert port.end_of(job).phase is Phase.SUCCEEDED


def test_the_log_is_read_in_pieces_and_survives_forgetting(port: Port) -> None:
    job = binding("echo one; echo two", uid=SOUND, time_limit_s=60.0, expected_duration_s=20.0)
    port.build().bind(job)
    port.end_of(job)
    whole = port.build().log(job.uid, 1, since=0, limit=10**6)
    assert len(whole.data) == whole.size > 7
    port.build().forget(job.uid, 1)
    piece = port.build().log(job.uid, 1, since=3, limit=4)
    assert (piece.data, piece.since, piece.size) == (whole.data[3:7], 3, whole.size)
    assert port.build().log(job.uid, 1, since=10**9, limit=4).data == b""


def test_a_purge_leaves_nothing_of_what_was_forgotten_and_all_of_what_was_not(port: Port) -> None:
    job = binding("echo one", uid=SOUND, time_limit_s=60.0, expected_duration_s=20.0)
    port.build().bind(job)
    port.end_of(job)
    port.build().purge(job.uid, [1])
    assert port.build().log(job.uid, 1, since=0, limit=10).size > 0
    assert port.build().kept() == []
    port.build().forget(job.uid, 1)
    assert port.build().kept() == [(job.uid, 1)]
    port.build().purge(job.uid, [1])
    port.build().purge(job.uid, [1])
    assert port.build().kept() == []
    assert port.build().log(job.uid, 1, since=0, limit=10).size == 0


def test_what_nobody_knows_is_no_error(port: Port) -> None:
    stranger = binding()
    port.build().evict(stranger.uid, 1, grace_s=0.0, reason="user")
    port.build().forget(stranger.uid, 1)
    port.build().purge(stranger.uid, [1, 2])
    assert port.build().log(stranger.uid, 1, since=0, limit=10).data == b""


def test_a_uid_that_is_a_path_is_refused(port: Port) -> None:
    with pytest.raises(ExecutorRejectedError):
        port.build().bind(binding(uid="../../outside"))
    with pytest.raises(ExecutorRejectedError):
        port.build().log("../../outside", 1, since=0, limit=1)
    with pytest.raises(ExecutorRejectedError):
        port.build().purge("../../outside", [1])


def test_a_binding_without_replica_is_refused(port: Port) -> None:
    with pytest.raises(ExecutorRejectedError):
        port.build().bind(binding(replicas=()))
