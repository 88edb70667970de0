"""Options of the local executor, checked."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scheduler.execute.base import ExecutorRejectedError

LOG_CAP_BYTES = 64 * 1024 * 1024


def parse_options(options: Mapping[str, object]) -> dict[str, Any]:
    """Return the options in the executor's own types; those left out, or None, stay out.

    Raises:
        ExecutorRejectedError: one is unknown, missing or of the wrong kind.
    """
    given = {name: value for name, value in options.items() if value is not None}
    unknown = given.keys() - _PARSERS.keys()
    if unknown:
        raise ExecutorRejectedError(f"unknown option {min(unknown)!r}")
    if "folder" not in given:
        raise ExecutorRejectedError("the local executor needs the option 'folder'")
    return {name: _PARSERS[name](name, value) for name, value in given.items()}


def _folder(name: str, value: object) -> Path:
    if not isinstance(value, str | Path) or not str(value):
        raise ExecutorRejectedError(f"the option {name!r} must be a folder")
    return Path(value).absolute()


def _folders(name: str, value: object) -> tuple[Path, ...]:
    if not isinstance(value, tuple | list):
        raise ExecutorRejectedError(f"the option {name!r} must be a list of folders")
    return tuple(_folder(name, each) for each in value)


def _size(name: str, value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ExecutorRejectedError(f"the option {name!r} must be a number of bytes")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ExecutorRejectedError(f"the option {name!r} must be a text")
    return value


_PARSERS: Mapping[str, Callable[[str, object], object]] = {
    "folder": _folder,
    "log_cap_bytes": _size,
    "run_as": _text,
    "path": _text,
    "work": _folder,
    "shown": _folders,
    "hidden": _folders,
}
