"""What a supervisor sees of a job's checkpoints."""

import os
import time
from pathlib import Path

import pytest

from scheduler.execute.base import Phase
from scheduler.execute.local import checkpoints
from scheduler.execute.local.checkpoints import newest_checkpoint_s, prepare_checkpoints
from tests.scheduler.execute.builders import binding
from tests.scheduler.execute.local.conftest import Bench

SAVE = 'echo weights > "$KILTER_CHECKPOINT_DIR/.new"; mv "$KILTER_CHECKPOINT_DIR/.new"'


def put(path: Path, at_s: float) -> Path:
    """Write a file as if at `at_s`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("weights")
    os.utime(path, (at_s, at_s))
    return path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    prepare_checkpoints(tmp_path, None)
    return tmp_path


def test_the_newest_file_counts_however_it_is_sorted_into_folders(work: Path) -> None:
    assert newest_checkpoint_s(work) is None
    put(work / "checkpoints" / "step-9.pt", 100.0)
    put(work / "checkpoints" / "step-10" / "rank-0" / "state.pt", 300.0)
    put(work / "checkpoints" / "step-8" / "state.pt", 200.0)
    put(work / "elsewhere.pt", 900.0)
    assert newest_checkpoint_s(work) == 300.0


def test_half_a_checkpoint_under_a_dotted_name_does_not_count(work: Path) -> None:
    put(work / "checkpoints" / "whole.pt", 100.0)
    put(work / "checkpoints" / ".half.pt", 200.0)
    put(work / "checkpoints" / ".half" / "state.pt", 300.0)
    assert newest_checkpoint_s(work) == 100.0


def test_links_are_not_followed_nor_read(work: Path, tmp_path: Path) -> None:
    put(tmp_path / "foreign" / "secret", 900.0)
    (work / "checkpoints" / "file").symlink_to(tmp_path / "foreign" / "secret")
    (work / "checkpoints" / "folder").symlink_to(tmp_path / "foreign")
    os.mkfifo(work / "checkpoints" / "pipe")
    assert newest_checkpoint_s(work) is None


def test_a_folder_that_became_a_link_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path / "foreign" / "secret", 900.0)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "checkpoints").symlink_to(tmp_path / "foreign")
    prepare_checkpoints(tmp_path / "work", None)
    assert newest_checkpoint_s(tmp_path / "work") is None
    assert newest_checkpoint_s(tmp_path / "never made") is None


def test_deep_trees_and_many_names_end_a_look(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = work / "checkpoints"
    for _ in range(200):
        deep /= "d"
    put(deep / "state.pt", 900.0)
    assert newest_checkpoint_s(work) is None
    monkeypatch.setattr(checkpoints, "NAMES_MOST", 50)
    for number in range(60):
        put(work / "checkpoints" / "many" / str(number), 100.0 + number)
    seen_s = newest_checkpoint_s(work)
    assert seen_s is None or 100.0 <= seen_s < 160.0


def test_a_job_is_told_where_to_write_and_is_seen_to_write(bench: Bench) -> None:
    before_s = time.time()
    job = binding(f'{SAVE} "$KILTER_CHECKPOINT_DIR/state"', env={"KILTER_CHECKPOINT_DIR": "/tmp"})
    end = bench.run(job)
    assert end.phase is Phase.SUCCEEDED
    assert end.checkpointed_s is not None
    # File systems stamp by a clock that ticks every few milliseconds.
    assert before_s - 0.1 <= end.checkpointed_s <= time.time()


def test_a_checkpoint_is_seen_while_the_job_runs(bench: Bench) -> None:
    job = binding(f'{SAVE} "$KILTER_CHECKPOINT_DIR/state"; sleep 60')
    bench.executor.bind(job)
    bench.until(lambda: bench.observed(job).checkpointed_s is not None)
    assert bench.observed(job).phase is Phase.RUNNING


def test_what_is_saved_in_the_grace_counts_and_the_next_attempt_finds_it(bench: Bench) -> None:
    saving = f"""trap '{SAVE} "$KILTER_CHECKPOINT_DIR/state"; exit 0' TERM; echo on; """
    first = binding(f"{saving} while :; do sleep 0.1; done")
    bench.executor.bind(first)
    bench.until_output(first, b"on\n")
    asked_s = time.time()
    bench.executor.evict(first.uid, 1, grace_s=10.0, reason="preempted")
    end = bench.finished(first)
    assert end.checkpointed_s is not None
    assert end.checkpointed_s >= asked_s - 0.1
    second = binding('cat "$KILTER_CHECKPOINT_DIR/state"', uid=first.uid, attempt=2)
    assert bench.run(second).checkpointed_s == end.checkpointed_s
    assert bench.output(second) == b"weights\n"


def test_checkpoints_go_with_the_job(bench: Bench) -> None:
    job = binding(f'{SAVE} "$KILTER_CHECKPOINT_DIR/state"')
    bench.run(job)
    kept = bench.folder / "work" / job.uid / "checkpoints" / "state"
    bench.executor.forget(job.uid, 1)
    assert kept.exists()
    bench.executor.purge(job.uid, [1])
    assert not kept.parent.parent.exists()
