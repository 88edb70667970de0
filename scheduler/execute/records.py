"""Small JSON files of executors: names of attempts, and writes that are whole or not at all."""

import errno
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scheduler.execute.base import ExecutorRejectedError

PAD_BYTES = 4096


class CorruptRecordError(Exception):
    """The file is there and is not the JSON object that it should be."""


def key_of(uid: str, attempt: int) -> str:
    """Return the name of an attempt's folder.

    Raises:
        ExecutorRejectedError: `uid` is not a UUID, or `attempt` is not a positive number.
    """
    try:
        safe = str(uuid.UUID(uid))
    except (ValueError, AttributeError, TypeError) as exc:
        raise ExecutorRejectedError("the job's uid is not a UUID") from exc
    if safe != uid or not 1 <= attempt < 10**9:
        raise ExecutorRejectedError("the job's uid or attempt is not in its normal form")
    return f"{safe}.{attempt:d}"


def parse_key(key: str) -> tuple[str, int] | None:
    """Return job and attempt of a folder's name, None where it is no such name."""
    uid, _, attempt = key.partition(".")
    if not (attempt.isascii() and attempt.isdecimal() and len(attempt) < 10):  # noqa: PLR2004
        return None
    try:
        return (uid, int(attempt)) if key_of(uid, int(attempt)) == key else None
    except ExecutorRejectedError:
        return None


def write_record(path: Path, value: Mapping[str, object], *, durable: bool = True) -> None:
    """Replace `path` by `value` in one step, mode 600; if `durable`, on disk before it is seen.

    On a full disk an existing file of the same size is overwritten in place: that needs no new
    block on most file systems, and a torn read is told from a whole one by its JSON.

    Raises:
        OSError: it could not be written either way.
    """
    raw = json.dumps(value, ensure_ascii=True).encode().ljust(PAD_BYTES)
    # One writer a file, except evict: a name of each process keeps two of those apart.
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _write_whole(fresh, raw, durable=durable)
        fresh.replace(path)
        if durable:
            _sync_folder(path.parent)
    except OSError:
        fresh.unlink(missing_ok=True)
        _overwrite(path, raw)


def read_record(path: Path) -> dict[str, Any] | None:
    """Return the object in `path`, None where there is no such file.

    Raises:
        CorruptRecordError: not JSON, or not an object.
        OSError: it can't be read.
    """
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError) as exc:
        raise CorruptRecordError(f"{path.name} is not JSON") from exc
    if not isinstance(value, dict):
        raise CorruptRecordError(f"{path.name} is not an object")
    return value


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`, however many calls it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _write_whole(path: Path, raw: bytes, *, durable: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, raw)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make the new name last: without it, power loss may bring the old file back."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _overwrite(path: Path, raw: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        if os.fstat(descriptor).st_size != len(raw):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write_all(descriptor, raw)
    finally:
        os.close(descriptor)
