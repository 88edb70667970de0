"""What is left of an attempt whose supervisor is gone, or was made to stand still."""

import signal
import time
from pathlib import Path

from scheduler.execute.local import procfs
from scheduler.execute.local.launch import ERRORS
from scheduler.execute.local.spec import EVICT, read_spec
from scheduler.execute.local.users import JobUser
from scheduler.execute.records import CorruptRecordError, parse_key

SETTLE_S = 5.0


def end_leftovers(folder: Path) -> int:
    """Kill what is left of the attempt in `folder`; return how many processes remain."""
    user = _private_user(folder)
    until_s = time.monotonic() + SETTLE_S
    left = _leftovers(folder, user)
    while left and time.monotonic() < until_s:
        procfs.send(left, signal.SIGKILL)
        if user is not None:
            procfs.end_user(user.uid)
        time.sleep(0.02)
        left = _leftovers(folder, user)
    return len(left)


def wake(pid: int, folder: Path) -> None:
    """Let the supervisor go on if it was stopped, which a job of the same user can do.

    It watches limits and wishes. One that was to end its job and is stopped still is ended itself:
    what it leaves is then settled like that of any other that is gone.
    """
    found = procfs.read_process(pid)
    if found is not None and found.state in "Tt":
        procfs.send([pid], signal.SIGKILL if (folder / EVICT).exists() else signal.SIGCONT)


def last_words(folder: Path) -> str:
    """Return the last line that the supervisor complained of, "" where there is none."""
    try:
        lines = (folder / ERRORS).read_bytes()[-4096:].decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")


def _leftovers(folder: Path, user: JobUser | None) -> list[int]:
    """Return processes by their own user where they have one, and by the mark they were given."""
    parsed = parse_key(folder.name)
    if parsed is None:
        return []
    marks = (f"KILTER_JOB_ID={parsed[0]}".encode(), f"KILTER_ATTEMPT={parsed[1]}".encode())
    found = set(procfs.marked(marks))
    if user is not None:
        found.update(procfs.owned_by(user.uid))
    return sorted(found)


def _private_user(folder: Path) -> JobUser | None:
    try:
        user = read_spec(folder).user
    except CorruptRecordError:
        return None
    return user if user and user.private else None
