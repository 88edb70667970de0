"""The simulated executor: a play on a clock, the same for everybody who looks."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scheduler.execute.base import (
    Executor,
    ExecutorRejectedError,
    ExecutorSettings,
    Observation,
    Phase,
)
from scheduler.execute.simulated import FAILURES_PER_MILLE, build, part_of
from tests.scheduler.execute.builders import binding, replicas

SOUND = "00000000-0000-4000-8000-000000000000"
"""A job that does not fail by chance."""


def _built(folder: Path, clock: Callable[[float], float] | None = None) -> Executor:
    options: dict[str, object] = {"folder": folder}
    if clock is not None:
        options["clock"] = clock
    return build(ExecutorSettings("demo", options))


def _only(executor: Executor, now_s: float) -> Observation:
    (found,) = executor.observe(now_s=now_s)
    return found


def test_a_job_starts_within_three_seconds_and_ends_after_its_duration(tmp_path: Path) -> None:
    executor = _built(tmp_path)
    executor.bind(binding(uid=SOUND, expected_duration_s=100.0, time_limit_s=500.0))
    assert _only(executor, 1000.0).phase is Phase.STARTING
    running = _only(executor, 1003.0)
    assert running.phase is Phase.RUNNING
    assert running.started_s is not None
    assert 1001.0 <= running.started_s <= 1003.0
    assert _only(executor, running.started_s + 99.9).phase is Phase.RUNNING
    end = _only(executor, 1200.0)
    assert (end.phase, end.exit_code) == (Phase.SUCCEEDED, 0)
    assert end.finished_s == pytest.approx(running.started_s + 100.0)


def test_a_job_longer_than_its_limit_is_timed_out(tmp_path: Path) -> None:
    executor = _built(tmp_path)
    executor.bind(binding(uid=SOUND, expected_duration_s=100.0, time_limit_s=50.0))
    executor.observe(now_s=1000.0)
    end = _only(executor, 1060.0)
    assert (end.phase, end.reason) == (Phase.TIMED_OUT, "time_limit")


def test_evict_ends_a_job_after_a_short_grace(tmp_path: Path) -> None:
    executor = _built(tmp_path)
    executor.bind(binding(uid=SOUND, expected_duration_s=100.0, time_limit_s=500.0))
    executor.observe(now_s=1000.0)
    executor.observe(now_s=1010.0)
    executor.evict(SOUND, 1, grace_s=30.0, reason="preempted")
    assert _only(executor, 1020.0).phase is Phase.RUNNING
    end = _only(executor, 1023.0)
    assert (end.phase, end.finished_s) == (Phase.CANCELLED, 1022.0)
    assert "preempted" in end.message


def test_a_job_evicted_before_it_started_never_ran(tmp_path: Path) -> None:
    executor = _built(tmp_path)
    executor.bind(binding(uid=SOUND))
    executor.evict(SOUND, 1, grace_s=0.0, reason="user")
    executor.observe(now_s=1000.0)
    end = _only(executor, 2000.0)
    assert (end.phase, end.started_s) == (Phase.CANCELLED, None)


def test_an_evicted_job_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    """Of 100 s, with a checkpoint every 20 s, it runs 50 s or a little less: 40 s are safe."""
    executor = _built(tmp_path)
    job = binding(
        uid=SOUND, expected_duration_s=100.0, time_limit_s=500.0, checkpoint_interval_s=20.0
    )
    executor.bind(job)
    executor.observe(now_s=1000.0)
    started_s = _only(executor, 1003.0).started_s
    assert started_s is not None
    seen = _only(executor, started_s + 41.0)
    assert seen.checkpointed_s == pytest.approx(started_s + 40.0)
    executor.evict(SOUND, 1, grace_s=0.0, reason="preempted")
    assert _only(executor, started_s + 50.0).phase is Phase.CANCELLED
    executor.forget(SOUND, 1)
    executor.bind(replace(job, attempt=2))
    executor.observe(now_s=2000.0)
    begun = _only(executor, 2010.0)
    assert begun.started_s is not None
    assert begun.checkpointed_s is None
    end = _only(executor, 2100.0)
    assert end.phase is Phase.SUCCEEDED
    assert end.finished_s == pytest.approx(begun.started_s + 60.0)


def test_a_job_goes_on_from_its_checkpoint_at_the_speed_of_its_new_replicas(tmp_path: Path) -> None:
    """100 s of work with two replicas, a checkpoint every 20 s, ended after 50 s: 40 % are safe.

    With four replicas all of it would take 50 s: the other 60 % take 30. With one it would take
    200 s: of these 10 s are run, none is saved, and as many as before, 120 s, are left.
    """
    executor = _built(tmp_path)
    two = binding(
        uid=SOUND,
        expected_duration_s=100.0,
        time_limit_s=500.0,
        checkpoint_interval_s=20.0,
        replicas=replicas(2),
    )
    executor.bind(two)
    executor.observe(now_s=1000.0)
    started_s = _only(executor, 1003.0).started_s
    assert started_s is not None
    _only(executor, started_s + 50.0)
    executor.evict(SOUND, 1, grace_s=0.0, reason="resized")
    _only(executor, started_s + 50.0)
    executor.forget(SOUND, 1)
    one = replace(two, attempt=2, expected_duration_s=200.0, replicas=replicas(1))
    executor.bind(one)
    executor.observe(now_s=2000.0)
    executor.evict(SOUND, 2, grace_s=0.0, reason="resized")
    _only(executor, 2013.0)
    executor.forget(SOUND, 2)
    for attempt, count, whole_s, left_s in ((3, 1, 200.0, 120.0), (4, 4, 50.0, 30.0)):
        executor.bind(
            replace(
                one, attempt=attempt, expected_duration_s=whole_s, checkpoint_interval_s=0.0,
                replicas=replicas(count),
            )
        )  # fmt: skip
        executor.observe(now_s=3000.0 * attempt)
        end = _only(executor, 3000.0 * attempt + 300.0)
        assert end.started_s is not None
        assert end.finished_s == pytest.approx(end.started_s + left_s)
        executor.forget(SOUND, attempt)


@pytest.mark.parametrize("every_s", [0.0, 60.0])
def test_a_job_without_a_checkpoint_begins_again(tmp_path: Path, every_s: float) -> None:
    executor = _built(tmp_path)
    job = binding(
        uid=SOUND, expected_duration_s=100.0, time_limit_s=500.0, checkpoint_interval_s=every_s
    )
    executor.bind(job)
    executor.observe(now_s=1000.0)
    executor.evict(SOUND, 1, grace_s=0.0, reason="preempted")
    assert _only(executor, 1050.0).phase is Phase.CANCELLED
    executor.bind(replace(job, attempt=2))
    executor.observe(now_s=2000.0)
    assert {each.phase for each in executor.observe(now_s=2099.0)} == {
        Phase.CANCELLED,
        Phase.RUNNING,
    }


def test_what_two_attempts_have_saved_adds_up_and_damage_counts_as_none(tmp_path: Path) -> None:
    """Twice 40 s and more of 100 s are saved, in steps of 20 s; at the third attempt 20 s are left.

    Where the second record is damaged, the first one alone counts: 60 s are left.
    """
    executor = _built(tmp_path)
    job = binding(
        uid=SOUND, expected_duration_s=100.0, time_limit_s=500.0, checkpoint_interval_s=20.0
    )
    for attempt, now_s in ((1, 1000.0), (2, 2000.0)):
        executor.bind(replace(job, attempt=attempt))
        executor.observe(now_s=now_s)
        executor.observe(now_s=now_s + 50.0)
        executor.evict(SOUND, attempt, grace_s=0.0, reason="preempted")
        executor.observe(now_s=now_s + 51.0)
        executor.forget(SOUND, attempt)
    for attempt, left_s in ((3, 20.0), (4, 60.0)):
        executor.bind(replace(job, attempt=attempt))
        executor.observe(now_s=3000.0 * attempt)
        end = _only(executor, 3000.0 * attempt + 99.0)
        assert end.started_s is not None
        assert end.finished_s == pytest.approx(end.started_s + left_s)
        executor.forget(SOUND, attempt)
        for damaged in (2, 3):
            (tmp_path / "ended" / f"{SOUND}.{damaged}.json").write_text("{")


def test_a_scaled_clock_is_told_in_real_time(tmp_path: Path) -> None:
    executor = _built(tmp_path, lambda real_s: 5000.0 + (real_s - 1000.0) * 100.0)
    executor.bind(binding(uid=SOUND, expected_duration_s=1000.0, time_limit_s=5000.0))
    executor.observe(now_s=1000.0)
    end = _only(executor, 1020.0)
    assert end.started_s is not None
    assert end.finished_s is not None
    assert 1000.01 <= end.started_s <= 1000.03
    assert end.finished_s - end.started_s == pytest.approx(10.0)


def test_a_clock_that_steps_back_undoes_nothing(tmp_path: Path) -> None:
    executor = _built(tmp_path)
    executor.bind(binding(uid=SOUND, expected_duration_s=10.0, time_limit_s=50.0))
    executor.observe(now_s=1000.0)
    end = _only(executor, 1020.0)
    assert end.phase is Phase.SUCCEEDED
    assert _only(executor, 500.0) == end


def test_time_goes_on_after_a_step_back(tmp_path: Path) -> None:
    executor = _built(tmp_path)
    executor.bind(binding(uid=SOUND, expected_duration_s=10.0, time_limit_s=50.0))
    executor.observe(now_s=1000.0)
    executor.observe(now_s=500.0)
    assert _only(executor, 520.0).phase is Phase.SUCCEEDED


def test_another_scale_changes_the_pace_and_not_the_time(tmp_path: Path) -> None:
    fast = _built(tmp_path, lambda real_s: real_s * 60.0)
    fast.bind(binding(uid=SOUND, expected_duration_s=100.0, time_limit_s=500.0))
    fast.observe(now_s=1000.0)
    fast.observe(now_s=1001.0)
    slow = _built(tmp_path)
    assert _only(slow, 1030.0).phase is Phase.RUNNING
    assert _only(slow, 1045.0).phase is Phase.SUCCEEDED


def test_the_log_only_grows_and_says_that_it_is_simulated(tmp_path: Path) -> None:
    executor = _built(tmp_path)
    executor.bind(binding(uid=SOUND, expected_duration_s=100.0, time_limit_s=500.0))
    seen = b""
    for now_s in (1000.0, 1002.0, 1005.0, 1050.0, 1200.0):
        executor.observe(now_s=now_s)
        whole = executor.log(SOUND, 1, since=0, limit=10**6).data
        assert whole.startswith(seen)
        seen = whole
    lines = seen.decode().splitlines()
    assert len(lines) == 102
    assert all(line.startswith("simulated: ") for line in lines)
    assert lines[-1] == "simulated: succeeded after 100 s"


def test_some_jobs_fail_and_always_the_same_ones() -> None:
    record = {
        "bound_s": 0.0,
        "duration_s": 100.0,
        "done_s": 0.0,
        "time_limit_s": 200.0,
        "evict": None,
    }
    keys = [f"{index:08d}-0000-4000-8000-000000000000.1" for index in range(4000)]
    failed = [key for key in keys if part_of(key, record).phase is Phase.FAILED]
    assert 0.7 < len(failed) / 4000 / (FAILURES_PER_MILLE / 1000) < 1.3
    assert all(0 < part_of(key, record).end_s < 103.0 for key in failed)


def test_usage_lies_within_what_was_asked_for(tmp_path: Path) -> None:
    executor = _built(tmp_path)
    executor.bind(binding(uid=SOUND, cpu_milli=4000, memory_mib=1000, replicas=replicas(2)))
    executor.observe(now_s=1000.0)
    seen = _only(executor, 1004.0)
    assert seen.cpu_frac is not None
    assert seen.memory_mib is not None
    assert 4.8 <= seen.cpu_frac <= 8.0
    assert 1000 <= seen.memory_mib <= 2000


def test_one_damaged_record_costs_one_job_only(tmp_path: Path) -> None:
    executor = _built(tmp_path)
    other = binding()
    executor.bind(binding(uid=SOUND))
    executor.bind(other)
    (tmp_path / "active" / f"{SOUND}.1.json").write_text(json.dumps({"cpu_milli": 3}))
    (tmp_path / "clock.json").write_text("{")
    found = {each.uid: each.phase for each in executor.observe(now_s=1000.0)}
    assert found == {SOUND: Phase.LOST, other.uid: Phase.STARTING}


def test_wrong_options_are_named(tmp_path: Path) -> None:
    with pytest.raises(ExecutorRejectedError, match="folder"):
        build(ExecutorSettings("demo"))
    with pytest.raises(ExecutorRejectedError, match="clock"):
        build(ExecutorSettings("demo", {"folder": tmp_path, "clock": 3}))
