"""Hides the portal's folders from jobs that run as the portal's own user.

Such a job has the portal's rights on every file. So each replica gets a user namespace and a mount
namespace of its own (user_namespaces(7)), in which those folders are covered by empty ones that
hold nothing but its work folder. From inside such a user namespace the kernel also refuses to
trace, or to look through /proc into, what runs outside of it, although its owner is the same.
"""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from scheduler.execute.local import mounts


def can_hide(folders: Iterable[Path], shown: Iterable[Path] = ()) -> bool:
    """Return whether this kernel lets us hide `folders`: it is tried, in a process of its own.

    Some forbid it to ordinary users, or allow only half of it.
    """
    folders, shown = tuple(folders), tuple(shown)
    try:
        subprocess.run(
            ["/bin/sh", "-c", "exit 0"],
            stdin=subprocess.DEVNULL,
            env={},
            timeout=10.0,
            check=True,
            preexec_fn=lambda: hide(folders, shown),
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def hide(folders: Iterable[Path], shown: Iterable[Path]) -> None:
    """Cover `folders` for this process and its children, but for what of `shown` lies in them.

    Raises:
        OSError: the kernel forbids it; this process is not usable any more.
    """
    here = Path.cwd()
    kept = [_real(path) for path in shown if path.is_dir()]
    mounts.leave(mounts.CLONE_NEWUSER | mounts.CLONE_NEWNS)
    before = os.umask(0o022)
    for folder in mounts.outermost(_real(path) for path in folders if path.is_dir()):
        inside = mounts.outermost(path for path in kept if path.is_relative_to(folder))
        mounts.cover(folder, inside, read_only=False)
    os.umask(before)
    # Until now we stand in the folder as it was, and `..` would lead to what lies beside it.
    os.chdir(here)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
