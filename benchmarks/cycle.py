"""One decision cycle on a synthetic cluster, beside a plain first-fit loop in the same process.

python -m benchmarks.cycle --nodes 1000 --pending 2000 --policy rules --json

`gap_pct` is the strategy's own: for each band of the queue, what the bound of its program leaves
to be gained on what the bands ahead of it left, in sum. With --reference SECONDS there are two more
gaps of our plan, each to the bound of a long solve:

reference_in_bands: under the same rules. Priority classes one after the other, in each those first
whose tenant has room in its quota; HiGHS gets that long for every band. This is what our plan
could still gain with any amount of time. Below 0, a luckier choice ahead left more behind.

reference_joint: one program for the whole queue, without that order. Its bound holds for every
plan, whatever the rules; where the queue competes it shows what they cost. --one-class takes the
priority classes away. With --cpsat, CP-SAT gets this program and our budget.

With --lent those who wait own the whole cluster and others hold it, so that a cycle is full of
searches for whom to evict.
"""

import argparse
import json
import platform
import resource
import time
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.bands import in_bands_highs
from benchmarks.first_fit import first_fit
from benchmarks.fleets import after, lent, world
from benchmarks.joint import Joint
from scheduler.core.plan import Plan, Start
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.cycle import decide
from scheduler.decide.lasting import Decided, carried_over
from scheduler.decide.objective import Objective
from scheduler.decide.turns import Turns
from scheduler.management.arguments import number, seed, whole

MOST_CYCLES_TO_REST = 5
"""Starts of one cycle make room for no others, so a second one hardly ever starts anybody."""

LATER_S = 1.0
"""Cycles are a second apart, as in production; less where a job would end before."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark and print one JSON object last."""
    args = _arguments(argv)
    snapshot = (lent if args.lent else world)(args.nodes, args.pending, args.seed)
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
    parser.add_argument("--nodes", type=whole(0), default=1000)
    parser.add_argument("--pending", type=whole(0), default=2000)
    parser.add_argument("--policy", choices=["rules", "optimising"], default="rules")
    parser.add_argument("--budget", type=number(0, above=True), default=5.0, help="s")
    parser.add_argument("--seed", type=seed, default=0)
    parser.add_argument("--one-class", action="store_true", help="no priority classes")
    parser.add_argument("--lent", action="store_true", help="owners wait, borrowers hold all")
    parser.add_argument("--reference", type=number(0), default=0.0, help="seconds of a long solve")
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
    began_cpu_s = time.process_time()
    plan = _decided(snapshot, policy)
    cycle_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    solver = plan.solver
    return _figures(objective, plan.starts, cycle_s) | {
        "cycle_cpu_s": round(cpu_s, 4),
        "evictions": len(plan.preempts),
        "made_room_for": len({preempt.beneficiary for preempt in plan.preempts}),
        **decisions(snapshot, policy),
        **idle(snapshot, policy),
        "objective_rules": solver.objective_rules,
        "late_pct": round(100 * max(0.0, cycle_s / policy.budget_s - 1), 3),
        "gap_pct": None if solver.gap_frac is None else round(100 * solver.gap_frac, 3),
        "status": solver.status,
        "answered_by": solver.strategy,
        "baseline": {"first_fit": _figures(objective, baseline, first_fit_s)},
    }


def decisions(snapshot: Snapshot, policy: Policy) -> dict[str, float]:
    """Return how long one decision takes: one job's turn, started or planned and told why not."""
    turns, took_ms = Turns(snapshot, policy, now_s=snapshot.now_s), []
    for ranked in turns.queue():
        began_s = time.perf_counter()
        turns.turn(ranked)
        took_ms.append(1000 * (time.perf_counter() - began_s))
    p50_ms, p99_ms = np.percentile(took_ms or [0.0], [50, 99])
    return {"decision_p50_ms": round(p50_ms, 3), "decision_p99_ms": round(p99_ms, 3)}


def idle(snapshot: Snapshot, policy: Policy) -> dict[str, float]:
    """Return how long a cycle takes in which nothing changed, on a snapshot read anew.

    Beside it the same cycle decided anew, as it is when anything did change. All that runs has
    just begun: while evictions are under way a cluster is not at rest, and by the policy nobody
    is evicted in his first minutes.
    """
    for _ in range(MOST_CYCLES_TO_REST):
        begun = tuple(replace(job, started_s=snapshot.now_s) for job in snapshot.running)
        snapshot = replace(snapshot, running=begun)
        plan = _decided(snapshot, policy)
        if not plan.starts:
            break
        snapshot = after(snapshot, plan)
    last = Decided(snapshot, policy, plan)
    later_s = min(LATER_S, max(0.0, plan.lasts_until_s - snapshot.now_s) / 2)
    again = replace(deepcopy(snapshot), now_s=snapshot.now_s + later_s)
    began_s = time.perf_counter()
    same = _decided(again, policy, last)
    idle_s = time.perf_counter() - began_s
    began_s = time.perf_counter()
    _decided(again, policy)
    anew_s = time.perf_counter() - began_s
    return {
        "idle_cycle_ms": round(1000 * idle_s, 2),
        "idle_cycle_anew_ms": round(1000 * anew_s, 2),
        "idle_after_s": round(later_s, 3),
        "idle_waiting": len(same.pending),
        "idle_carried_over": carried_over(last, again, policy, now_s=again.now_s) is not None,
    }


def _decided(snapshot: Snapshot, policy: Policy, last: Decided | None = None) -> Plan:
    return decide(
        snapshot,
        policy,
        now_s=snapshot.now_s,
        budget_s=policy.budget_s,
        clock=time.perf_counter,
        last=last,
    )


def beside(
    snapshot: Snapshot, result: Mapping[str, Any], args: argparse.Namespace
) -> dict[str, Any]:
    """Return the solves that were asked for, each with the gap of our plan to its bound."""
    if not (args.reference or args.cpsat):
        return {}
    policy = Policy(strategy="optimising")
    joint, found = Joint(snapshot, policy), {}
    if args.reference:
        found["reference_in_bands"] = in_bands_highs(snapshot, policy, args.reference)
        found["reference_joint"] = joint.highs(args.reference)
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
