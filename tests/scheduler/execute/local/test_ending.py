"""However a job ends, and whatever it tries, nothing of it is left."""

import os
import sys
import time

import pytest

from scheduler.execute.base import Phase
from scheduler.execute.local.procfs import read_process
from tests.scheduler.execute.builders import binding, replicas
from tests.scheduler.execute.local.conftest import Bench, processes_of

DAEMON = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.environ.clear()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("daemon", os.getpid(), flush=True)
        time.sleep(60)
    os._exit(0)
os.wait()
"""


def _python(code: str) -> str:
    return f"exec {sys.executable} -c '{code}'"


def _gone(pid: int) -> bool:
    process = read_process(pid)
    return process is None or process.state in "ZX"


def test_evict_ends_a_job_that_obeys_at_once(bench: Bench) -> None:
    job = binding("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    asked_s = time.monotonic()
    bench.executor.evict(job.uid, 1, grace_s=10.0, reason="preempted")
    assert time.monotonic() - asked_s < 0.2
    end = bench.finished(job)
    assert time.monotonic() - asked_s < 3.0
    assert (end.phase, end.reason) == (Phase.CANCELLED, "cancelled")
    assert "preempted" in end.message
    assert b"bye" in bench.output(job)


def test_a_child_may_use_the_grace_though_its_shell_ended_at_once(bench: Bench) -> None:
    child = "trap 'sleep 0.7; echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    job = binding(f'sh -c "{child}"; true')
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    bench.executor.evict(job.uid, 1, grace_s=10.0, reason="preempted")
    assert bench.finished(job).phase is Phase.CANCELLED
    assert b"saved" in bench.output(job)


def test_a_job_that_ignores_sigterm_is_killed_after_its_grace(bench: Bench) -> None:
    job = binding("trap '' TERM; echo up; while :; do sleep 0.1; done")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    asked_s = time.monotonic()
    bench.executor.evict(job.uid, 1, grace_s=1.0, reason="user")
    end = bench.finished(job)
    assert 1.0 <= time.monotonic() - asked_s < 4.0
    assert (end.phase, end.exit_code) == (Phase.CANCELLED, 137)
    assert processes_of(job) == []


def test_a_second_evict_may_shorten_the_grace(bench: Bench) -> None:
    job = binding("trap '' TERM; echo up; while :; do sleep 0.1; done")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    bench.executor.evict(job.uid, 1, grace_s=60.0, reason="user")
    time.sleep(0.5)
    bench.executor.evict(job.uid, 1, grace_s=0.0, reason="user")
    assert bench.finished(job, within_s=5.0).phase is Phase.CANCELLED


def test_a_stopped_job_can_be_evicted(bench: Bench) -> None:
    job = binding("echo up; kill -STOP $$")
    bench.executor.bind(job)
    bench.until_output(job, b"up")
    bench.executor.evict(job.uid, 1, grace_s=5.0, reason="user")
    assert bench.finished(job, within_s=4.0).phase is Phase.CANCELLED


def test_evict_of_an_unknown_job_is_no_error(bench: Bench) -> None:
    bench.executor.evict(binding().uid, 1, grace_s=1.0, reason="user")
    assert list(bench.executor.observe(now_s=0.0)) == []


def test_evict_of_a_finished_job_changes_nothing(bench: Bench) -> None:
    job = binding("exit 4")
    end = bench.run(job)
    bench.executor.evict(job.uid, 1, grace_s=1.0, reason="user")
    assert bench.observed(job) == end


def test_a_daemon_that_forked_away_ends_with_its_job(bench: Bench) -> None:
    job = binding(_python(DAEMON))
    assert bench.run(job).phase is Phase.SUCCEEDED
    pid = int(bench.output(job).split()[1])
    assert _gone(pid)


def test_a_daemon_that_forked_away_is_evicted_too(bench: Bench) -> None:
    job = binding(f"{_python(DAEMON).removeprefix('exec ')}; sleep 60")
    bench.executor.bind(job)
    bench.until_output(job, b"daemon ")
    bench.executor.evict(job.uid, 1, grace_s=0.3, reason="user")
    bench.finished(job)
    assert _gone(int(bench.output(job).split()[1]))


RELAY = "import os\nfor _ in range(20000):\n  if os.fork(): os._exit(0)\n"
"""Forks and exits in turn, but not for ever: a failing test must not burn the machine."""


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(RELAY, id="within its process group"),
        pytest.param(
            f"{RELAY}  os.setsid()\n",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="takes a user of the job's own"),
            id="in a new session each time",
        ),
    ],
)
def test_a_job_that_forks_and_exits_in_turn_is_caught(bench: Bench, code: str) -> None:
    command = f"{_python(code).removeprefix('exec ')}; sleep 60"
    job = binding(command, time_limit_s=0.5, grace_s=0.1)
    assert bench.run(job).phase is Phase.TIMED_OUT
    assert processes_of(job) == []


def test_a_crowd_of_children_is_ended(bench: Bench) -> None:
    code = "import os,time\nfor _ in range(300):\n  os.fork() or time.sleep(60)\ntime.sleep(60)"
    job = binding(_python(code), time_limit_s=1.0, grace_s=0.2)
    assert bench.run(job).phase is Phase.TIMED_OUT
    assert processes_of(job) == []


def test_the_time_limit_holds_even_where_sigterm_is_ignored(bench: Bench) -> None:
    job = binding("trap '' TERM; sleep 30; sleep 30", time_limit_s=1.0, grace_s=0.5)
    before_s = time.monotonic()
    end = bench.run(job)
    assert 1.4 <= time.monotonic() - before_s < 5.0
    assert (end.phase, end.reason) == (Phase.TIMED_OUT, "time_limit")
    assert "time limit of 1 s" in end.message


def test_a_job_that_takes_more_memory_than_it_asked_for_is_ended(bench: Bench) -> None:
    code = "import time\nheld = bytearray(200 << 20)\nprint(len(held), flush=True)\ntime.sleep(30)"
    job = binding(_python(code), memory_mib=100)
    end = bench.run(job)
    assert (end.phase, end.reason) == (Phase.FAILED, "memory_limit")
    assert "its limit is 100 MiB" in end.message


def test_memory_of_a_whole_tree_counts_together(bench: Bench) -> None:
    code = "import os,time\nos.fork(); os.fork()\nheld = bytearray(60 << 20)\ntime.sleep(30)"
    job = binding(_python(code), memory_mib=150)
    assert bench.run(job).reason == "memory_limit"


def test_pages_that_workers_share_count_once(bench: Bench) -> None:
    code = (
        "import os,time\nheld = bytearray(80 << 20)\n"
        "pids = [p for p in (os.fork() for _ in range(1)) if p]\n"
        "os.fork() if not pids else None\ntime.sleep(1.5)"
    )
    job = binding(_python(code), memory_mib=150)
    assert bench.run(job).phase is Phase.SUCCEEDED


def test_reserved_memory_is_not_used_memory(bench: Bench) -> None:
    code = "import mmap,time\nheld = mmap.mmap(-1, 8 << 30)\ntime.sleep(0.8)"
    assert bench.run(binding(_python(code), memory_mib=100)).phase is Phase.SUCCEEDED


def test_numpy_runs_within_a_small_memory_limit(bench: Bench) -> None:
    pytest.importorskip("numpy")
    code = (
        "import numpy as n, time\nprint(n.ones((500, 500)).dot(n.ones(500)).sum())\ntime.sleep(0.6)"
    )
    job = binding(_python(code), memory_mib=256)
    assert bench.run(job).phase is Phase.SUCCEEDED
    assert bench.output(job) == b"250000.0\n"


def test_usage_is_told_while_a_job_runs(bench: Bench) -> None:
    busy = "held = bytearray(64 << 20)\nwhile True: pass"
    job = binding(_python(busy))
    bench.executor.bind(job)
    bench.until(lambda: bench.observed(job).memory_mib)
    bench.until(lambda: (bench.observed(job).cpu_frac or 0) > 0.01)
    seen = bench.observed(job)
    assert seen.memory_mib is not None
    assert 64 <= seen.memory_mib < 200
    bench.executor.evict(job.uid, 1, grace_s=0.0, reason="user")
    assert bench.finished(job).memory_mib is None


def test_children_too_short_to_be_seen_are_counted(bench: Bench) -> None:
    job = binding("while :; do for n in 1 2 3 4 5 6 7 8; do true | cat; done; done")
    bench.executor.bind(job)
    bench.until(lambda: (bench.observed(job).cpu_frac or 0) > 0.2)
    bench.executor.evict(job.uid, 1, grace_s=0.0, reason="user")
    bench.finished(job)


def test_cores_are_limited_to_what_was_asked_for(bench: Bench) -> None:
    one = binding("nproc", cpu_milli=500, env={"OMP_NUM_THREADS": ""})
    bench.run(one)
    assert bench.output(one) == b"1\n"


def test_a_job_that_takes_more_cores_is_brought_back(bench: Bench) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this machine has one core")
    code = (
        "import os, time\nos.sched_setaffinity(0, range(os.cpu_count()))\n"
        "print(len(os.sched_getaffinity(0)), flush=True)\n"
        "while len(os.sched_getaffinity(0)) > 1: time.sleep(0.05)\nprint(1, flush=True)"
    )
    job = binding(_python(code), cpu_milli=1000)
    assert bench.run(job).phase is Phase.SUCCEEDED
    first, last = bench.output(job).split()
    assert int(first) > 1
    assert last == b"1"


def test_all_replicas_end_together(bench: Bench) -> None:
    job = binding("echo up; sleep 60", replicas=replicas(4))
    bench.executor.bind(job)
    bench.until(lambda: bench.output(job).count(b"up") == 4)
    bench.executor.evict(job.uid, 1, grace_s=1.0, reason="user")
    assert bench.finished(job).phase is Phase.CANCELLED
    assert processes_of(job) == []
