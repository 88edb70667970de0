"""Events of jobs a minute that the simulator plays, on one core.

python -m benchmarks.simulate --json
"""

import argparse
import gc
import json
import resource
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.fleets import world
from scheduler.core.policy import Policy
from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import Fleet, JobSpec, Snapshot
from scheduler.management.arguments import number, seed, whole
from scheduler.simulate.baselines import fifo, priority_only
from scheduler.simulate.decider import Decider, by_policy
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.metrics import totals
from scheduler.simulate.run import simulate

DECIDERS = ("fifo", "priority_only", "rules")
MEAN_WORK_S = 3600.0


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark and print one JSON object last."""
    args = _arguments(argv)
    site = empty(world(args.nodes, 0, args.seed, busy=0.0))
    jobs = stream(site.fleet, args.jobs, args.load, args.seed, begin_s=site.now_s)
    result = measure(site, jobs, _decider(args.policy))
    result |= {"policy": args.policy, "nodes": args.nodes, "load": args.load, "seed": args.seed}
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result["peak_rss_mib"] = round(peak_kib / 1024, 1)
    print(json.dumps(result, indent=None if args.json else 2), flush=True)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.simulate", description=__doc__)
    parser.add_argument(
        "--nodes", type=whole(1), default=100, help="of 8 devices each, nine in ten"
    )
    parser.add_argument("--jobs", type=whole(1), default=300_000)
    parser.add_argument(
        "--load", type=number(0, above=True), default=0.8, help="asked of the devices' time"
    )
    parser.add_argument("--policy", choices=DECIDERS, default="fifo")
    parser.add_argument("--seed", type=seed, default=0)
    parser.add_argument("--json", action="store_true", help="on one line")
    return parser.parse_args(argv)


def _decider(name: str) -> Decider:
    if name == "rules":
        return by_policy(Policy(strategy="rules"))
    return fifo() if name == "fifo" else priority_only()


def empty(snapshot: Snapshot) -> Snapshot:
    """Return a world in which nothing waits or runs."""
    return replace(snapshot, pending=(), running=())


def stream(fleet: Fleet, count: int, load: float, seed: int, *, begin_s: float) -> list[SimJob]:
    """Return a Poisson stream of small jobs that asks for a part of the devices' time."""
    rng = np.random.default_rng(seed)
    devices = rng.choice([1, 1, 1, 1, 2, 2, 4], size=count)
    work_s = rng.exponential(MEAN_WORK_S, size=count) + 1.0
    usable = int((fleet.device_healthy & fleet.node_ready[fleet.device_node]).sum())
    gap_s = float((devices * work_s).mean()) / (load * usable)
    at_s = begin_s + np.cumsum(rng.exponential(gap_s, size=count))
    return [
        SimJob(_spec(i, int(devices[i]), float(at_s[i]), float(work_s[i])), float(work_s[i]))
        for i in range(count)
    ]


def _spec(i: int, devices: int, at_s: float, work_s: float) -> JobSpec:
    return JobSpec(
        uid=f"job-{i:08d}",
        tenant=f"team-{i % 12:02d}",
        kind="training",
        shape=ReplicaShape(4000 * devices, 32_768 * devices, devices),
        replicas_min=1,
        replicas_max=1,
        flavors=(),
        priority=0,
        preemptible=True,
        time_limit_s=2 * work_s,
        submitted_s=at_s,
    )


def measure(site: Snapshot, jobs: Sequence[SimJob], decider: Decider) -> dict[str, Any]:
    """Return the figures of one simulation."""
    gc.collect()
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    result = simulate(site, jobs, decider)
    wall_s = time.perf_counter() - began_s
    cpu_s = time.process_time() - began_cpu_s
    seen = totals(result)
    return {
        "events_per_min": round(60 * result.events / wall_s),
        "events_per_cpu_min": round(60 * result.events / cpu_s),
        "events": result.events,
        "evictions": sum(job.evictions for job in result.jobs),
        "cycles": result.cycles,
        "cycle_ms": round(1000 * wall_s / max(result.cycles, 1), 4),
        "wall_s": round(wall_s, 2),
        "cpu_s": round(cpu_s, 2),
        "jobs": len(jobs),
        "simulated_days": round((result.end_s - result.begin_s) / 86400, 2),
        "allocated_pct": round(100 * seen.allocated_device_s / seen.capacity_device_s, 2),
    }


if __name__ == "__main__":
    main()
