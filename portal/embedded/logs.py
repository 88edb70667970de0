"""The children's log files: mode 600, bounded in size."""

import os
import shutil
from pathlib import Path
from typing import IO

CAP_BYTES = 16 * 1024 * 1024


def open_log(path: Path) -> IO[bytes]:
    """Open a log for appending; only its owner may read it."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "ab", buffering=0)


def cap(path: Path, limit_bytes: int = CAP_BYTES) -> None:
    """Move a log that has grown past the limit aside, replacing the one moved before.

    The child keeps its descriptor, so the file is copied and emptied; it appends, so what it
    writes next lands at the new start. Lines written between the two steps are lost.
    """
    if not path.exists() or path.stat().st_size <= limit_bytes:
        return
    older = path.with_suffix(".1.log")
    with path.open("rb") as grown, open_log(older) as kept:
        kept.truncate(0)
        grown.seek(-limit_bytes, os.SEEK_END)
        shutil.copyfileobj(grown, kept)
    os.truncate(path, 0)


def tail(path: Path, size_bytes: int = 4000) -> str:
    """Return the end of a log, empty where there is none."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - size_bytes))
        return file.read(size_bytes).decode(errors="replace")
