"""What is read from this machine: processes, cores, folders."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scheduler.execute.base import Phase
from scheduler.execute.local import procfs, users
from scheduler.execute.local.cores import choose_cores
from scheduler.execute.local.exposure import closed_folders, interpreter_folders, is_open
from scheduler.execute.local.spawn import processes_max
from scheduler.execute.local.status import Status
from scheduler.execute.local.usage import Meter, resident_mib
from scheduler.execute.local.users import job_user
from scheduler.execute.local.work import remove_tree, work_root
from scheduler.execute.records import write_record


def test_descendants_are_found_over_generations() -> None:
    argv = ["sh", "-c", "sleep 5 & sh -c 'sleep 5; true' & wait"]
    with subprocess.Popen(argv, start_new_session=True) as process:
        end_s = time.monotonic() + 5
        while len(procfs.descendants(process.pid)) < 3 and time.monotonic() < end_s:
            time.sleep(0.02)
        found = procfs.descendants(process.pid)
        os.killpg(process.pid, 9)
    assert len(found) == 3
    assert {each.group for each in found} == {process.pid}
    assert procfs.descendants(process.pid) == []


def test_a_process_that_ended_is_told_from_a_living_one() -> None:
    with subprocess.Popen(["true"]) as process:
        end_s = time.monotonic() + 5
        found = procfs.read_process(process.pid)
        while found is not None and found.is_alive and time.monotonic() < end_s:
            found = procfs.read_process(process.pid)
        assert found is not None
        assert found.state == "Z"
        assert found in procfs.descendants(os.getpid())


def test_a_process_with_brackets_in_its_name_is_read(tmp_path: Path) -> None:
    odd = tmp_path / "a) R (b"
    odd.symlink_to("/bin/sleep")
    with subprocess.Popen([odd, "5"]) as process:
        found = procfs.read_process(process.pid)
        process.kill()
    assert found is not None
    assert found.parent == os.getpid()


def test_busy_cores_are_what_processes_spent_since_the_last_look() -> None:
    meter = Meter(now_s=100.0)
    first = procfs.Process(7, 1, 7, "R", 0, 55, 0)
    later = procfs.Process(7, 1, 7, "R", 2 * procfs.TICKS_PER_S, 55, 0)
    meter.update([first], now_s=101.0)
    assert meter.cpu_frac == 0.0
    meter.update([later], now_s=102.0)
    assert meter.cpu_frac == pytest.approx(2.0 * (1 - 2.718281828**-0.5))


def test_what_ended_children_spent_counts_though_nobody_saw_them_run() -> None:
    """One second of CPU by children that came and went within two: half a core."""
    meter = Meter(now_s=100.0, ended_s=3.0)
    shell = procfs.Process(7, 1, 7, "S", procfs.TICKS_PER_S // 2, 55, 0)
    meter.update([shell], now_s=102.0, ended_s=3.5)
    assert meter.cpu_frac == pytest.approx(0.5)


def test_memory_is_the_sum_of_resident_sizes() -> None:
    found = [
        procfs.Process(7, 1, 7, "R", 0, 55, 3 << 20),
        procfs.Process(8, 1, 7, "R", 0, 55, 1 << 20),
    ]
    assert resident_mib(found, limit_mib=10) == 4


def test_a_process_that_ended_meanwhile_holds_no_memory() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    gone = procfs.Process(process.pid, 1, 7, "R", 0, 55, 300 << 20)
    assert resident_mib([gone], limit_mib=100) == 0


def test_the_least_used_cores_are_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 5})
    for name, phase, cores in (("a", Phase.RUNNING, [0, 1]), ("b", Phase.SUCCEEDED, [2, 5])):
        (tmp_path / name).mkdir()
        status = Status(phase, 1, "boot", cores=cores)
        write_record(tmp_path / name / "status.json", status.to_record())
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "status.json").write_text("{")
    assert choose_cores(tmp_path, 2) == [2, 5]
    assert choose_cores(tmp_path, 3) == [0, 2, 5]
    assert choose_cores(tmp_path, 99) == [0, 1, 2, 5]


def test_closed_folders_are_told_with_what_lies_in_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    closed = tmp_path / "home"
    tool, inner = closed / "tool", closed / "tool" / "inner"
    inner.mkdir(parents=True)
    closed.chmod(0o700)
    if not is_open(tmp_path):
        top = next(path for path in reversed(tool.parents) if not is_open(path))
        assert dict(closed_folders([tool, inner, closed / "missing"])) == {top: (tool,)}
        return
    assert dict(closed_folders([tool, inner, tmp_path, Path("/usr")])) == {closed: (tool,)}
    assert dict(closed_folders([closed])) == {}


def test_the_running_interpreter_is_among_its_folders() -> None:
    found = interpreter_folders()
    assert Path(sys.prefix) in found
    assert Path(os.path.realpath(sys.executable)).parent in {
        Path(os.path.realpath(f)) for f in found
    }


def test_work_lies_beside_the_records_only_where_jobs_can_reach_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    user = job_user("some job", None)
    root = work_root(tmp_path, user)
    if user is None:
        assert root == tmp_path / "work"
    else:
        assert root.parent == Path("/var/tmp")
        assert work_root(Path("/usr"), user) == Path("/usr/work")


def test_groups_of_closed_devices_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, mode in (("kfd", 0o660), ("open", 0o666), ("own", 0o600)):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    monkeypatch.setattr(users, "DEVICE_NODES", {"amd": (f"{tmp_path}/*", "/dev/no-such*")})
    group = (tmp_path / "kfd").stat().st_gid
    assert users.device_groups("amd") == ([group] if group else [])
    if os.geteuid() == 0:
        os.chown(tmp_path / "kfd", 0, 44)
        assert users.device_groups("amd") == [44]
    assert users.device_groups("acme") == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_all_processes_of_a_user_are_ended_and_no_others() -> None:
    doomed, other = users.PRIVATE_FIRST + 123_456_789, users.PRIVATE_FIRST + 123_456_790
    argv = ["sleep", "20"]
    with (
        subprocess.Popen(argv, user=doomed) as first,
        subprocess.Popen(argv, user=doomed, start_new_session=True) as second,
        subprocess.Popen(argv, user=other) as third,
    ):
        assert procfs.end_user(doomed)
        assert (first.wait(5), second.wait(5)) == (-9, -9)
        assert third.poll() is None
        third.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives users to jobs")
def test_each_job_has_a_user_that_stays_the_same() -> None:
    first, again, other = (job_user(name, None) for name in ("a", "a", "b"))
    assert first == again != other
    assert first is not None
    assert first.private
    assert 0x40000000 <= first.uid < 0x50000000


def test_a_job_gets_at_most_a_quarter_of_the_process_ids() -> None:
    assert 0 < processes_max() <= int(Path("/proc/sys/kernel/pid_max").read_text()) // 4


def test_a_tree_is_removed_however_deep_and_shut_and_no_link_is_followed(tmp_path: Path) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    outside.mkdir()
    (outside / "precious").write_text("kept")
    tree.mkdir()
    (tree / "link").symlink_to(outside)
    deep = "import os\nfor _ in range(2000):\n os.mkdir('d')\n os.chdir('d')"
    subprocess.run([sys.executable, "-c", deep], cwd=tree, check=True)
    shut = tree / "shut"
    (shut / "inside").mkdir(parents=True)
    shut.chmod(0)
    remove_tree(tree)
    assert not tree.exists()
    assert (outside / "precious").read_text() == "kept"
    remove_tree(tree)
    (tmp_path / "odd").symlink_to(outside)
    remove_tree(tmp_path / "odd")
    assert (outside / "precious").read_text() == "kept"
