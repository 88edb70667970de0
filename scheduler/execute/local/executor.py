"""The portal's side of the local executor: starts supervisors, and reads what they say.

    FOLDER/lock                 held for a moment by whoever starts, settles or forgets
    FOLDER/active/KEY/          spec.json status.json evict.json output.log lock
    FOLDER/ended/KEY/           the same, once forgotten, without the spec
    FOLDER/work/UID/            the job's work folder; its attempts share it

KEY is uid.attempt. An attempt's lock is passed on from bind() to its supervisor, which holds it for
life: it is free only where there is no supervisor, whatever became of process ids in between.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from scheduler.execute.base import (
    FINISHED,
    Binding,
    ExecutorRejectedError,
    ExecutorSettings,
    ExecutorUnavailableError,
    LogChunk,
    Observation,
    Phase,
)
from scheduler.execute.local import procfs
from scheduler.execute.local.environment import DEFAULT_PATH
from scheduler.execute.local.exposure import interpreter_folders
from scheduler.execute.local.launch import ROOT, launch_supervisor
from scheduler.execute.local.leftovers import end_leftovers, last_words, wake
from scheduler.execute.local.options import LOG_CAP_BYTES, parse_options
from scheduler.execute.local.spec import (
    EVICT,
    LOCK,
    OUTPUT,
    SPEC,
    STATUS,
    Spec,
    check_binding,
)
from scheduler.execute.local.status import Status, read_status
from scheduler.execute.local.users import JobUser, job_user
from scheduler.execute.local.work import prepare_work, remove_tree, work_root
from scheduler.execute.records import CorruptRecordError, key_of, parse_key, write_record


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """Runs jobs as processes of this machine.

    Attributes:
        folder: where state is kept.
        log_cap_bytes: of each attempt's output.
        run_as: a user's name, None for the default of `job_user`.
        path: PATH of the jobs.
        work: where the jobs' work folders lie, None for the default of `work_root`.
        shown: folders that every job may read, closed ones above them notwithstanding.
        hidden: folders that no job may see, its own work folder in them excepted.
    """

    folder: Path
    log_cap_bytes: int = LOG_CAP_BYTES
    run_as: str | None = None
    path: str = DEFAULT_PATH
    work: Path | None = None
    shown: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()

    @classmethod
    def of(cls, settings: ExecutorSettings) -> Self:
        """Return the executor that the settings describe; see `build`."""
        if sys.platform != "linux":
            raise ExecutorRejectedError("the local executor runs on Linux only")
        executor = cls(**parse_options(settings.options))
        for part in ("active", "ended"):
            (executor.folder / part).mkdir(mode=0o700, parents=True, exist_ok=True)
        return executor

    def bind(self, binding: Binding, /) -> None:
        """Start the attempt under a supervisor of its own; see Executor."""
        check_binding(binding)
        key = key_of(binding.uid, binding.attempt)
        with self._steps(), self._only_one():
            if self._folder("ended", key).exists():
                return
            folder = self._folder("active", key)
            folder.mkdir(mode=0o700, exist_ok=True)
            if not (folder / SPEC).exists():
                write_record(folder / SPEC, self._spec(binding).to_record())
            self._launch_if_free(folder)

    def evict(self, uid: str, attempt: int, /, *, grace_s: float, reason: str) -> None:
        """Leave the wish in the attempt's folder, where its supervisor looks; see Executor."""
        folder = self._folder("active", key_of(uid, attempt))
        with self._steps():
            if not (folder / SPEC).exists():
                return
            write_record(folder / EVICT, {"grace_s": grace_s, "reason": reason})

    def observe(self, /, *, now_s: float) -> Sequence[Observation]:
        """Return all attempts, and settle those whose supervisor is gone; see Executor."""
        with self._steps():
            keys = sorted(each.name for each in (self.folder / "active").iterdir())
            found = [self._observe_one(key, now_s) for key in keys]
        return [each for each in found if each is not None]

    def forget(self, uid: str, attempt: int, /) -> None:
        """Move the attempt out of sight; its log stays; see Executor."""
        key = key_of(uid, attempt)
        folder = self._folder("active", key)
        with self._steps(), self._only_one():
            if not folder.exists() or not _is_over(folder):
                return  # the caller is early, and will see it again
            folder.rename(self._folder("ended", key))
            # It holds the job's variables, secrets among them.
            (self._folder("ended", key) / SPEC).unlink(missing_ok=True)

    def log(self, uid: str, attempt: int, /, *, since: int, limit: int) -> LogChunk:
        """Return a piece of the kept output; see Executor."""
        key = key_of(uid, attempt)
        since, limit = max(0, since), max(0, limit)
        with self._steps():
            for part in ("active", "ended"):
                folder = self._folder(part, key)
                if (folder / OUTPUT).exists():
                    return _read_log(folder, since, limit)
        return LogChunk(b"", 0, 0)

    def kept(self) -> Sequence[tuple[str, int]]:
        """Return all forgotten attempts; see Executor."""
        with self._steps():
            names = sorted(each.name for each in (self.folder / "ended").iterdir())
        return [key for key in map(parse_key, names) if key is not None]

    def purge(self, uid: str, attempts: Sequence[int], /) -> None:
        """Remove the job's work folder, then its logs; see Executor."""
        job = key_of(uid, 1).partition(".")[0]
        folders = [self._folder("ended", key_of(uid, attempt)) for attempt in attempts]
        user = job_user(uid, self.run_as)
        with self._steps():
            if any((self.folder / "active").glob(f"{job}.*")):
                return
            # The logs go last: while they are there, what failed half-way is tried again.
            for folder in (self._work_root(user) / job, *folders):
                remove_tree(folder)

    def _work_root(self, user: JobUser | None) -> Path:
        return self.work or work_root(self.folder, user)

    def _spec(self, binding: Binding) -> Spec:
        user = job_user(binding.uid, self.run_as)
        work = prepare_work(self._work_root(user), binding.uid, user)
        shown = (*self.shown, *interpreter_folders(), ROOT / "examples")
        return Spec(binding, work, user, self.log_cap_bytes, self.path, shown, self.hidden)

    def _folder(self, part: str, key: str) -> Path:
        return self.folder / part / key

    def _observe_one(self, key: str, now_s: float) -> Observation | None:
        parsed = parse_key(key)
        folder = self._folder("active", key)
        if parsed is None or not (folder / SPEC).exists():
            return None  # not ours, or a bind that died before it promised anything
        status = _status_or_none(folder)
        if status is not None and status.phase in FINISHED:
            return status.observed(*parsed)
        with self._only_one():
            if not folder.exists():
                return None  # forgotten meanwhile
            lock = _take(folder)
        if lock is None:
            if status is not None:
                wake(status.pid, folder)
            return (status or Status(Phase.STARTING, 0, "")).observed(*parsed)
        try:
            return self._without_supervisor(folder, lock, now_s).observed(*parsed)
        finally:
            os.close(lock)

    def _without_supervisor(self, folder: Path, lock: int, now_s: float) -> Status:
        """Settle an attempt that nobody supervises, whose lock is ours now."""
        if not (folder / STATUS).exists():
            launch_supervisor(folder, lock)
            return Status(Phase.STARTING, 0, "")
        status = _status_or_none(folder)
        if status is not None and status.phase in FINISHED:
            return status
        left = end_leftovers(folder)
        lost = status or Status(Phase.LOST, 0, "")
        lost.phase, lost.reason, lost.finished_s = Phase.LOST, "supervisor_lost", now_s
        lost.message = _lost_message(lost.boot_id, last_words(folder), left)
        lost.cpu_frac = lost.memory_mib = None
        write_record(folder / STATUS, lost.to_record())
        return lost

    def _launch_if_free(self, folder: Path) -> None:
        lock = _take(folder)
        if lock is None:
            return
        try:
            if not (folder / STATUS).exists():
                launch_supervisor(folder, lock)
        finally:
            os.close(lock)

    @contextmanager
    def _only_one(self) -> Iterator[None]:
        """Let one process at a time start, settle or forget."""
        descriptor = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def _steps(self) -> Iterator[None]:
        """Turn what the file system says into our own errors."""
        try:
            yield
        except (OSError, subprocess.SubprocessError) as exc:
            what = getattr(exc, "strerror", None) or str(exc)
            raise ExecutorUnavailableError(f"the state of local jobs: {what}") from exc


def _take(folder: Path) -> int | None:
    """Return a descriptor that holds the attempt's lock, None where its supervisor has it."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _is_over(folder: Path) -> bool:
    """Return whether nothing of the attempt runs any more.

    A supervisor that told the end may hold its lock for some milliseconds still.
    """
    status = _status_or_none(folder)
    if status is not None and status.phase in FINISHED:
        return True
    lock = _take(folder)
    if lock is None:
        return False
    os.close(lock)
    return True


def _status_or_none(folder: Path) -> Status | None:
    try:
        return read_status(folder)
    except CorruptRecordError:
        return None


def _read_log(folder: Path, since: int, limit: int) -> LogChunk:
    status = _status_or_none(folder)
    with (folder / OUTPUT).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = min(since, size)
        data = os.pread(file.fileno(), min(limit, size - start), start)
    return LogChunk(data, start, size, truncated=bool(status and status.log_truncated))


def _lost_message(boot: str, words: str, left: int) -> str:
    cause = "The job's supervisor ended without a word"
    if words:
        cause = f"The job's supervisor failed ({words})"
    if boot and boot != procfs.boot_id():
        cause = "The machine was started anew while the job ran"
    end = f"{left} of its processes could not be ended." if left else "What was left was ended."
    return f"{cause}, so how the job ended is not known. {end}"
