"""A local executor on a folder of its own, and what tests ask of it."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scheduler.execute.base import (
    FINISHED,
    Binding,
    Executor,
    ExecutorSettings,
    Observation,
)
from scheduler.execute.local import build, procfs
from scheduler.execute.local.status import read_status


@dataclass(frozen=True)
class Bench:
    """An executor and its folder, with waits that end."""

    executor: Executor
    folder: Path

    def observed(self, job: Binding) -> Observation:
        found = self.executor.observe(now_s=time.time())
        return next(each for each in found if (each.uid, each.attempt) == (job.uid, job.attempt))

    def finished(self, job: Binding, *, within_s: float = 15.0) -> Observation:
        self.until(lambda: self.observed(job).phase in FINISHED, within_s=within_s)
        return self.observed(job)

    def run(self, job: Binding) -> Observation:
        self.executor.bind(job)
        return self.finished(job)

    def output(self, job: Binding) -> bytes:
        return self.executor.log(job.uid, job.attempt, since=0, limit=1 << 30).data

    def until(self, holds: Callable[[], object], *, within_s: float = 15.0) -> None:
        end_s = time.monotonic() + within_s
        while not holds():
            assert time.monotonic() < end_s, "it did not come true in time"
            time.sleep(0.02)

    def until_output(self, job: Binding, text: bytes) -> None:
        self.until(lambda: text in self.output(job))

    def attempt_folder(self, job: Binding) -> Path:
        return self.folder / "active" / f"{job.uid}.{job.attempt}"

    def supervisor_pid(self, job: Binding) -> int:
        status = read_status(self.attempt_folder(job))
        assert status is not None
        return status.pid

    def again(self, **options: object) -> "Bench":
        """Return another executor on the same folder, as after a restart."""
        return Bench(_build(self.folder, **options), self.folder)


def processes_of(job: Binding) -> list[int]:
    """Return what lives of a job, told by the mark in its environment.

    Looks many times: one look may miss a process that forks and exits in turn.
    """
    mark = f"KILTER_JOB_ID={job.uid}".encode()
    return sorted({pid for _ in range(15) for pid in procfs.marked([mark])})


@pytest.fixture
def bench() -> Iterator[Bench]:
    folder = Path(tempfile.mkdtemp(prefix="kilter-test-"))
    # Jobs of other users must be able to pass through to their work folders.
    folder.chmod(0o711)
    bench = Bench(_build(folder), folder)
    yield bench
    for each in bench.executor.observe(now_s=time.time()):
        if each.phase not in FINISHED:
            bench.executor.evict(each.uid, each.attempt, grace_s=0.0, reason="test")
    end_s = time.monotonic() + 10.0
    while not _all_ended(bench) and time.monotonic() < end_s:
        time.sleep(0.05)
    shutil.rmtree(folder)


def _all_ended(bench: Bench) -> bool:
    return all(each.phase in FINISHED for each in bench.executor.observe(now_s=time.time()))


def _build(folder: Path, **options: object) -> Executor:
    return build(ExecutorSettings("this-machine", {"folder": folder, **options}))


def kill(pid: int) -> None:
    """End a process for good, as a crash would."""
    os.kill(pid, signal.SIGKILL)
