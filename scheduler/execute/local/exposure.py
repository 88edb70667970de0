"""Shows a job's processes the interpreters that stand in folders which nobody else may enter.

Where root's Python stands below /root, a job of another user could not start it. Each replica then
gets a mount namespace of its own (mount_namespaces(7)), in which the closed folder is covered by an
empty one that holds only those interpreters, read-only. Nothing else of the closed folder is seen.
"""

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from scheduler.execute.local import mounts


def interpreter_folders() -> tuple[Path, ...]:
    """Return the folders that the running Python needs: its own, and of each link on the way."""
    found = [Path(sys.prefix), Path(sys.base_prefix)]
    link = Path(sys.executable)
    for _ in range(16):
        found.append(link.parent)
        if not link.is_symlink():
            break
        link = link.parent / link.readlink()
    return tuple(dict.fromkeys(Path(os.path.normpath(folder)) for folder in found))


def is_open(folder: Path) -> bool:
    """Return whether everybody may pass through `folder` and all above it."""
    return _closed_above(folder) is None


def closed_folders(wanted: Iterable[Path]) -> Mapping[Path, tuple[Path, ...]]:
    """Return, for each closed folder that must be covered, what of `wanted` lies in it."""
    found: dict[Path, tuple[Path, ...]] = {}
    for folder in sorted(set(wanted)):
        closed = _closed_above(folder)
        if closed is None or closed == folder or not folder.is_dir():
            continue
        inside = found.get(closed, ())
        if not any(folder.is_relative_to(other) for other in inside):
            found[closed] = (*inside, folder)
    return found


def expose(closed: Mapping[Path, tuple[Path, ...]]) -> None:
    """Cover each closed folder for this process and its children, showing only what is listed.

    Where the kernel forbids it (a container without CAP_SYS_ADMIN) everything stays as it was.
    """
    if not closed:
        return
    before = os.umask(0o022)
    with suppress(OSError):
        mounts.leave(mounts.CLONE_NEWNS)
        for folder, inside in closed.items():
            mounts.cover(folder, inside, read_only=True)
    os.umask(before)


def _closed_above(folder: Path) -> Path | None:
    """Return the topmost of `folder` and its parents that not everybody may pass through."""
    for path in [*reversed(folder.parents), folder]:
        with suppress(OSError):
            if not path.stat().st_mode & stat.S_IXOTH:
                return path
    return None
