import os
import stat
from multiprocessing.pool import ThreadPool
from pathlib import Path

import pytest

from portal.embedded import addresses


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_data_folder_is_absolute_and_defaults_to_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert addresses.data_folder({}) == addresses.PROJECT / "data"
    assert addresses.data_folder({"KILTER_DATA": ""}) == addresses.PROJECT / "data"
    assert addresses.data_folder({"KILTER_DATA": "here"}) == tmp_path / "here"


def test_a_secret_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    first = addresses.secret(folder, "key")
    assert len(first) >= 48
    assert addresses.secret(folder, "key") == first
    assert addresses.secret(folder, "other") != first
    assert mode(folder / "secrets" / "key") == 0o600
    assert mode(folder / "secrets") == 0o700
    assert mode(folder) == 0o700
    assert sorted(path.name for path in (folder / "secrets").iterdir()) == ["key", "other"]


def test_processes_that_start_together_read_the_same_secret(tmp_path: Path) -> None:
    with ThreadPool(8) as pool:
        found = pool.map(lambda _: addresses.secret(tmp_path, "key"), range(32))
    assert len(set(found)) == 1


def test_a_secret_that_others_could_read_is_closed_again(tmp_path: Path) -> None:
    addresses.secret(tmp_path, "key")
    path = tmp_path / "secrets" / "key"
    path.chmod(0o644)
    addresses.secret(tmp_path, "key")
    assert mode(path) == 0o600


def test_an_empty_secret_is_not_taken_for_one(tmp_path: Path) -> None:
    addresses.secret(tmp_path, "key")
    (tmp_path / "secrets" / "key").write_text("\n")
    with pytest.raises(addresses.FolderError, match="is empty"):
        addresses.secret(tmp_path, "key")


def test_a_data_folder_that_is_a_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(addresses.FolderError, match=r"data.*KILTER_DATA"):
        addresses.secret(tmp_path / "data", "key")


def test_a_long_path_gets_a_short_folder_for_its_sockets(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    run = addresses.run_folder(folder)
    assert run == addresses.run_folder(folder)
    assert run != addresses.run_folder(tmp_path / ("y" * 120))
    assert len(os.fsencode(run / addresses.LONGEST_SOCKET)) <= 107
    assert addresses.run_folder(tmp_path) == tmp_path / "run"


def test_a_short_folder_in_other_hands_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    run = addresses.run_folder(folder)
    run.mkdir(mode=0o700)
    try:
        assert addresses.run_folder(folder) == run
        run.chmod(0o755)
        with pytest.raises(addresses.FolderError, match="open to others"):
            addresses.run_folder(folder)
    finally:
        run.rmdir()
    run.symlink_to(tmp_path)
    try:
        with pytest.raises(addresses.FolderError, match="another user"):
            addresses.run_folder(folder)
    finally:
        run.unlink()


def test_celery_reads_unix_sockets_under_its_own_name() -> None:
    assert addresses.celery_url("redis://h:1/2") == "redis://h:1/2"
    assert (
        addresses.celery_url("unix://:p%2Fw@/a%20b/valkey.sock?db=3")
        == "redis+socket://:p%2Fw@/a%20b/valkey.sock?virtual_host=3"
    )
    assert (
        addresses.celery_url("unix:///run/valkey.sock?password=x&db=1")
        == "redis+socket://:x@/run/valkey.sock?virtual_host=1"
    )
