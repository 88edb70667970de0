"""Files that somebody names on a command line: which of them is wrong, and early."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from django.core.management.base import CommandError

from scheduler.simulate.errors import TraceError


def writable(path: Path) -> None:
    """Raise CommandError where a file cannot be written; what it holds stays as it is."""
    there = path.exists() or path.is_symlink()
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as wrong:
        raise CommandError(f"cannot write {path}: {wrong.strerror}") from wrong
    if not there:
        path.unlink()


def apart(writes: Iterable[Path], reads: Iterable[Path]) -> None:
    """Raise CommandError where a file is to be written twice, or over one that is read.

    Files are the same under any name, also by a link. Devices and pipes take all that comes.
    """
    read, written = {_identity(path) for path in reads}, set[object]()
    for path in writes:
        one = _identity(path)
        if path.exists() and not path.is_file():
            continue
        if one in read:
            raise CommandError(f"{path} is read, and an answer would overwrite it")
        if one in written:
            raise CommandError(f"{path} is to hold two answers, of which one would be lost")
        written.add(one)


def _identity(path: Path) -> object:
    """Return what two names of one file have in common."""
    try:
        there = path.stat()
    except OSError:  # it is still to be written, or cannot be: that is said elsewhere
        return os.path.realpath(path)
    return there.st_dev, there.st_ino


@contextmanager
def text_of(path: Path) -> Iterator[TextIO]:
    """Open a file that somebody names, and say which it is where it is no text.

    A byte order mark before it, as some editors write, is none of it.

    Raises:
        TraceError: it is not UTF-8.
    """
    with path.open(encoding="utf-8-sig", newline="") as lines:
        try:
            yield lines
        except UnicodeDecodeError as wrong:
            there = wrong.object[wrong.start : wrong.start + 8]
            raise TraceError(str(path), 0, "", there, "is no UTF-8") from wrong
