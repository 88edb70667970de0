"""A real job: the training loop of the examples, preempted and gone on with."""

import sys
from pathlib import Path

import pytest

from scheduler.execute.base import Phase
from tests.scheduler.execute.builders import binding
from tests.scheduler.execute.local.conftest import Bench

SCRIPT = Path(__file__).resolve().parents[4] / "examples" / "train_numpy.py"


def test_training_goes_on_from_its_checkpoint_after_an_eviction(bench: Bench) -> None:
    pytest.importorskip("numpy")
    shown = bench.again(shown=(SCRIPT.parent,))
    command = f"{sys.executable} {SCRIPT} --every 10 --pause 0.01 --steps"
    first = binding(f"{command} 100000", grace_s=10.0)
    shown.executor.bind(first)
    bench.until_output(first, b"step 20 loss ")
    shown.executor.evict(first.uid, 1, grace_s=10.0, reason="preempted")
    assert bench.finished(first).phase is Phase.CANCELLED
    (stopped,) = [line for line in bench.output(first).splitlines() if b"stopped at step" in line]
    step = int(stopped.split(b" step ")[1].split(b",")[0])
    second = binding(f"{command} {step + 30}", uid=first.uid, attempt=2)
    shown.executor.bind(second)
    assert bench.finished(second).phase is Phase.SUCCEEDED
    lines = bench.output(second).decode().splitlines()
    assert lines[0].endswith(f"at step {step}")
    assert lines[-1] == "done"
    assert (
        bench.folder / "work" / first.uid / "checkpoints" / "checkpoint-0.npz"
    ).stat().st_size > 1000
