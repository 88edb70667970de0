"""What a benchmark was told to read: what cannot be read ends in one sentence, with exit code 2."""

from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scheduler.simulate.errors import InvalidSimulationError, TraceError

UNREADABLE = (OSError, TraceError, InvalidSimulationError)
"""A file that cannot be read, a trace that is none, jobs that cannot be simulated."""


@contextmanager
def refused(parser: ArgumentParser) -> Iterator[None]:
    """Answer what is unreadable inside as a mistake of the command line."""
    try:
        yield
    except UNREADABLE as broken:
        parser.error(str(broken))


def text_of(path: Path) -> str:
    """Return what a file says.

    Raises:
        TraceError: it is no text.
        OSError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as broken:
        raise TraceError(str(path), 0, "", broken.reason, "is no text in UTF-8") from broken


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file; raises as `text_of`."""
    return text_of(path).splitlines()
