"""Processes of this machine, read from /proc (proc(5)): who descends from whom, and signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table.

    Attributes:
        pid, parent, group: ids; `group` is the process group.
        state: R, S, D, T, Z, ...
        cpu_ticks: user and system time, its own and that of children it took note of the end of,
            in clock ticks.
        start_ticks: start since boot, in clock ticks; with pid it names one process.
        rss_bytes: resident memory, shared pages counted in full.
    """

    pid: int
    parent: int
    group: int
    state: str
    cpu_ticks: int
    start_ticks: int
    rss_bytes: int

    @property
    def is_alive(self) -> bool:
        """Return whether it has not ended; one that has waits for its parent to take note."""
        return self.state not in "ZX"


def boot_id() -> str:
    """Return the id of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def read_process(pid: int) -> Process | None:
    """Return the process, None where there is none."""
    try:
        raw = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name stands in brackets and may hold spaces and brackets itself.
    fields = raw[raw.rfind(b")") + 2 :].split()
    return Process(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        state=fields[0].decode(),
        cpu_ticks=sum(map(int, fields[11:15])),
        start_ticks=int(fields[19]),
        rss_bytes=int(fields[21]) * PAGE_BYTES,
    )


def pids() -> list[int]:
    """Return all process ids, in order."""
    return sorted(int(name) for name in os.listdir("/proc") if name.isdecimal())  # noqa: PTH208 - often


def descendants(root: int) -> list[Process]:
    """Return the processes below `root`, ended ones too, in order of pid.

    Who forks and exits in turn may be missed: an empty answer is no proof that nothing is left.
    """
    children: dict[int, list[Process]] = {}
    for process in filter(None, map(read_process, pids())):
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = list(children.get(root, ()))
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting.extend(children.get(process.pid, ()))
    return sorted(found, key=lambda process: process.pid)


def owned_by(uid: int) -> list[int]:
    """Return the living processes whose real user is `uid`."""
    found = []
    for pid in pids():
        with suppress(OSError):
            if _status_uid(pid) == uid and _is_alive(pid):
                found.append(pid)
    return found


def marked(marks: Collection[bytes]) -> list[int]:
    """Return the living processes whose first environment holds every one of `marks`."""
    found = []
    for pid in pids():
        with suppress(OSError):
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if set(marks) <= set(variables) and _is_alive(pid):
                found.append(pid)
    return found


def pss_bytes(pid: int) -> int | None:
    """Return resident memory with shared pages divided among their users, None where unknown."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * 1024
    return None


def send(targets: Iterable[int], number: signal.Signals) -> None:
    """Signal each of them; who has gone is passed over."""
    for pid in targets:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def end_groups(groups: Iterable[int]) -> None:
    """Kill process groups, but never our own.

    The kernel signals a group as a whole: who forks and exits in turn can't slip through.
    """
    for group in set(groups) - {0, os.getpgrp()}:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def end_user(uid: int) -> bool:
    """Kill all processes of a user that only one job has; return whether that was done.

    By kill(2) to -1 as that user, which the kernel does as a whole: afterwards none of them can
    fork any more. Only root can, and it fails where the job kills the messenger first.
    """
    code = "import os,sys; u = int(sys.argv[1]); os.setresuid(u, u, u); os.kill(-1, 9)"
    argv = [sys.executable, "-S", "-E", "-c", code, str(uid)]
    done = subprocess.run(argv, check=False, capture_output=True, env={}, cwd="/", timeout=10.0)
    return done.returncode == 0


def _status_uid(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_bytes().splitlines():
        if line.startswith(b"Uid:"):
            return int(line.split()[1])
    return -1


def _is_alive(pid: int) -> bool:
    process = read_process(pid)
    return process is not None and process.is_alive
