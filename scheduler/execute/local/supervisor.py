"""The supervisor of one attempt: a process of its own, which outlives the portal.

It holds the attempt's lock for its whole life, starts the replicas, keeps their output, watches
limits, and writes status.json. Nothing is decided by the wall clock, which may step back.

    python -m scheduler.execute.local.supervisor FOLDER
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from scheduler.execute.base import Phase
from scheduler.execute.local import procfs, spawn
from scheduler.execute.local.checkpoints import newest_checkpoint_s
from scheduler.execute.local.cores import choose_cores, keep_to_cores
from scheduler.execute.local.output import Output
from scheduler.execute.local.spec import EVICT, OUTPUT, STATUS, Spec, read_spec
from scheduler.execute.local.status import Status, Verdict, exit_code_of, verdict_of_exit
from scheduler.execute.local.usage import Meter, ended_children_s, resident_mib
from scheduler.execute.records import CorruptRecordError, read_record, write_record

TICK_S = 0.25
PUBLISH_EVERY_S = 2.0
LOOK_EVERY_S = 5.0
"""For a checkpoint: far more often than one is worth writing."""
READ_BYTES = 65536
END_USER_TRIES = 10
STUCK_AFTER_S = 30.0
"""After SIGKILL only a process inside the kernel (state D) can be left; we do not wait for ever."""


class Supervisor:
    """Runs one attempt from start to end."""

    def __init__(self, folder: Path, spec: Spec, *, wall_s: Callable[[], float]) -> None:
        """Prepare; nothing is started yet.

        Args:
            folder: the attempt's.
            spec: what to run.
            wall_s: the wall clock, for times that people read.
        """
        self._folder = folder
        self._spec = spec
        self._wall_s = wall_s
        self._status = Status(Phase.STARTING, os.getpid(), procfs.boot_id())
        self._selector = selectors.DefaultSelector()
        self._leaders: set[int] = set()
        self._running: dict[int, int] = {}
        self._verdict: Verdict | None = None
        self._kill_at_s = float("inf")
        self._deadline_s = float("inf")
        self._told_to_stop = False
        self._unsaved = False
        self._published_s = self._looked_s = float("-inf")
        self._meter = Meter(now_s=time.monotonic(), ended_s=ended_children_s())
        many = len(spec.binding.replicas) > 1
        self._output = Output(folder / OUTPUT, cap_bytes=spec.log_cap_bytes, prefixed=many)

    def run(self) -> None:
        """Start all replicas, wait for the end of everything below us, and say how it ended."""
        self._publish()
        self._listen_to_signals()
        self._read_eviction()
        if self._verdict is None:
            self._start()
        while self._turn():
            pass
        self._kill_unseen()
        self._drain()
        self._finish()

    def stop(self) -> None:
        """End the attempt because this machine, or somebody on it, stops the supervisor."""
        self._told_to_stop = True

    def _start(self) -> None:
        spec = self._spec
        try:
            self._status.cores = choose_cores(self._folder.parent, spawn.wanted_cores(spec))
            argv = spawn.argv_of(spec)
            for each in spec.binding.replicas:
                started = spawn.start_replica(spec, each, argv, self._status.cores)
                self._leaders.add(started.pid)
                self._running[started.pid] = started.index
                self._selector.register(started.pipe, selectors.EVENT_READ, started.index)
        except (OSError, subprocess.SubprocessError) as exc:
            message = f"The job could not be started: {exc}."
            self._end(Verdict(Phase.FAILED, "start_failed", message), grace_s=0.0)
            return
        self._deadline_s = time.monotonic() + spec.binding.time_limit_s
        self._status.phase = Phase.RUNNING
        self._status.started_s = self._wall_s()
        self._publish()

    def _turn(self) -> bool:
        """Do one round of everything; return whether there is more to wait for."""
        self._read_output(TICK_S)
        self._note_ends()
        now_s = time.monotonic()
        known = procfs.descendants(os.getpid())
        self._reap(known)
        below = [each for each in known if each.is_alive]
        self._measure(below, now_s)
        keep_to_cores(below, self._status.cores)
        self._check(now_s)
        if not self._running and self._verdict is None:
            self._end(Verdict(Phase.SUCCEEDED, "", "", 0), grace_s=0.0)
        if now_s >= self._kill_at_s:
            self._kill(below)
        if now_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = now_s
            self._look_for_checkpoint()
        if now_s - self._published_s >= PUBLISH_EVERY_S:
            self._output.flush()
            self._publish()
        stuck = now_s > self._kill_at_s + STUCK_AFTER_S
        return not stuck and bool(self._running or below or self._verdict is None)

    def _check(self, now_s: float) -> None:
        limits = self._spec.binding
        if now_s >= self._deadline_s:
            message = f"The job reached its time limit of {limits.time_limit_s:g} s."
            verdict = Verdict(Phase.TIMED_OUT, "time_limit", message)
            self._end(verdict, grace_s=limits.grace_s)
        if self._told_to_stop:
            message = "The job's supervisor was told to stop, as when a machine shuts down."
            self._end(Verdict(Phase.LOST, "node_lost", message), grace_s=min(limits.grace_s, 5.0))
        self._read_eviction()

    def _read_eviction(self) -> None:
        try:
            record = read_record(self._folder / EVICT)
        except (CorruptRecordError, OSError):
            record = {}
        if record is None:
            return
        grace = record.get("grace_s")
        grace_s = float(grace) if isinstance(grace, int | float) else self._spec.binding.grace_s
        why = record.get("reason")
        message = f"The job was ended on request ({why})." if why else "The job was ended."
        self._end(Verdict(Phase.CANCELLED, "cancelled", message), grace_s=grace_s)

    def _end(self, verdict: Verdict, *, grace_s: float) -> None:
        """Let the first verdict stand; a later one can only make the end come sooner."""
        at_s = time.monotonic() + max(0.0, grace_s)
        if self._verdict is None:
            self._verdict = verdict
            self._kill_at_s = at_s
            below = [each.pid for each in procfs.descendants(os.getpid())]
            procfs.send(below, signal.SIGTERM)
            procfs.send(below, signal.SIGCONT)
        self._kill_at_s = min(self._kill_at_s, at_s)

    def _kill(self, below: list[procfs.Process]) -> None:
        procfs.end_groups([*self._leaders, *(each.group for each in below)])
        procfs.send((each.pid for each in below), signal.SIGKILL)

    def _kill_unseen(self) -> None:
        """Kill what no look at the process table can catch, and reap all that has ended."""
        procfs.end_groups(self._leaders)
        user = self._spec.user
        if user and user.private:
            any(procfs.end_user(user.uid) for _ in range(END_USER_TRIES))
        until_s = time.monotonic() + 2.0
        with suppress(ChildProcessError):
            while time.monotonic() < until_s:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    time.sleep(0.005)

    def _measure(self, below: list[procfs.Process], now_s: float) -> None:
        self._meter.update(below, now_s=now_s, ended_s=ended_children_s())
        limit_mib = self._spec.binding.memory_mib * len(self._spec.binding.replicas)
        used_mib = resident_mib(below, limit_mib=limit_mib)
        self._status.cpu_frac = self._meter.cpu_frac
        self._status.memory_mib = used_mib
        if used_mib > limit_mib:
            message = f"The job used {used_mib} MiB of memory; its limit is {limit_mib} MiB."
            self._end(Verdict(Phase.FAILED, "memory_limit", message), grace_s=0.0)

    def _look_for_checkpoint(self) -> None:
        """Note the newest one; a file may bear any time, but none was written after now."""
        newest_s = newest_checkpoint_s(self._spec.work)
        self._status.checkpointed_s = None if newest_s is None else min(newest_s, self._wall_s())

    def _note_ends(self) -> None:
        """See which replicas ended, and leave them unreaped: so their group's id stays theirs."""
        for pid in list(self._running):
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                self._replica_ended(self._running.pop(pid), exit_code_of(ended))

    def _reap(self, below: list[procfs.Process]) -> None:
        """Take note of ended processes that came to us because their parents had gone."""
        for each in below:
            if each.parent == os.getpid() and not each.is_alive and each.pid not in self._leaders:
                with suppress(ChildProcessError):
                    os.waitpid(each.pid, os.WNOHANG)

    def _replica_ended(self, replica: int, code: int) -> None:
        self._status.exit_codes[str(replica)] = code
        many = len(self._spec.binding.replicas) > 1
        if code == 0:
            return
        if self._status.exit_code is None:
            self._status.exit_code = code
        if self._verdict is not None:
            return  # asked to end; what it started may still use its grace
        grace_s = self._spec.binding.grace_s if self._running else 0.0
        self._end(verdict_of_exit(replica, code, of_many=many), grace_s=grace_s)

    def _read_output(self, timeout_s: float) -> None:
        """Keep output for `timeout_s`, or until a signal comes."""
        until_s = time.monotonic() + timeout_s
        left_s, signalled = timeout_s, False
        while left_s > 0 and not signalled:
            signalled = self._read_ready(left_s)
            left_s = until_s - time.monotonic()

    def _read_ready(self, timeout_s: float) -> bool:
        """Wait for output and keep a piece of each replica's; return whether a signal came."""
        signalled = False
        for key, _ in self._selector.select(timeout_s):
            data = os.read(key.fd, READ_BYTES)
            if key.data is None:
                signalled = True
            elif data:
                self._output.write(key.data, data)
            else:
                self._selector.unregister(key.fd)
                os.close(key.fd)
        return signalled

    def _drain(self) -> None:
        """Read what stands in the pipes; a stranger that holds one open can't delay us long."""
        until_s = time.monotonic() + 2.0
        while len(self._selector.get_map()) > 1 and time.monotonic() < until_s:
            self._read_ready(0.1)
        self._output.close()

    def _finish(self) -> None:
        verdict = self._verdict or Verdict(Phase.LOST, "supervisor_lost", "")
        status = self._status
        left = [each for each in procfs.descendants(os.getpid()) if each.is_alive]
        status.phase, status.reason, status.message = verdict.phase, verdict.reason, verdict.message
        if left:
            status.message += f" {len(left)} of its processes could not be ended."
        if self._output.error:
            status.message += f" Some of its output was lost: {self._output.error}."
        status.message = status.message.strip()
        if status.exit_code is None:
            status.exit_code = verdict.exit_code
        status.finished_s = self._wall_s()
        self._look_for_checkpoint()
        status.cpu_frac = status.memory_mib = None
        self._publish()
        while self._unsaved and self._folder.is_dir():
            # Nobody else knows how it ended: wait for room on the disk.
            time.sleep(1.0)
            self._publish()

    def _publish(self) -> None:
        self._published_s = time.monotonic()
        self._status.log_truncated = self._output.truncated
        self._status.log_error = self._output.error
        try:
            # What says that it began, or ended, must outlast a power cut; figures need not.
            durable = self._status.phase is not Phase.RUNNING
            write_record(self._folder / STATUS, self._status.to_record(), durable=durable)
        except OSError:
            self._unsaved = True
        else:
            self._unsaved = False

    def _listen_to_signals(self) -> None:
        read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        self._selector.register(read_end, selectors.EVENT_READ, None)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self.stop())
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)


def supervise(folder: Path, *, wall_s: Callable[[], float]) -> None:
    """Run the attempt in `folder`, unless it was begun before."""
    if (folder / STATUS).exists():
        return
    spawn.become_subreaper()
    try:
        spec = read_spec(folder)
    except (CorruptRecordError, OSError) as exc:
        status = Status(Phase.FAILED, os.getpid(), procfs.boot_id(), reason="start_failed")
        status.message = f"The job could not be started: {exc}."
        status.finished_s = wall_s()
        write_record(folder / STATUS, status.to_record())
        return
    Supervisor(folder, spec, wall_s=wall_s).run()


def main(arguments: list[str]) -> int:
    """Run as a process; return its exit code."""
    folder = Path(arguments[0]).resolve(strict=True)
    os.chdir("/")
    os.umask(0o077)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    # Only the process's edge reads the wall clock.
    supervise(folder, wall_s=time.time)  # noqa: TID251
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
