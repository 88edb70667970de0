"""Records are whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from scheduler.execute import records
from scheduler.execute.base import ExecutorRejectedError
from scheduler.execute.records import (
    CorruptRecordError,
    key_of,
    parse_key,
    read_record,
    write_record,
)

UID = "0b5e7a52-6f0e-4d8e-9d2c-3f1f0c9d8e7a"


def test_a_record_is_read_as_written_and_only_by_us(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_record(path, {"a": "é\n\0"})
    assert read_record(path) == {"a": "é\n\0"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["r.json"]


def test_a_missing_record_is_none(tmp_path: Path) -> None:
    assert read_record(tmp_path / "none.json") is None


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", "\0\0", "\udcff", '{"a": NaN'])
def test_a_damaged_record_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(CorruptRecordError):
        read_record(path)


def test_on_a_full_disk_the_old_record_is_overwritten_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    write_record(path, {"n": 1})
    before = path.stat().st_ino

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(records, "_write_whole", full)
    write_record(path, {"n": 2})
    assert read_record(path) == {"n": 2}
    assert path.stat().st_ino == before
    with pytest.raises(OSError, match="No such file"):
        write_record(tmp_path / "new.json", {"n": 3})


def test_a_failed_write_leaves_the_old_record_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    write_record(path, {"n": 1})

    def failing(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    monkeypatch.setattr(records, "_overwrite", failing)
    with pytest.raises(OSError, match="Input/output"):
        write_record(path, {"n": 2})
    assert read_record(path) == {"n": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["r.json"]


def test_names_of_attempts_go_there_and_back() -> None:
    assert key_of(UID, 12) == f"{UID}.12"
    assert parse_key(f"{UID}.12") == (UID, 12)


@pytest.mark.parametrize("key", ["", UID, f"{UID}.", f"{UID}.0", f"{UID}.01", f"{UID}.１", "x.1"])
def test_other_names_are_no_attempts(key: str) -> None:
    assert parse_key(key) is None


def test_a_uid_must_be_a_uuid_in_normal_form() -> None:
    with pytest.raises(ExecutorRejectedError):
        key_of(UID.replace("-", ""), 1)
