"""How full a policy packs the cluster of the FGD paper, beside FGD on the same streams.

python -m benchmarks.packing --data DIR --workload default --policy rules --seeds 42,43 --json
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.packing_stream import Trace, load, nodes_of, stream_of
from scheduler.decide.scores.choice import SCORES, Scoring
from scheduler.decide.scores.learnt import Setting, counts_of, next_estimate, terms_of
from scheduler.decide.scores.placer import (
    Kept,
    nothing_kept,
    place_all,
    seed_chance,
    value_all,
)
from scheduler.decide.scores.state import (
    CLASSES,
    TYPICAL,
    IntArray,
    Nodes,
    Shapes,
    mix_of,
    scale_of,
)

RULES = "prices"
"""Our best score: what --policy rules stands for."""


class Run(NamedTuple):
    """Figures of one run: devices allocated, jobs arrived and accepted by class, speed."""

    allocated_pct: float
    arrived: IntArray
    accepted: IntArray
    decisions_per_s: float


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark and print one JSON object last."""
    args = _arguments(argv)
    seeds = [int(seed) for seed in args.seeds.split(",")]
    trace = load(Path(args.data), args.workload)
    score = RULES if args.policy == "rules" else args.policy
    run_one(trace, score, seeds[0], jobs=200)  # compiles
    runs = [run_one(trace, score, seed) for seed in seeds]
    baseline = runs if score == "fgd" else [run_one(trace, "fgd", seed) for seed in seeds]
    result = {"workload": args.workload, "policy": args.policy, "seeds": seeds, **figures(runs)}
    result["fgd"] = figures(baseline)
    result["decisions_per_s"] = round(float(np.mean([run.decisions_per_s for run in runs])))
    print(json.dumps(result, indent=None if args.json else 2), flush=True)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.packing", description=__doc__)
    parser.add_argument("--data", required=True, help="folder of the openb lists")
    parser.add_argument("--workload", default="default", help="openb_pod_list_<workload>.csv")
    parser.add_argument("--policy", choices=[*SCORES, "rules"], default="rules")
    parser.add_argument("--seeds", default="42,43,44", help="separated by commas")
    parser.add_argument("--json", action="store_true", help="on one line")
    return parser.parse_args(argv)


def figures(runs: Sequence[Run]) -> dict[str, Any]:
    """Return allocation by seed and on average, and what part of each class was accepted."""
    arrived = sum((run.arrived for run in runs), np.zeros(len(CLASSES), dtype=np.int64))
    accepted = sum((run.accepted for run in runs), np.zeros(len(CLASSES), dtype=np.int64))
    allocated = [run.allocated_pct for run in runs]
    return {
        "allocated_pct": [round(value, 3) for value in allocated],
        "allocated_pct_mean": round(float(np.mean(allocated)), 3),
        "accepted_pct_by_class": {
            name: round(100 * int(accepted[k]) / int(arrived[k]), 2)
            for k, name in enumerate(CLASSES)
            if arrived[k]
        },
    }


def run_one(
    trace: Trace,
    score: str,
    seed: int,
    *,
    jobs: int | None = None,
    setting: Setting | None = None,
) -> Run:
    """Return the figures of one stream under one score.

    Args:
        trace: the workload.
        score: one of `SCORES`.
        seed: of the stream and of the order that breaks ties; the same for every score.
        jobs: how many of the arrivals; all by default.
        setting: of `prices`.
    """
    rng = np.random.default_rng(seed)
    nodes, arrivals = nodes_of(trace, rng), stream_of(trace, rng)[:jobs]
    seed_chance(seed)
    placed = np.full(len(arrivals), -1, dtype=np.int64)
    kept = nothing_kept(len(trace.shapes.cpu), len(nodes.cpu), len(arrivals))
    capacity = int(nodes.milli.sum())
    began_s = time.perf_counter()
    if score == RULES:
        _place_learning(trace.shapes, nodes, kept, setting or Setting(), (arrivals, placed))
    else:
        _place_knowing(trace, nodes, kept, score, (arrivals, placed))
    took_s = time.perf_counter() - began_s
    kinds = trace.shapes.kind[arrivals]
    return Run(
        100 * (capacity - int(nodes.milli.sum())) / capacity,
        np.bincount(kinds, minlength=len(CLASSES)),
        np.bincount(kinds[placed >= 0], minlength=len(CLASSES)),
        len(arrivals) / took_s,
    )


def _place_knowing(
    trace: Trace, nodes: Nodes, kept: Kept, score: str, jobs: tuple[IntArray, IntArray]
) -> None:
    """Place with a baseline; FGD knows the mix of the whole file, as in its paper."""
    whole = np.bincount(trace.pods, minlength=len(trace.shapes.cpu)).astype(np.float64)
    mix = mix_of(trace.shapes, whole, cover=TYPICAL)
    scale = scale_of(nodes.cpu, nodes.devices)
    terms = terms_of(trace.shapes, whole, Setting(), scale)[1]
    scoring = Scoring(SCORES.index(score), nodes, trace.shapes, mix, terms, scale)
    value_all(scoring, kept)
    place_all(scoring, kept, *jobs)


def _place_learning(
    shapes: Shapes, nodes: Nodes, kept: Kept, setting: Setting, jobs: tuple[IntArray, IntArray]
) -> None:
    """Place with `prices`, which knows only what has arrived."""
    arrivals, placed = jobs
    start, scale = 0, scale_of(nodes.cpu, nodes.devices)
    while start < len(arrivals):
        stop = min(next_estimate(start, setting), len(arrivals))
        counts = counts_of(arrivals[:start], len(shapes.cpu), setting.half_life)
        mix, terms = terms_of(shapes, counts, setting, scale)
        scoring = Scoring(SCORES.index(RULES), nodes, shapes, mix, terms, scale)
        value_all(scoring, kept)
        place_all(scoring, kept, arrivals[start:stop], placed[start:stop])
        start = stop


if __name__ == "__main__":
    main()
