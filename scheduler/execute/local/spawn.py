"""Starts one replica: session, user, limits and pipe of its own."""

import ctypes
import math
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from scheduler.execute.base import ReplicaBinding
from scheduler.execute.local.environment import replica_environment
from scheduler.execute.local.exposure import closed_folders, expose
from scheduler.execute.local.hiding import can_hide, hide
from scheduler.execute.local.spec import INLINE_COMMAND_MAX_BYTES, Spec
from scheduler.execute.local.users import device_groups
from scheduler.execute.records import write_all

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
NICENESS = 5
PROCESSES_MAX = 16384
SIGKILLED_CODE = 137
IGNORED_ABOVE = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGPIPE)
"""What the supervisor, or the shell that started it, ignores would be ignored by the job too."""
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Replica:
    """A started replica.

    Attributes:
        index: its number.
        pid: of its shell, which leads a session of its own.
        pipe: where its output and errors come out.
    """

    index: int
    pid: int
    pipe: int


def become_subreaper() -> None:
    """Make what forks away below this process its child, not init's (prctl(2)).

    Raises:
        OSError: the kernel refused.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def argv_of(spec: Spec) -> list[str]:
    """Return the shell and its command; a long command goes by a script in the work folder.

    Raises:
        OSError: the script can't be written.
    """
    raw = spec.binding.command.encode()
    if len(raw) <= INLINE_COMMAND_MAX_BYTES:
        return ["/bin/sh", "-c", spec.binding.command]
    script = spec.work / f".kilter-command-{spec.binding.attempt}.sh"
    script.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(script, flags, 0o400)
    try:
        write_all(descriptor, raw)
        if spec.user:
            os.fchown(descriptor, spec.user.uid, spec.user.gid)
    finally:
        os.close(descriptor)
    return ["/bin/sh", str(script)]


def start_replica(
    spec: Spec, replica: ReplicaBinding, argv: Sequence[str], cores: Sequence[int]
) -> Replica:
    """Start one replica and return it.

    Raises:
        OSError: it could not be started.
        subprocess.SubprocessError: its limits could not be set.
    """
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    try:
        pid = _popen(spec, replica, argv, cores, write_end)
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    os.set_blocking(read_end, False)
    _prefer_for_oom(pid)
    return Replica(replica.index, pid, read_end)


def _popen(
    spec: Spec, replica: ReplicaBinding, argv: Sequence[str], cores: Sequence[int], output: int
) -> int:
    environment = replica_environment(spec.binding, replica, home=str(spec.work), path=spec.path)
    process = subprocess.Popen(
        argv,
        env=environment,
        cwd=spec.work,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        umask=0o077,
        preexec_fn=_limiter(spec, replica, os.getpid(), cores),  # noqa: PLW1509 - the supervisor has one thread
    )
    # The supervisor reaps every child by itself; Popen must not warn that it did not.
    process.returncode = 0
    return process.pid


def _limiter(
    spec: Spec, replica: ReplicaBinding, parent: int, cores: Sequence[int]
) -> Callable[[], None]:
    """Return what the child does last before it becomes the shell."""
    processes = processes_max()
    user = spec.user
    closed = closed_folders(spec.shown) if user else {}
    shown = (spec.work, *spec.shown)
    hidden = spec.hidden if not user and can_hide(spec.hidden, shown) else ()
    groups = device_groups(replica.vendor) if replica.device_indices else []

    def limit() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number in IGNORED_ABOVE:
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        os.sched_setaffinity(0, cores)
        os.nice(NICENESS)
        if user:
            expose(closed)
            os.setgroups(groups)
            os.setresgid(user.gid, user.gid, user.gid)
            os.setresuid(user.uid, user.uid, user.uid)
        elif hidden:
            hide(hidden, shown)
        _prctl(PR_SET_NO_NEW_PRIVS, 1)
        # A change of user clears this one, so it comes last.
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(SIGKILLED_CODE)

    return limit


def processes_max() -> int:
    """Return how many processes and threads a job may have.

    A quarter of what the machine can number leaves it usable while a few jobs fork without end.
    """
    machine = int(Path("/proc/sys/kernel/pid_max").read_text("ascii"))
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    own = PROCESSES_MAX if hard == resource.RLIM_INFINITY else hard
    return max(1, min(own, PROCESSES_MAX, machine // 4))


def wanted_cores(spec: Spec) -> int:
    """Return how many cores the attempt's replicas may use together, at least 1."""
    return max(1, math.ceil(spec.binding.cpu_milli * len(spec.binding.replicas) / 1000))


def _prefer_for_oom(pid: int) -> None:
    """Out of memory, the kernel should end jobs, not the portal."""
    with suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000", "ascii")


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
