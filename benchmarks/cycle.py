"""One decision cycle on a synthetic cluster, beside a plain first-fit loop in the same process.

python -m benchmarks.cycle --nodes 1000 --pending 2000 --policy rules --json

With --reference SECONDS one program for the whole queue is solved for that long: its bound holds
for every plan, and `reference.gap_pct` is what ours could still gain. It leaves priority classes
out, so where these cost something, --one-class shows what the solver itself leaves. With --cpsat,
CP-SAT gets the same program and our budget.
"""

import argparse
import json
import platform
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.first_fit import first_fit
from benchmarks.fleets import world
from benchmarks.joint import Joint
from scheduler.core.plan import Start
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.cycle import decide
from scheduler.decide.objective import Objective
from scheduler.decide.turns import Turns


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark and print one JSON object last."""
    args = _arguments(argv)
    snapshot = world(args.nodes, args.pending, args.seed)
    if args.one_class:
        jobs = tuple(replace(job, priority=0) for job in snapshot.pending)
        snapshot = replace(snapshot, pending=jobs)
    result = measure(snapshot, Policy(strategy=args.policy, budget_s=args.budget))
    result |= beside(snapshot, result, args)
    result |= {"nodes": args.nodes, "pending": args.pending, "policy": args.policy}
    result |= {"seed": args.seed, "budget_s": args.budget, "machine": _machine()}
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result["peak_rss_mib"] = round(peak_kib / 1024, 1)
    print(json.dumps(result, indent=None if args.json else 2), flush=True)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.cycle", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pending", type=int, default=2000)
    parser.add_argument("--policy", choices=["rules", "optimising"], default="rules")
    parser.add_argument("--budget", type=float, default=5.0, help="seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one-class", action="store_true", help="no priority classes")
    parser.add_argument("--reference", type=float, default=0.0, help="seconds of a long solve")
    parser.add_argument("--cpsat", action="store_true", help="solve with CP-SAT, too")
    parser.add_argument("--json", action="store_true", help="on one line")
    return parser.parse_args(argv)


def measure(snapshot: Snapshot, policy: Policy) -> dict[str, Any]:
    """Return the figures of one cycle and of the baseline, valued by the same objective."""
    objective = Objective(Turns(snapshot, policy, now_s=snapshot.now_s))
    began_s = time.perf_counter()
    baseline = first_fit(snapshot)
    first_fit_s = time.perf_counter() - began_s
    began_s = time.perf_counter()
    plan = decide(
        snapshot,
        policy,
        now_s=snapshot.now_s,
        budget_s=policy.budget_s,
        clock=time.perf_counter,
    )
    cycle_s = time.perf_counter() - began_s
    solver = plan.solver
    return _figures(objective, plan.starts, cycle_s) | {
        "objective_rules": solver.objective_rules,
        "late_pct": round(100 * max(0.0, cycle_s / policy.budget_s - 1), 3),
        "gap_pct": None if solver.gap_frac is None else round(100 * solver.gap_frac, 3),
        "status": solver.status,
        "answered_by": solver.strategy,
        "baseline": {"first_fit": _figures(objective, baseline, first_fit_s)},
    }


def beside(
    snapshot: Snapshot, result: Mapping[str, Any], args: argparse.Namespace
) -> dict[str, Any]:
    """Return the solves that were asked for, each with the gap of our plan to its bound."""
    if not (args.reference or args.cpsat):
        return {}
    joint, found = Joint(snapshot, Policy(strategy="optimising")), {}
    if args.reference:
        found["reference"] = joint.highs(args.reference)
    if args.cpsat:
        found["cp_sat"] = joint.cp_sat(args.budget)
    for one in found.values():
        one["gap_pct"] = _gap_pct(result["objective"], one["bound"])
    return found


def _gap_pct(value: float, bound: float | None) -> float | None:
    """Return what is left to gain, relative to the larger of 1 and the value's size."""
    return None if bound is None else round(100 * (bound - value) / max(1.0, abs(value)), 3)


def _figures(objective: Objective, starts: Sequence[Start], cycle_s: float) -> dict[str, Any]:
    placements = sum(len(start.replicas) for start in starts)
    return {
        "cycle_s": round(cycle_s, 4),
        "placements": placements,
        "placements_per_s": round(placements / cycle_s, 1),
        "jobs_started": len(starts),
        "objective": objective.value(objective.after(starts)),
    }


def _machine() -> dict[str, object]:
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpuinfo:  # noqa: PTH123
        names = [line.split(":")[1].strip() for line in cpuinfo if line.startswith("model name")]
    return {
        "cpu": names[0] if names else model,
        "cores": len(names) or None,
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    main()
