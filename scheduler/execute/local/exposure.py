"""Shows a job's processes the interpreters that stand in folders which nobody else may enter.

Where root's Python stands below /root, a job of another user could not start it. Each replica then
gets a mount namespace of its own (mount_namespaces(7)), in which the closed folder is covered by an
empty one that holds only those interpreters, read-only. Nothing else of the closed folder is seen.
"""

import ctypes
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

CLONE_NEWNS = 0x00020000
MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
_LIBC = ctypes.CDLL(None, use_errno=True)


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
    if not closed or _LIBC.unshare(CLONE_NEWNS) != 0:
        return
    before = os.umask(0o022)
    with suppress(OSError):
        _mount(None, Path("/"), None, MS_REC | MS_PRIVATE)
        for folder, inside in closed.items():
            _cover(folder, inside)
    os.umask(before)


def _cover(folder: Path, inside: Iterable[Path]) -> None:
    kept = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in inside]
    _mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0711,size=1m")
    for path, descriptor in kept:
        path.mkdir(parents=True)
        _mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND)
        _mount(None, path, None, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)
        os.close(descriptor)


def _closed_above(folder: Path) -> Path | None:
    """Return the topmost of `folder` and its parents that not everybody may pass through."""
    for path in [*reversed(folder.parents), folder]:
        with suppress(OSError):
            if not path.stat().st_mode & stat.S_IXOTH:
                return path
    return None


def _mount(source: str | None, target: Path, kind: str | None, flags: int, data: str = "") -> None:
    values = [text.encode() if text else None for text in (source, str(target), kind, data)]
    if _LIBC.mount(values[0], values[1], values[2], ctypes.c_ulong(flags), values[3]) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
