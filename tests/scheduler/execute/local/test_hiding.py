"""A job that runs as the portal's own user sees nothing of the portal's folders."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler.execute.base import Phase
from scheduler.execute.local import mounts
from scheduler.execute.local.hiding import can_hide, hide
from tests.scheduler.execute.builders import binding
from tests.scheduler.execute.local.conftest import Bench

US = pwd.getpwuid(os.geteuid()).pw_name
ALLOWED = can_hide([])
pytestmark = pytest.mark.skipif(not ALLOWED, reason="this kernel lets nobody hide folders")


@pytest.fixture
def ours(bench: Bench) -> Bench:
    """Return an executor of jobs of our own user, whose whole folder is hidden."""
    (bench.folder / "secrets").mkdir()
    (bench.folder / "secrets" / "key").write_text("the key")
    return bench.again(run_as=US, hidden=(bench.folder, bench.folder / "missing"))


def test_it_reads_no_secret_by_name(ours: Bench) -> None:
    job = binding(f"cat {ours.folder}/secrets/key; ls {ours.folder}")
    assert ours.run(job).phase is Phase.SUCCEEDED
    assert b"the key" not in ours.output(job)
    assert ours.output(job).splitlines()[-1] == b"work"


def test_it_reads_no_secret_by_a_link(ours: Bench) -> None:
    link = Path(f"{ours.folder}-link")
    link.symlink_to(ours.folder)
    try:
        job = binding(f"cat {link}/secrets/key")
        assert ours.run(job).phase is Phase.FAILED
    finally:
        link.unlink()
    assert b"the key" not in ours.output(job)


def test_it_sees_no_other_job_beside_its_work_folder(ours: Bench) -> None:
    other = binding("echo mine > mine; sleep 8")
    ours.executor.bind(other)
    ours.until((ours.folder / "work" / other.uid / "mine").exists)
    job = binding("cd .. && ls; cat ../../*/key")
    ours.run(job)
    assert ours.output(job).splitlines()[0].decode() == job.uid
    assert other.uid.encode() not in ours.output(job)
    assert b"the key" not in ours.output(job)


def test_what_it_leaves_in_its_work_folder_stays(ours: Bench) -> None:
    job = binding('test "$PWD" = "$HOME" && test "$(pwd -P)" = "$HOME" && echo kept > result')
    assert ours.run(job).phase is Phase.SUCCEEDED
    result = ours.folder / "work" / job.uid / "result"
    assert result.read_text() == "kept\n"
    assert result.stat().st_uid == os.geteuid()


def test_it_looks_through_no_process_outside(ours: Bench) -> None:
    with subprocess.Popen(["sleep", "20"], env={"SECRET": "the key"}) as portal:
        paths = f"/proc/{portal.pid}"
        job = binding(f"cat {paths}/environ; cat {paths}/root/{ours.folder}/secrets/key")
        ours.run(job)
        portal.kill()
    assert b"the key" not in ours.output(job)
    assert ours.output(job).count(b"Permission denied") == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root keeps its rights over its own mounts")
def test_it_cannot_uncover_them(ours: Bench) -> None:
    job = binding(f"umount {ours.folder}; unshare -Urm umount {ours.folder}; ls {ours.folder}")
    ours.run(job)
    assert ours.output(job).splitlines()[-1] == b"work"


def test_it_is_stopped_and_measured_like_any_other(ours: Bench) -> None:
    job = binding("trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.1; done")
    ours.executor.bind(job)
    ours.until_output(job, b"up")
    ours.until(lambda: ours.observed(job).memory_mib is not None)
    ours.executor.evict(job.uid, job.attempt, grace_s=5.0, reason="test")
    assert ours.finished(job).phase is Phase.CANCELLED
    assert b"asked" in ours.output(job)


def test_the_interpreter_in_a_hidden_folder_is_still_there(bench: Bench) -> None:
    whole = Path(sys.prefix).parent
    if bench.folder.is_relative_to(whole):
        pytest.skip("the interpreter stands above the test's folder")
    ours = bench.again(run_as=US, hidden=(whole,))
    job = binding(f"{sys.executable} -c 'print(6 * 7)'")
    assert ours.run(job).phase is Phase.SUCCEEDED
    assert ours.output(job) == b"42\n"


def test_outermost_folders_are_told_from_those_inside() -> None:
    paths = [Path("/a/b"), Path("/a"), Path("/a-b"), Path("/c/d"), Path("/a")]
    assert mounts.outermost(paths) == [Path("/a"), Path("/a-b"), Path("/c/d")]


def test_a_kernel_that_forbids_it_is_noticed_before_the_job_starts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(_namespaces: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(mounts, "leave", forbid)
    assert not can_hide([bench.folder])
    with pytest.raises(PermissionError):
        hide([bench.folder], [])
