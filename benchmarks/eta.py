"""Starts on replayed traces against the expected starts that the jobs were given when they came.

python -m benchmarks.eta --data DIR --json      # DIR holds openb/ and gavel/

A job counts that was told to wait in its first cycle and has started since; what it was told then
is compared with its start. The first part of each trace, when nothing is known yet, is left out.
Horizons are by the P50 that was told. Beside it the naive expectation: the place in the queue times
the mean gap between the last starts, told at the same moments. What hits one queue hits all who
wait in it, so that their errors come together: each trace is played with several seeds, and what
each of these gave stands in `by_seed`, of both traces together and, under `traces`, of each alone.

What the traces leave open, and what was made of it:

- They have no time limits. A user's limit is the run time times a factor, rounded up to a quarter
  of an hour; the factor is drawn from exp(uniform(log 1.1, log 10)), as limits asked for are mostly
  far too long (Mu'alem and Feitelson, "Utilization, Predictability, Workloads, and User Runtime
  Estimates in Scheduling the IBM SP2 with Backfilling", 2001).
- openb's cluster is so large that nobody waits there. Every k-th node is kept and pods arrive
  --openb-speed times as dense, so that more is asked for than there is in the busy hours, and
  less in the others. Pods that could never run on what is left are left out.
- Gavel's jobs arrive --gavel-speed times as dense, on 36 devices each of K80, P100 and V100. Most
  of them come in a few bursts of hundreds within minutes, and then wait for weeks.
- Cycles keep a distance of --openb-pace and --gavel-pace seconds, small beside the waits.
- Nobody is told what would help, and with one tenant nobody has anything to claim back: neither
  changes a start.
"""

import argparse
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.inputs import lines_of, refused, text_of
from scheduler.core.plan import Plan
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.snapshot import Snapshot
from scheduler.decide.admission import refusal
from scheduler.decide.session import Session
from scheduler.management import arguments
from scheduler.simulate.decider import by_policy, looks_at_mix
from scheduler.simulate.errors import TraceError
from scheduler.simulate.expected import remembering
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.pace import Pace
from scheduler.simulate.run import simulate
from scheduler.simulate.traces import gavel, openb

POLICY = Policy(strategy="rules", remedy_depth=0, preemption=PreemptionPolicy(by_reclaim=False))
HOUR_S = 3600.0
HORIZONS = {
    "<10 min": 600.0,
    "<1 h": HOUR_S,
    "<6 h": 6 * HOUR_S,
    "<1 d": 24 * HOUR_S,
    "more": float("inf"),
}
WARM_UP = 0.1
"""Part of the jobs that comes before anything is known."""

GAPS = 100
"""So many of the last starts make the mean gap of the naive expectation."""

WAKE_S = 6 * HOUR_S
"""Between events nothing but ages and delays changes; a cycle runs at every event all the same."""

PROGRESS_S = 5.0

FACTOR = (1.1, 10.0)
LIMIT_STEP_S = 900.0


class Told(NamedTuple):
    """What a job was told when it came: waits in seconds, and its wait in truth."""

    p50_s: float
    p90_s: float
    naive_s: float
    waited_s: float
    gang: bool


@dataclass(frozen=True, slots=True)
class Replay:
    """A trace made ready to be played, and the least distance of its cycles."""

    name: str
    seed: int
    world: Snapshot
    jobs: Sequence[SimJob]
    pace_s: float


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark and print one JSON object last."""
    parser = _parser()
    args = parser.parse_args(argv)
    with refused(parser):
        made = [one for seed in args.seeds for one in replays(args, seed)]
    told: dict[tuple[str, int], list[Told]] = {}
    traces: dict[str, dict[str, Any]] = {}
    for replay in made:
        began_s = time.perf_counter()
        told[replay.name, replay.seed] = play(replay)
        trace = traces.setdefault(replay.name, {"jobs": len(replay.jobs), "wall_s": 0.0})
        trace["wall_s"] = round(trace["wall_s"] + time.perf_counter() - began_s, 1)
    for name in traces:
        own = {key: some for key, some in told.items() if key[0] == name}
        traces[name] |= figures([one for some in own.values() for one in some])
        traces[name] |= {"by_seed": _by_seed(own)}
    answer = figures([one for some in told.values() for one in some])
    answer |= {"by_seed": _by_seed(told), "traces": traces, "warm_up": WARM_UP}
    answer |= {"seeds": args.seeds, "limit_factor": FACTOR, "limit_step_s": LIMIT_STEP_S}
    print(json.dumps(answer, indent=None if args.json else 2), flush=True)


def _by_seed(told: Mapping[tuple[str, int], Sequence[Told]]) -> dict[str, Any]:
    """Return seed -> the figures of all that was played with it."""
    together: dict[int, list[Told]] = {}
    for (_, seed), some in told.items():
        together.setdefault(seed, []).extend(some)
    return {str(seed): _figures(some) for seed, some in together.items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks.eta", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of openb/ and gavel/")
    parser.add_argument("--only", choices=["openb", "gavel"], help="one of the traces")
    parser.add_argument(
        "--openb-jobs", type=arguments.whole(1), default=1000, help="the last so many"
    )
    parser.add_argument(
        "--openb-every", type=arguments.whole(1), default=120, help="of its nodes, one in so many"
    )
    parser.add_argument(
        "--openb-speed", type=arguments.number(0, above=True), default=8.0, help="of its arrivals"
    )
    parser.add_argument(
        "--openb-pace", type=arguments.number(0), default=30.0, help="least s between cycles"
    )
    parser.add_argument(
        "--gavel-speed", type=arguments.number(0, above=True), default=1.2, help="of its arrivals"
    )
    parser.add_argument(
        "--gavel-jobs", type=arguments.whole(0), default=0, help="the first so many; 0 = all"
    )
    parser.add_argument(
        "--gavel-pace", type=arguments.number(0), default=120.0, help="least s between cycles"
    )
    parser.add_argument(
        "--seeds", type=arguments.seeds, default="0,1,2", help="separated by commas"
    )
    parser.add_argument("--json", action="store_true", help="on one line")
    return parser


def replays(args: argparse.Namespace, seed: int) -> list[Replay]:
    """Return the traces that were asked for, with limits drawn by a seed.

    Raises:
        OSError, TraceError: a list is missing, is none, or has nothing to play.
    """
    made = []
    if args.only != "gavel":
        made.append(_openb(args, seed))
    if args.only != "openb":
        made.append(_gavel(args, seed))
    for replay in made:
        if not replay.jobs:
            raise TraceError(str(args.data), 0, "", replay.name, "has no job that can be played")
    return made


def _openb(args: argparse.Namespace, seed: int) -> Replay:
    folder = args.data / "openb"
    lists = ("openb_node_list_gpu_node.csv", "openb_pod_list_default.csv")
    nodes = openb.read_nodes(lines_of(folder / lists[0]), lists[0])
    pods = openb.read_pods(lines_of(folder / lists[1]), lists[1])
    world = openb.sim_world(nodes[:: args.openb_every])
    last = sorted(pods, key=lambda pod: (pod.created_s, pod.name))[-args.openb_jobs :]
    begin_s = last[0].created_s if last else 0.0
    dense = [replace(pod, created_s=(pod.created_s - begin_s) / args.openb_speed) for pod in last]
    jobs = openb.sim_jobs(dense, limit_frac=1.0)
    session = Session(world, POLICY, now_s=world.now_s)
    jobs = [job for job in jobs if refusal(session, job.spec) is None]
    limited = _limited(jobs, lambda job: job.work, seed)
    return Replay("openb", seed, world, limited, args.openb_pace)


def _gavel(args: argparse.Namespace, seed: int) -> Replay:
    folder, world = args.data / "gavel", gavel.paper_cluster()
    traced = gavel.read_jobs(lines_of(folder / "msr_seed0.trace"), "msr_seed0.trace")
    rates = folder / "simulation_throughputs.json"
    throughputs = gavel.read_throughputs(text_of(rates), rates.name)
    first = traced[: args.gavel_jobs or None]
    dense = [replace(job, arrival_s=job.arrival_s / args.gavel_speed) for job in first]
    jobs, _ = gavel.sim_jobs(dense, throughputs, list(gavel.CLUSTER), begin_s=0.0, limit_frac=1.0)
    longest = lambda job: job.work / min(job.throughput.values())  # noqa: E731 - on its slowest
    return Replay("gavel", seed, world, _limited(jobs, longest, seed), args.gavel_pace)


def _limited(
    jobs: Sequence[SimJob], longest_s: Callable[[SimJob], float], seed: int
) -> list[SimJob]:
    """Return the jobs with limits as users ask for them."""
    rng = np.random.default_rng(seed)
    low, high = (float(np.log(factor)) for factor in FACTOR)
    factors = np.exp(rng.uniform(low, high, size=len(jobs)))
    limits = [
        LIMIT_STEP_S * np.ceil(longest_s(job) * factor / LIMIT_STEP_S)
        for job, factor in zip(jobs, factors, strict=True)
    ]
    return [
        replace(job, spec=replace(job.spec, time_limit_s=float(limit)))
        for job, limit in zip(jobs, limits, strict=True)
    ]


class Naive:
    """What one would say without a plan: the place in the queue times the mean gap of starts."""

    def __init__(self) -> None:
        self._starts: deque[float] = deque(maxlen=GAPS)
        self.said: dict[str, float] = {}

    def watch(self, _: Snapshot, plan: Plan) -> None:
        """Note the starts of a plan, and what is said to those that it first lets wait."""
        self._starts.extend([plan.now_s] * len(plan.starts))
        gaps = max(1, len(self._starts) - 1)
        gap_s = (plan.now_s - self._starts[0]) / gaps if self._starts else 0.0
        for told in plan.pending:
            self.said.setdefault(told.uid, told.position * gap_s)


class Progress:
    """Says now and then how far a replay is, on the error stream."""

    def __init__(self, replay: Replay) -> None:
        self._name, self._jobs = replay.name, len(replay.jobs)
        self._started, self._said_s = 0, time.perf_counter()

    def watch(self, snapshot: Snapshot, plan: Plan) -> None:
        """Note a cycle."""
        self._started += len(plan.starts)
        now_s = time.perf_counter()
        if now_s >= self._said_s + PROGRESS_S:
            self._said_s = now_s
            waiting = len(snapshot.pending)
            line = f"{self._name}: {self._started} of {self._jobs} started, {waiting} wait"
            print(line, file=sys.stderr, flush=True)


def play(replay: Replay) -> list[Told]:
    """Return what the jobs of a trace were told, and how long they waited."""
    naive = Naive()
    decider = remembering(WhenAsked(POLICY))
    progress = Progress(replay)

    def watch(snapshot: Snapshot, plan: Plan) -> None:
        naive.watch(snapshot, plan)
        progress.watch(snapshot, plan)

    pace = Pace(wake_s=WAKE_S, least_s=replay.pace_s)
    result = simulate(replay.world, replay.jobs, decider, pace=pace, watch=watch)
    ordered = sorted(result.jobs, key=lambda job: (job.submitted_s, job.uid))
    gangs = {job.spec.uid for job in replay.jobs if job.spec.replicas_min > 1}
    told = []
    for job in ordered[int(WARM_UP * len(ordered)) :]:
        eta = job.eta
        if eta and eta.p50_s is not None and eta.p90_s is not None and job.starts:
            waits = (eta.p50_s - eta.given_s, eta.p90_s - eta.given_s, naive.said[job.uid])
            told.append(Told(*waits, job.starts[0] - eta.given_s, job.uid in gangs))
    return told


class WhenAsked:
    """The decider of a policy that works out expected starts for new jobs only."""

    def __init__(self, policy: Policy) -> None:
        self._full, self._plain = (
            by_policy(policy),
            by_policy(replace(policy, expects_starts=False)),
        )
        self._seen: set[str] = set()
        self.looks_at_mix = looks_at_mix(self._full)

    def __call__(self, snapshot: Snapshot, now_s: float) -> Plan:
        """Return the plan of one cycle."""
        new = {job.uid for job in snapshot.pending} - self._seen
        self._seen |= new
        return (self._full if new else self._plain)(snapshot, now_s)


def figures(told: Sequence[Told]) -> dict[str, Any]:
    """Return how often and how well expectations came true, in all and by horizon."""
    low, by_horizon = 0.0, {}
    for name, high in HORIZONS.items():
        by_horizon[name] = _figures([one for one in told if low <= one.p50_s < high])
        low = high
    gangs = _figures([one for one in told if one.gang])
    return _figures(told) | {"by_horizon": by_horizon, "gangs": gangs}


def _figures(told: Sequence[Told]) -> dict[str, Any]:
    if not told:
        return {"waited": 0}
    p50, p90, naive, waited, _ = np.array(told, dtype=np.float64).T
    return {
        "waited": len(told),
        "cover_p90_pct": _pct(waited <= p90),
        "cover_p50_pct": _pct(waited <= p50),
        "median_abs_error_s": round(float(np.median(np.abs(waited - p50))), 1),
        "median_wait_s": round(float(np.median(waited)), 1),
        "median_p90_s": round(float(np.median(p90)), 1),
        "naive": {
            "cover_pct": _pct(waited <= naive),
            "median_abs_error_s": round(float(np.median(np.abs(waited - naive))), 1),
        },
    }


def _pct(held: Any) -> float:
    return round(100.0 * float(np.mean(held)), 2)


if __name__ == "__main__":
    main()
