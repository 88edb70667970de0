"""What a job's processes see of the file system: mount namespaces (mount_namespaces(7))."""

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
_LIBC = ctypes.CDLL(None, use_errno=True)


def leave(namespaces: int) -> None:
    """Give this process namespaces of its own, which nothing that it mounts leaves.

    Raises:
        OSError: the kernel forbids it.
    """
    uid, gid = os.geteuid(), os.getegid()
    if _LIBC.unshare(namespaces) != 0:
        raise _last_error()
    if namespaces & CLONE_NEWUSER:
        # Everybody keeps the numbers that they had; the kernel wants this order.
        for name, text in (
            ("uid_map", f"{uid} {uid} 1"),
            ("setgroups", "deny"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            Path("/proc/self", name).write_text(text, "ascii")
    _mount(None, Path("/"), None, MS_REC | MS_PRIVATE)


def cover(folder: Path, shown: Iterable[Path], *, read_only: bool) -> None:
    """Cover `folder` by an empty one, in which only what is `shown` can be seen.

    Raises:
        OSError: the kernel forbids it.
    """
    kept = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in shown]
    _mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0711,size=1m")
    for path, descriptor in kept:
        path.mkdir(parents=True)
        _mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND)
        if read_only:
            flags = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV
            _mount(None, path, None, flags)
        os.close(descriptor)


def outermost(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that lie in none of the others, in order."""
    found: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(other) for other in found):
            found.append(path)
    return found


def _mount(source: str | None, target: Path, kind: str | None, flags: int, data: str = "") -> None:
    texts = (source, str(target), kind, data)
    values = [os.fsencode(text) if text else None for text in texts]
    if _LIBC.mount(values[0], values[1], values[2], ctypes.c_ulong(flags), values[3]) != 0:
        raise _last_error()


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
