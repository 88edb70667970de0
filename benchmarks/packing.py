"""How full a policy packs the cluster of the FGD paper, beside FGD on the same streams.

python -m benchmarks.packing --data DIR --workload default --policy rules --seeds 42,43 --json

A seed stands for some streams (--streams), as one stream says little. `variant` says whether the
policy keeps to the protocol ("online": each job is placed as it arrives and stays) or may more: a
window of waiting jobs placed jointly (--window), moves of jobs that run (--migrations), or the
`optimising` strategy of the engine, which is given a window, too.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs import refused
from benchmarks.packing_optimising import run_optimising
from benchmarks.packing_published import SEEDS, WORKLOADS, published
from benchmarks.packing_run import RULES, Freedom, Run, run_one
from benchmarks.packing_stream import Trace, lists_of, load
from scheduler.decide.scores.choice import SCORES
from scheduler.decide.scores.state import CLASSES
from scheduler.management.arguments import number, seeds, whole

OPTIMISING, OPTIMISING_WINDOW = "optimising", 400
"""The engine's strategy, and how many arrivals it decides together unless --window says so."""
ALL = "all"
"""Stands for the workloads of the paper."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark and print one JSON object last; of several workloads each one's before."""
    parser = _parser()
    args, results = _checked(parser, parser.parse_args(argv)), []
    with refused(parser):
        traces = {name: load(Path(args.data), name) for name in _names(args)}
    for name, trace in traces.items():
        results.append(measure(args, name, trace))
        _tell(results[-1])
        if args.workload == ALL:  # is kept, whatever becomes of those after it
            print(json.dumps(results[-1]), flush=True)
    result = results[0] if args.workload != ALL else summary(results)
    print(json.dumps(result, indent=None if args.json else 2), flush=True)


def _names(args: argparse.Namespace) -> tuple[str, ...]:
    return WORKLOADS if args.workload == ALL else (args.workload,)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.packing", description=__doc__)
    parser.add_argument("--data", required=True, help="folder of the openb lists")
    parser.add_argument("--workload", default="default", help="one of the lists, or all")
    parser.add_argument("--policy", choices=[*SCORES, "rules", OPTIMISING], default="rules")
    parser.add_argument("--seeds", type=seeds, default="42,43,44", help="separated by commas")
    parser.add_argument("--streams", type=whole(1), default=4, help="of each seed")
    parser.add_argument("--window", type=whole(0), default=0, help="waiting jobs placed jointly")
    parser.add_argument(
        "--migrations", type=whole(0), default=0, help="moves for an arrival, at most"
    )
    parser.add_argument("--budget", type=number(0), default=10.0, help="seconds of a MILP decision")
    parser.add_argument("--json", action="store_true", help="on one line")
    return parser


def _checked(parser: argparse.ArgumentParser, args: argparse.Namespace) -> argparse.Namespace:
    """Return arguments that go together; a mistake ends here, before anything is measured."""
    if args.policy == OPTIMISING:
        args.window = args.window or OPTIMISING_WINDOW
    elif args.window and args.policy not in {"rules", RULES}:
        parser.error("--window goes with the policies rules and optimising")
    if args.migrations and args.policy not in {"rules", RULES}:
        parser.error("--migrations goes with the policy rules")
    if args.window and args.migrations:
        parser.error("--window and --migrations do not go together")
    for path in (path for name in _names(args) for path in lists_of(Path(args.data), name)):
        if not path.is_file():
            parser.error(f"there is no list {path}")
    return args


def measure(args: argparse.Namespace, workload: str, trace: Trace) -> dict[str, Any]:
    """Return the figures of one workload."""
    score = RULES if args.policy == "rules" else args.policy
    _one(args, trace, score, args.seeds[0], jobs=200)  # compiles
    runs = [[_one(args, trace, score, seed, k) for k in range(args.streams)] for seed in args.seeds]
    fgd = runs
    if score != "fgd":
        fgd = [
            [run_one(trace, "fgd", seed, stream=k) for k in range(args.streams)]
            for seed in args.seeds
        ]
    result = {"workload": workload, "policy": args.policy, "variant": variant(args)}
    result |= {"seeds": args.seeds, "streams": args.streams, **figures(runs), "fgd": figures(fgd)}
    result["published"] = beside_published(workload, score, runs)
    every = [run for of_seed in runs for run in of_seed]
    result["decisions_per_s"] = round(float(np.mean([run.decisions_per_s for run in every])))
    if args.migrations:
        result["moves_mean"] = round(float(np.mean([run.moves for run in every])), 1)
    return result


def _one(
    args: argparse.Namespace,
    trace: Trace,
    score: str,
    seed: int,
    stream: int = 0,
    *,
    jobs: int | None = None,
) -> Run:
    """Return the figures of one stream, or of its first jobs, under the policy asked for."""
    if score == OPTIMISING:
        window, budget_s = args.window, args.budget
        return run_optimising(
            trace, seed, stream=stream, window=window, budget_s=budget_s, jobs=jobs
        )
    freedom = Freedom(args.window, args.migrations)
    return run_one(trace, score, seed, stream=stream, jobs=jobs, freedom=freedom)


def variant(args: argparse.Namespace) -> str:
    """Return what the policy may do beyond placing each job as it arrives, in words."""
    if args.policy == OPTIMISING:
        return f"{OPTIMISING}, window of {args.window}, {args.budget:g} s"
    if args.window:
        return f"window of {args.window}"
    return f"{args.migrations} migrations" if args.migrations else "online"


def figures(runs: Sequence[Sequence[Run]]) -> dict[str, Any]:
    """Return allocation by seed and on average, and what part of each class was accepted.

    Args:
        runs: the streams of each seed.
    """
    every = [run for of_seed in runs for run in of_seed]
    arrived = reduce(add, [run.arrived for run in every])
    accepted = reduce(add, [run.accepted for run in every])
    allocated = [float(np.mean([run.allocated_pct for run in of_seed])) for of_seed in runs]
    return {
        "allocated_pct": [round(value, 3) for value in allocated],
        "allocated_pct_mean": round(float(np.mean(allocated)), 3),
        "accepted_pct_by_class": {
            name: round(100 * int(accepted[k]) / int(arrived[k]), 2)
            for k, name in enumerate(CLASSES)
            if arrived[k]
        },
    }


def beside_published(
    workload: str, policy: str, runs: Sequence[Sequence[Run]]
) -> dict[str, Any] | None:
    """Return the published mean, the difference and its standard error, all in points.

    The streams differ from the published ones, so a difference of about two standard errors is
    chance; None where nothing was published.
    """
    known = published(workload, policy)
    if known is None:
        return None
    mean, scatter = known
    ours = [run.allocated_pct for of_seed in runs for run in of_seed]
    error = math.sqrt(scatter**2 * (1 / SEEDS + 1 / len(ours)))
    difference = float(np.mean(ours)) - mean
    return {"mean": mean, "difference": round(difference, 3), "standard_error": round(error, 3)}


def changes(result: dict[str, Any]) -> Iterator[tuple[float, str]]:
    """Give, for each class, the points that more of it are accepted than under FGD."""
    fgd = result["fgd"]["accepted_pct_by_class"]
    for name, accepted in result["accepted_pct_by_class"].items():
        yield round(accepted - fgd[name], 2), name


def gain(result: dict[str, Any]) -> float:
    """Return the points of devices allocated above FGD."""
    return round(float(result["allocated_pct_mean"] - result["fgd"]["allocated_pct_mean"]), 3)


def summary(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of all workloads, and what they say together."""
    first = results[0]
    gains = [gain(result) for result in results]
    worst, name, workload = min(
        (*change, result["workload"]) for result in results for change in changes(result)
    )
    same = {key: first[key] for key in ("policy", "variant", "seeds", "streams")}
    return {
        "workload": ALL,
        **same,
        "allocated_pct_mean": round(
            float(np.mean([result["allocated_pct_mean"] for result in results])), 3
        ),
        "gain_mean": round(float(np.mean(gains)), 3),
        "gain_least": min(gains),
        "above_fgd": sum(each > 0 for each in gains),
        "worst_class": {"workload": workload, "class": name, "points": worst},
        "decisions_per_s": min(result["decisions_per_s"] for result in results),
        "workloads": list(results),
    }


def _tell(result: dict[str, Any]) -> None:
    worst, name = min(changes(result))
    line = f"{result['workload']:12} {result['allocated_pct_mean']:6.2f} {gain(result):+.2f}"
    line += f"  worst class {name} {worst:+.2f}  {result['decisions_per_s']}/s"
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
