"""Files that somebody names on a command line: which of them is wrong, and early."""

from collections.abc import Iterator
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


@contextmanager
def text_of(path: Path) -> Iterator[TextIO]:
    """Open a file that somebody names, and say which it is where it is no text.

    Raises:
        TraceError: it is not UTF-8.
    """
    with path.open(encoding="utf-8", newline="") as lines:
        try:
            yield lines
        except UnicodeDecodeError as wrong:
            there = wrong.object[wrong.start : wrong.start + 8]
            raise TraceError(str(path), 0, "", there, "is no UTF-8") from wrong
