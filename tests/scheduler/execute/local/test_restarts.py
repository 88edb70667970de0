"""One attempt runs once, whatever crashes, and its end is told honestly."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest

from scheduler.execute.base import Binding, Phase
from scheduler.execute.local import procfs
from tests.scheduler.execute.builders import binding
from tests.scheduler.execute.local.conftest import Bench, kill, processes_of

ROOT_FOLDER = Path(__file__).resolve().parents[4]
PORTAL = """
import json, sys, time
from scheduler.execute.base import Binding, ExecutorSettings, ReplicaBinding
from scheduler.execute.local import build
fields = json.loads(sys.argv[2])
fields["replicas"] = tuple(ReplicaBinding(r["index"], r["node"]) for r in fields["replicas"])
executor = build(ExecutorSettings("here", {"folder": sys.argv[1]}))
sys.stdin.readline()
executor.bind(Binding(**fields))
print("bound", flush=True)
time.sleep(60)
"""


def _portal(bench: Bench, job: Binding) -> "subprocess.Popen[str]":
    """Start a process, leading a group of its own, that binds once a line comes in."""
    return subprocess.Popen(
        [sys.executable, "-c", PORTAL, str(bench.folder), json.dumps(asdict(job))],
        cwd=ROOT_FOLDER,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _go(portal: "subprocess.Popen[str]") -> None:
    assert portal.stdin is not None
    portal.stdin.write("\n")
    portal.stdin.flush()


def _until_bound(portal: "subprocess.Popen[str]") -> None:
    assert portal.stdout is not None
    assert portal.stdout.readline() == "bound\n"


def _end(portal: "subprocess.Popen[str]") -> None:
    os.killpg(portal.pid, signal.SIGKILL)
    with portal:
        portal.wait(timeout=10)


def _change_status(bench: Bench, job: Binding, changes: Mapping[str, object]) -> None:
    path = bench.attempt_folder(job) / "status.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_bind_twice_runs_once(bench: Bench) -> None:
    job = binding("echo run >> runs; sleep 0.3")
    bench.executor.bind(job)
    bench.executor.bind(job)
    bench.finished(job)
    bench.executor.bind(job)
    bench.again().executor.bind(job)
    assert bench.observed(job).phase is Phase.SUCCEEDED
    assert (bench.folder / "work" / job.uid / "runs").read_text() == "run\n"


def test_bind_from_many_threads_runs_once(bench: Bench) -> None:
    job = binding("echo run >> runs")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: bench.again().executor.bind(job), range(8)))
    bench.finished(job)
    assert (bench.folder / "work" / job.uid / "runs").read_text() == "run\n"


def test_bind_from_two_processes_at_once_runs_once(bench: Bench) -> None:
    job = binding("echo run >> runs; sleep 0.5")
    portals = [_portal(bench, job) for _ in range(2)]
    for portal in portals:
        _go(portal)
    for portal in portals:
        _until_bound(portal)
        _end(portal)
    assert bench.finished(job).phase is Phase.SUCCEEDED
    assert (bench.folder / "work" / job.uid / "runs").read_text() == "run\n"


def test_a_job_outlives_the_portal_that_started_it(bench: Bench) -> None:
    job = binding("echo up; sleep 1.5; echo still here; exit 5")
    portal = _portal(bench, job)
    _go(portal)
    _until_bound(portal)
    bench.until_output(job, b"up")
    _end(portal)
    later = bench.again()
    assert later.observed(job).phase is Phase.RUNNING
    end = later.finished(job)
    assert (end.phase, end.exit_code) == (Phase.FAILED, 5)
    assert later.output(job) == b"up\nstill here\n"


def test_a_job_can_be_evicted_after_a_restart(bench: Bench) -> None:
    job = binding("echo up; sleep 20")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    later = bench.again()
    later.executor.evict(job.uid, 1, grace_s=1.0, reason="user")
    assert later.finished(job).phase is Phase.CANCELLED


def test_a_bind_that_died_half_way_is_completed_by_the_next(bench: Bench) -> None:
    job = binding("echo run")
    bench.run(job)
    folder = bench.attempt_folder(job)
    spec = (folder / "spec.json").read_bytes()
    other = binding("echo run", uid=job.uid, attempt=2)
    half = bench.attempt_folder(other)
    half.mkdir(mode=0o700)
    bench.executor.bind(other)
    assert bench.finished(other).phase is Phase.SUCCEEDED
    third = bench.attempt_folder(binding(uid=job.uid, attempt=3))
    third.mkdir(mode=0o700)
    (third / "spec.json").write_bytes(spec)
    assert bench.finished(binding(uid=job.uid, attempt=3)).phase is Phase.SUCCEEDED


def test_a_lost_supervisor_is_reported_and_nothing_of_the_job_is_left(bench: Bench) -> None:
    daemon = "(setsid sh -c 'trap \"\" TERM; sleep 60' &)"
    job = binding(f"{daemon}; echo up; sleep 60")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    kill(bench.supervisor_pid(job))
    end = bench.finished(job)
    assert (end.phase, end.reason, end.exit_code) == (Phase.LOST, "supervisor_lost", None)
    assert "What was left was ended." in end.message
    assert processes_of(job) == []
    assert bench.observed(job) == end


def test_a_supervisor_that_crashed_tells_why(bench: Bench) -> None:
    job = binding("echo up; sleep 60")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    kill(bench.supervisor_pid(job))
    errors = bench.attempt_folder(job) / "supervisor.log"
    errors.write_text("Traceback ...\nMemoryError: no room\n")
    assert "failed (MemoryError: no room)" in bench.finished(job).message


def test_a_restart_of_the_machine_is_named(bench: Bench) -> None:
    job = binding("echo up; sleep 60")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    kill(bench.supervisor_pid(job))
    _change_status(bench, job, {"boot_id": "another boot"})
    assert "machine was started anew" in bench.finished(job).message


def test_a_supervisor_told_to_stop_ends_its_job_and_says_so(bench: Bench) -> None:
    job = binding("echo up; sleep 60")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    os.kill(bench.supervisor_pid(job), signal.SIGTERM)
    end = bench.finished(job)
    assert (end.phase, end.reason) == (Phase.LOST, "node_lost")
    assert processes_of(job) == []


def test_a_reused_process_id_is_not_taken_for_the_supervisor(bench: Bench) -> None:
    job = binding("echo up; sleep 60")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    kill(bench.supervisor_pid(job))
    _change_status(bench, job, {"pid": os.getpid()})
    assert bench.finished(job).phase is Phase.LOST


@pytest.mark.parametrize("text", ["", "{", "[]", '{"phase": "dancing"}', "\0" * 50, "[" * 9999])
def test_a_damaged_status_is_reported_as_lost_once_nobody_can_mend_it(
    bench: Bench, text: str
) -> None:
    job = binding("echo up; sleep 60")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    kill(bench.supervisor_pid(job))
    (bench.attempt_folder(job) / "status.json").write_text(text)
    assert bench.finished(job).phase is Phase.LOST
    assert processes_of(job) == []


def test_a_damaged_status_of_a_running_job_is_mended_by_its_supervisor(bench: Bench) -> None:
    job = binding("echo up; sleep 3")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    (bench.attempt_folder(job) / "status.json").write_text("{")
    assert bench.observed(job).phase is Phase.STARTING
    assert bench.finished(job).phase is Phase.SUCCEEDED


def test_a_damaged_spec_is_told_as_a_failed_start(bench: Bench) -> None:
    job = binding("echo never")
    folder = bench.attempt_folder(job)
    folder.mkdir(mode=0o700)
    (folder / "spec.json").write_text('{"binding": 3}')
    end = bench.finished(job)
    assert (end.phase, end.reason) == (Phase.FAILED, "start_failed")
    assert "spec.json" in end.message


def test_strange_things_in_the_folder_are_passed_over(bench: Bench) -> None:
    (bench.folder / "active" / "notes.txt").write_text("mine")
    (bench.folder / "active" / "..odd").mkdir()
    job = binding()
    assert bench.run(job).phase is Phase.SUCCEEDED
    assert len(bench.executor.observe(now_s=0.0)) == 1


def test_forget_keeps_the_log_and_drops_the_secrets(bench: Bench) -> None:
    job = binding("echo kept", env={"TOKEN": "secret-value"})
    bench.run(job)
    bench.executor.forget(job.uid, 1)
    assert list(bench.executor.observe(now_s=0.0)) == []
    assert bench.output(job) == b"kept\n"
    bench.executor.bind(job)
    assert list(bench.executor.observe(now_s=0.0)) == []
    files = [path for path in bench.folder.rglob("*") if path.is_file()]
    assert not any(b"secret-value" in path.read_bytes() for path in files)
    bench.executor.forget(job.uid, 1)


def test_a_running_job_is_not_forgotten(bench: Bench) -> None:
    job = binding("echo up; sleep 20")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    bench.executor.forget(job.uid, 1)
    assert bench.observed(job).phase is Phase.RUNNING


def test_the_wall_clock_may_step_back_without_harm(bench: Bench) -> None:
    job = binding("echo up; trap '' TERM; sleep 60", time_limit_s=1.0, grace_s=0.5)
    bench.executor.bind(binding("true"))  # makes the folders
    folder = bench.attempt_folder(job)
    folder.mkdir(mode=0o700)
    spec = bench.executor._spec(job)  # type: ignore[attr-defined]
    (folder / "spec.json").write_text(json.dumps(spec.to_record()))
    code = (
        "import itertools, sys, pathlib\n"
        "from scheduler.execute.local.supervisor import supervise\n"
        "falling = itertools.count(2_000_000_000, -86_400)\n"
        "supervise(pathlib.Path(sys.argv[1]), wall_s=lambda: float(next(falling)))\n"
    )
    before_s = time.monotonic()
    # The lock is held as by bind(), so that observe() sees a live supervisor.
    argv = ["flock", str(folder / "lock"), sys.executable, "-c", code, str(folder)]
    subprocess.run(argv, cwd=ROOT_FOLDER, check=True, timeout=20)
    assert 1.4 <= time.monotonic() - before_s < 8.0
    end = bench.observed(job)
    assert (end.phase, end.reason) == (Phase.TIMED_OUT, "time_limit")
    assert end.started_s is not None
    assert end.finished_s is not None
    assert end.finished_s < end.started_s


def test_a_supervisor_that_was_stopped_goes_on(bench: Bench) -> None:
    job = binding("sleep 30", time_limit_s=1.0)
    bench.executor.bind(job)
    bench.until(lambda: bench.observed(job).phase is Phase.RUNNING)
    os.kill(bench.supervisor_pid(job), signal.SIGSTOP)
    assert bench.finished(job).phase is Phase.TIMED_OUT


def test_a_job_whose_supervisor_is_stopped_can_be_ended(bench: Bench) -> None:
    job = binding("sleep 30")
    bench.executor.bind(job)
    bench.until(lambda: bench.observed(job).phase is Phase.RUNNING)
    os.kill(bench.supervisor_pid(job), signal.SIGSTOP)
    bench.until(lambda: _state(bench.supervisor_pid(job)) == "T")
    bench.executor.evict(job.uid, job.attempt, grace_s=0.0, reason="asked")
    end = bench.finished(job)
    assert (end.phase, end.reason) == (Phase.LOST, "supervisor_lost")
    assert processes_of(job) == []


def _state(pid: int) -> str:
    found = procfs.read_process(pid)
    return found.state if found else ""
