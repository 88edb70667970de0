"""A synthetic month of twelve teams under the rules, plain FIFO and priority alone.

python -m benchmarks.fairness --json

jain: Jain's index of what each team held against its fair share, over the time in which it asked
for more than that; per day, of the teams that did so for half of it at least; mean over the days,
weighted by the fair shares. A day is the window in which people compare what they got: jobs here
last for hours and take up to twice what a team owns, so that a shorter one measures how coarse jobs
are, too. jain_6h is that, jain_whole is the whole month as one window.

longest_starvation_s: longest time in which the first job of a team waited for devices that the team
owns, though the laws would have freed them, while none of its jobs started; held against
reclaim_delay_s, the delay, least run time and grace of the policy and two cycles.
longest_entitled_wait_s: the same time, whatever held the job up.

free_while_waiting_device_s: free devices times seconds while a job waited that fits on them and in
its quota. Of a policy that reserves it is told apart what was kept for a job ahead
(idle_kept_for_others_device_s) and what lay idle for no reason (idle_while_waiting_device_s); the
baselines give no reasons, so for them both are null.

law_violations: evictions against a law, checked apart from the engine, and jobs evicted more often
than allowed.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from benchmarks.fairness import month
from benchmarks.fairness.meter import Meter, Window, jain, merged
from scheduler.core.policy import Policy
from scheduler.management.arguments import number, seed
from scheduler.simulate.baselines import fifo, priority_only
from scheduler.simulate.decider import Decider
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.metrics import totals
from scheduler.simulate.result import Result
from scheduler.simulate.run import Pace, by_policy, simulate

POLICY = Policy(strategy="rules", remedy_depth=0, expects_starts=False, backfill_depth=8)
"""The rules as in production, without advice and expected starts; eight reservations are kept."""

CYCLE_S = 60.0
"""Seconds between cycles while jobs wait; the loop in production decides as often at least."""
WINDOW_S = 6 * month.HOUR_S
WINDOWS_A_DAY = 4

RESERVES = "rules"
"""The only one here that keeps devices for jobs ahead, and says so in its plans."""

DECIDERS: dict[str, Callable[[], Decider]] = {
    "rules": lambda: by_policy(POLICY),
    "fifo": fifo,
    "priority_only": priority_only,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark and print one JSON object last."""
    parser = _parser()
    args = parser.parse_args(argv)
    jobs = month.jobs(args.seed, args.days)
    if not jobs:
        parser.error(f"no job comes within {args.days:g} days: give more --days")
    result = {"days": args.days, "seed": args.seed, "jobs": len(jobs)}
    result |= {
        "devices": month.NODES * month.DEVICES_PER_NODE,
        "window_s": WINDOWS_A_DAY * WINDOW_S,
    }
    result |= {"reclaim_delay_s": reclaim_delay_s(), **measure(jobs, "rules", args.days)}
    result["baselines"] = {
        name: measure(jobs, name, args.days) for name in DECIDERS if name != "rules"
    }
    print(json.dumps(result, indent=None if args.json else 2), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.fairness", description=__doc__)
    parser.add_argument("--days", type=number(0, 3660, above=True), default=30.0)
    parser.add_argument("--seed", type=seed, default=0)
    parser.add_argument("--json", action="store_true", help="on one line")
    return parser


def reclaim_delay_s() -> float:
    """Return how long an entitled job may wait: the limits of the policy and two cycles."""
    limits = POLICY.preemption
    return limits.delay_s + limits.min_runtime_s + limits.grace_s + 2 * CYCLE_S


def measure(jobs: Sequence[SimJob], name: str, days: float) -> dict[str, Any]:
    """Return the figures of one month under one decider."""
    world = month.world()
    devices = month.NODES * month.DEVICES_PER_NODE
    meter = Meter(world.tenants, devices, WINDOW_S, POLICY.preemption)
    pace = Pace(
        least_s=CYCLE_S,
        wake_s=CYCLE_S,
        grace_s=POLICY.preemption.grace_s,
        until_s=month.BEGIN_S + days * month.DAY_S,
    )
    began_s = time.perf_counter()
    seen = simulate(world, jobs, DECIDERS[name](), pace=pace, watch=meter)
    wall_s = time.perf_counter() - began_s
    meter.close(seen.end_s)
    split = _split(meter) if name == RESERVES else dict.fromkeys(_split(meter))
    return {**_figures(meter, seen), **split, "wall_s": round(wall_s, 1)}


def _figures(meter: Meter, seen: Result) -> dict[str, Any]:
    sums = totals(seen)
    most = max((job.evictions for job in seen.jobs), default=0)
    too_often = sum(job.evictions > POLICY.preemption.most_evictions for job in seen.jobs)
    return {
        **_jain(meter.windows),
        "longest_starvation_s": max(meter.starved_by_law.longest_s.values(), default=0.0),
        "longest_entitled_wait_s": max(meter.starved.longest_s.values(), default=0.0),
        "free_while_waiting_device_s": round(meter.idle_device_s + meter.idle_kept_device_s),
        "law_violations": len(meter.violations) + too_often,
        "evictions": sum(job.evictions for job in seen.jobs),
        "most_evictions_of_a_job": most,
        "allocated_pct": _pct(sums.allocated_device_s, sums.capacity_device_s),
        "lost_pct": _pct(sums.lost_device_s, sums.allocated_device_s),
        "mean_wait_s": round(_mean([j.wait_s for j in seen.jobs if j.wait_s is not None])),
        "cycles": seen.cycles,
    }


def _split(meter: Meter) -> dict[str, int]:
    """Return what lay idle for no reason, and what was kept for a job ahead."""
    return {
        "idle_while_waiting_device_s": round(meter.idle_device_s),
        "idle_kept_for_others_device_s": round(meter.idle_kept_device_s),
    }


def _pct(part: float, whole: float) -> float | None:
    """Return a part in percent, None of nothing."""
    return round(100 * part / whole, 3) if whole else None


def _jain(windows: Mapping[int, Window]) -> dict[str, Any]:
    days: dict[int, list[Window]] = {}
    for k in sorted(windows):
        days.setdefault(k // WINDOWS_A_DAY, []).append(windows[k])
    daily = _found([merged(day) for day in days.values()], WINDOWS_A_DAY * WINDOW_S / 2)
    whole = jain(merged(windows.values()), 0.0)
    return {
        "jain": _weighted(daily),
        "jain_least": round(min(index for index, _ in daily), 4) if daily else None,
        "jain_days": len(daily),
        "jain_6h": _weighted(_found(windows.values(), WINDOW_S / 2)),
        "jain_whole": round(whole[0], 4) if whole else None,
    }


def _found(windows: Iterable[Window], least_s: float) -> list[tuple[float, float]]:
    return [one for window in windows if (one := jain(window, least_s))]


def _weighted(found: Sequence[tuple[float, float]]) -> float | None:
    weight = sum(fair for _, fair in found)
    return round(sum(index * fair for index, fair in found) / weight, 4) if weight else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


if __name__ == "__main__":
    main()
