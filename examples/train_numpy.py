# noqa: INP001 - a script, no package
"""Train a small network with numpy, and write checkpoints: a real job to try Kilter with.

    python train_numpy.py [--steps 400] [--checkpoint FILE] [--pause 0.0]

It learns y = sin(x1) * cos(x2) from noisy points. Started again beside its checkpoint, it goes on
where it was: after a preemption no more than the steps since the last checkpoint are lost. SIGTERM
makes it write one and stop. Kilter names the folder where it looks for them.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weights = dict[str, Array]
HIDDEN, BATCH, RATE = 64, 256, 0.05


def main() -> int:
    """Train, and return the exit code."""
    args = parse_arguments()
    stop = Stop()
    weights, first = load(args.checkpoint)
    say(f"replica {os.environ.get('KILTER_REPLICA', '0')}: start at step {first} of {args.steps}")
    for step in range(first, args.steps):
        loss = train_step(weights, np.random.default_rng(step))
        if step % 20 == 0 or step == args.steps - 1:
            say(f"step {step} loss {loss:.5f}")
        if stop.asked or (step + 1) % args.every == 0:
            save(args.checkpoint, weights, step + 1)
        if stop.asked:
            say(f"stopped at step {step + 1}, checkpoint written")
            return 143
        time.sleep(args.pause)
    save(args.checkpoint, weights, args.steps)
    say("done")
    return 0


def parse_arguments() -> argparse.Namespace:
    """Return the command line's values."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--every", type=int, default=50, help="steps from checkpoint to checkpoint")
    folder = Path(os.environ.get("KILTER_CHECKPOINT_DIR", "."))
    own = folder / f"checkpoint-{os.environ.get('KILTER_REPLICA', '0')}.npz"
    parser.add_argument("--checkpoint", type=Path, default=own)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between steps")
    return parser.parse_args()


class Stop:
    """Becomes `asked` at SIGTERM."""

    def __init__(self) -> None:
        """Listen from now on."""
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True


def train_step(weights: Weights, rng: np.random.Generator) -> float:
    """Take one step of gradient descent in place; return the mean squared error before it."""
    points = rng.uniform(-2.0, 2.0, (BATCH, 2))
    wanted = np.sin(points[:, :1]) * np.cos(points[:, 1:]) + rng.normal(0.0, 0.01, (BATCH, 1))
    hidden = np.tanh(points @ weights["w1"] + weights["b1"])
    error = hidden @ weights["w2"] + weights["b2"] - wanted
    back = (error @ weights["w2"].T) * (1.0 - hidden**2)
    weights["w2"] -= RATE * hidden.T @ error / BATCH * 2.0
    weights["b2"] -= RATE * error.mean(axis=0) * 2.0
    weights["w1"] -= RATE * points.T @ back / BATCH * 2.0
    weights["b1"] -= RATE * back.mean(axis=0) * 2.0
    return float(np.mean(error**2))


def load(path: Path) -> tuple[Weights, int]:
    """Return weights and the next step, fresh ones where there is no checkpoint."""
    if not path.exists():
        rng = np.random.default_rng(0)
        shapes = {"w1": (2, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, 1), "b2": (1,)}
        return {name: rng.normal(0.0, 0.3, shape) for name, shape in shapes.items()}, 0
    with np.load(path) as stored:
        values = {name: stored[name] for name in stored.files}
    step = int(values.pop("step"))
    say(f"resumed from {path} at step {step}")
    return values, step


def save(path: Path, weights: Weights, step: int) -> None:
    """Replace the checkpoint in one step, so that a kill leaves the old one whole."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.npz")
    arrays: dict[str, Any] = {"step": np.int64(step), **weights}
    np.savez(fresh, **arrays)
    fresh.replace(path)


def say(line: str) -> None:
    """Print one line at once, for whoever watches the log."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
