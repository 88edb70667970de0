"""What a job finds when it runs, and how its end is told."""

import os
import time
from pathlib import Path

import pytest

from scheduler.execute.base import Phase
from tests.scheduler.execute.builders import binding, replicas
from tests.scheduler.execute.local.conftest import Bench, processes_of

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def test_output_and_errors_are_kept_and_success_is_told(bench: Bench) -> None:
    job = binding("echo out; echo err >&2")
    end = bench.run(job)
    assert (end.phase, end.exit_code, end.reason) == (Phase.SUCCEEDED, 0, "")
    assert bench.output(job) == b"out\nerr\n"
    assert end.started_s is not None
    assert end.finished_s is not None
    assert 0 <= end.finished_s - end.started_s < 10


def test_first_output_comes_within_a_second_of_bind(bench: Bench) -> None:
    job = binding("echo now; sleep 20")
    before_s = time.monotonic()
    bench.executor.bind(job)
    bound_s = time.monotonic() - before_s
    bench.until_output(job, b"now")
    assert bound_s < 0.5
    assert time.monotonic() - before_s < 1.5


@pytest.mark.parametrize(
    ("command", "code", "reason", "says"),
    [
        pytest.param("exit 3", 3, "exited", "exit code 3", id="its own exit code"),
        pytest.param("kill -SEGV $$", 139, "signalled", "SIGSEGV", id="a signal of its own"),
        pytest.param("sh -c 'kill -9 $$'; exit $?", 137, "signalled", "SIGKILL", id="of a child"),
        pytest.param("no-such-thing", 127, "exited", "no such command", id="an unknown command"),
        pytest.param("/etc/passwd", 126, "exited", "can't be executed", id="not a program"),
    ],
)
def test_failure_names_its_cause(
    bench: Bench, command: str, code: int, reason: str, says: str
) -> None:
    end = bench.run(binding(command))
    assert (end.phase, end.exit_code, end.reason) == (Phase.FAILED, code, reason)
    assert says in end.message


def test_nothing_of_the_portals_environment_leaks(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KILTER_SECRET_KEY", "portal-secret")
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    job = binding("tr '\\0' '\\n' < /proc/self/environ", env={"MINE": "é=1"})
    bench.run(job)
    shown = bench.output(job).decode()
    assert "secret" not in shown
    assert "MINE=é=1" in shown
    names = {line.partition("=")[0] for line in shown.splitlines()}
    own = {name for name in names if name.startswith("KILTER_")}
    assert own == {
        "KILTER_JOB_ID",
        "KILTER_ATTEMPT",
        "KILTER_REPLICA",
        "KILTER_REPLICAS",
        "KILTER_CHECKPOINT_DIR",
        "KILTER_GPU_MILLI",
        "KILTER_GPU_MEMORY_MIB",
    }
    devices = {name for name in names if name.endswith(("_VISIBLE_DEVICES", "_DEVICE_ORDER"))}
    usual = {"PATH", "HOME", "PWD", "USER", "LOGNAME", "SHELL", "LANG", "OMP_NUM_THREADS", "OLDPWD"}
    assert names - own - devices - usual == {"MINE"}


def test_no_descriptor_of_the_supervisor_is_inherited(bench: Bench) -> None:
    job = binding("ls /proc/$$/fd")
    bench.run(job)
    assert set(bench.output(job).split()) <= {b"0", b"1", b"2"}


def test_the_job_can_be_interrupted_as_if_from_a_terminal(bench: Bench) -> None:
    job = binding("grep SigIgn /proc/self/status")
    bench.run(job)
    # signals 32 and 33 are the C library's own: nobody can set them, and some callers ignore them
    ignored = int(bench.output(job).split()[1], 16) & ~(0b11 << 31)
    assert ignored == 0


def test_each_replica_knows_which_one_it_is(bench: Bench) -> None:
    says = "echo $KILTER_REPLICA of $KILTER_REPLICAS, try $KILTER_ATTEMPT"
    job = binding(says, attempt=4, replicas=replicas(3))
    bench.run(job)
    lines = sorted(bench.output(job).splitlines())
    assert lines == [b"[r%d] %d of 3, try 4" % (i, i) for i in range(3)]


def test_one_failing_replica_ends_the_gang(bench: Bench) -> None:
    job = binding('[ "$KILTER_REPLICA" = 1 ] && exit 7; sleep 19', replicas=replicas(3))
    end = bench.run(job)
    assert (end.phase, end.exit_code) == (Phase.FAILED, 7)
    assert end.message == "Replica 1 ended with exit code 7."
    assert processes_of(job) == []


@ROOT
def test_a_job_of_root_runs_as_a_stranger_without_rights(bench: Bench) -> None:
    job = binding("id -u; id -G; umask; grep -E 'NoNewPrivs|CapEff' /proc/self/status")
    bench.run(job)
    uid, groups, umask, effective, no_new = bench.output(job).decode().splitlines()
    assert int(uid) >= 0x40000000
    assert groups == uid
    assert umask == "0077"
    assert effective.split()[1] == "0000000000000000"
    assert no_new.split()[1] == "1"


@ROOT
def test_two_jobs_are_strangers_to_each_other(bench: Bench) -> None:
    first = binding("echo private > kept; sleep 15")
    bench.executor.bind(first)
    bench.until((bench.folder / "work" / first.uid / "kept").exists)
    pid = processes_of(first)[0]
    work = bench.folder / "work" / first.uid
    second = binding(f"cat {work}/kept; kill -9 {pid}; cat /proc/{pid}/environ; exit 5")
    assert bench.run(second).exit_code == 5
    assert b"private" not in bench.output(second)
    assert bench.observed(first).phase is Phase.RUNNING


@ROOT
def test_a_job_can_touch_neither_its_records_nor_its_supervisor(bench: Bench) -> None:
    job = binding("sleep 1", env={"TOKEN": "t"})
    folder = bench.attempt_folder(job)
    tries = (
        f"cat {folder}/spec.json; echo x > {folder}/evict.json; kill -9 $PPID; ls {folder}; true"
    )
    end = bench.run(binding(tries, uid=job.uid))
    assert end.phase is Phase.SUCCEEDED
    assert b"TOKEN" not in bench.output(job)
    assert not (folder / "evict.json").exists()


@ROOT
def test_run_as_names_another_user(bench: Bench) -> None:
    other = bench.again(run_as="nobody")
    job = binding("id -un")
    other.run(job)
    assert other.output(job) == b"nobody\n"


def test_work_folder_is_shared_by_the_attempts_of_a_job(bench: Bench) -> None:
    first = binding("echo checkpoint > saved; pwd; echo $HOME")
    bench.run(first)
    second = binding("cat saved", uid=first.uid, attempt=2)
    bench.run(second)
    assert bench.output(second) == b"checkpoint\n"
    work = str(bench.folder / "work" / first.uid).encode()
    assert bench.output(first).split() == [work, work]


def test_a_command_of_ten_megabytes_runs(bench: Bench) -> None:
    job = binding(f": {'x' * 10_000_000}\necho fine; false")
    end = bench.run(job)
    assert bench.output(job) == b"fine\n"
    assert end.exit_code == 1


def test_devices_of_the_placement_are_seen_and_no_others(bench: Bench) -> None:
    held = binding(
        "echo $CUDA_VISIBLE_DEVICES",
        replicas=replicas(1, device_indices=(3, 5), device_uids=("a", "b"), vendor="nvidia"),
        env={"CUDA_VISIBLE_DEVICES": "0,1,2,3"},
    )
    none = binding("echo [$CUDA_VISIBLE_DEVICES][$ASCEND_RT_VISIBLE_DEVICES]")
    bench.run(held)
    bench.run(none)
    assert bench.output(held) == b"3,5\n"
    assert bench.output(none) == b"[][-1]\n"


def test_a_job_that_reads_its_input_finds_its_end(bench: Bench) -> None:
    job = binding("cat; echo read")
    bench.run(job)
    assert bench.output(job) == b"read\n"


@ROOT
def test_an_interpreter_in_a_closed_folder_can_be_used(bench: Bench, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "tool" / "bin").mkdir(parents=True)
    (closed / "secret").write_text("hidden")
    (closed / "tool" / "bin" / "hello").write_text("#!/bin/sh\necho hello from inside\n")
    for path in (closed / "tool", closed / "tool" / "bin", closed / "tool" / "bin" / "hello"):
        path.chmod(0o755)
    closed.chmod(0o700)
    shown = bench.again(shown=(closed / "tool",))
    job = binding(
        f"{closed}/tool/bin/hello; cat {closed}/secret; touch {closed}/tool/x; ls {closed}"
    )
    shown.run(job)
    output = bench.output(job)
    assert b"hello from inside" in output
    assert b"hidden" not in output
    assert not (closed / "tool" / "x").exists()
    assert (closed / "secret").read_text() == "hidden"
