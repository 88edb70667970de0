"""The engine's `optimising` strategy on a stream of the FGD protocol, a window at a time.

Each window of arrivals is one decision of the engine, by the same function as in production, with
`prices` as its placement. What it does not start is refused, as nothing ever leaves.
"""

import time
from dataclasses import replace

import numpy as np

from benchmarks.packing_run import RULES, Run, run_of
from benchmarks.packing_stream import Trace, models_of, stream_of
from scheduler.core.policy import Policy
from scheduler.core.resources import WHOLE_MILLI, ReplicaShape
from scheduler.core.snapshot import DemandKind, JobSpec, RunningJob, Snapshot
from scheduler.decide.cycle import decide
from scheduler.decide.scores.learnt import Setting, counts_of
from scheduler.decide.scores.state import IntArray, Shapes
from scheduler.simulate.holdings import Holdings
from scheduler.simulate.traces.openb import TENANT, sim_world

FOREVER_S = 1e9
"""Time limit of jobs that never leave."""


def run_optimising(
    trace: Trace, seed: int, *, stream: int, window: int, budget_s: float, jobs: int | None = None
) -> Run:
    """Return the figures of one stream.

    Args:
        trace: the workload.
        seed: with `stream`, of the stream and the order of the nodes, as for every policy.
        stream: number of the seed's stream.
        window: arrivals that are decided together.
        budget_s: time of each decision.
        jobs: how many of the arrivals; all by default.
    """
    rng = np.random.default_rng([seed, stream])
    snapshot, kinds = world_of(trace, rng), kinds_of(trace)
    arrivals = stream_of(trace, rng)[:jobs]
    policy = Policy(
        strategy="optimising",
        placement=RULES,
        budget_s=budget_s,
        remedy_depth=0,  # nobody reads why a job waits, and nothing ever ends
        backfill_depth=0,
        seed=seed,
    )
    placed, began_s = np.full(len(arrivals), -1, dtype=np.int64), time.process_time()
    for start in range(0, len(arrivals), window):
        seen = arrivals[: start + window]
        pending = tuple(
            replace(kinds[shape], uid=f"{start + k:06d}", submitted_s=float(start + k))
            for k, shape in enumerate(seen[start:].tolist())
        )
        now_s = float(len(seen))
        asked = replace(
            snapshot, pending=pending, now_s=now_s, demand_mix=_mix(kinds, trace.shapes, seen)
        )
        snapshot = _decided(asked, policy, placed)
    return run_of(trace, arrivals, placed, time.process_time() - began_s)


def world_of(trace: Trace, rng: np.random.Generator) -> Snapshot:
    """Return the empty cluster, its nodes named in the order that breaks ties."""
    order = rng.permutation(len(trace.nodes)).tolist()
    return sim_world([replace(trace.nodes[k], name=f"{at:06d}") for at, k in enumerate(order)])


def kinds_of(trace: Trace) -> list[JobSpec]:
    """Return a job of each shape."""
    shapes, models, kinds = trace.shapes, models_of(trace.nodes), []
    for s in range(len(shapes.cpu)):
        bits, devices = int(shapes.models[s]), int(shapes.devices[s])
        milli = int(shapes.milli[s]) if devices else WHOLE_MILLI
        kinds.append(
            JobSpec(
                uid=f"{s}",
                tenant=TENANT,
                kind="batch",
                shape=ReplicaShape(int(shapes.cpu[s]), int(shapes.memory[s]), devices, milli),
                replicas_min=1,
                replicas_max=1,
                flavors=tuple(m for k, m in enumerate(models) if bits >> k & 1)
                or (("none of these",) if bits else ()),
                priority=0,
                preemptible=False,
                time_limit_s=FOREVER_S,
                submitted_s=0.0,
            )
        )
    return kinds


def _mix(kinds: list[JobSpec], shapes: Shapes, seen: IntArray) -> tuple[DemandKind, ...]:
    counts = counts_of(seen, len(shapes.cpu), Setting().half_life).tolist()
    return tuple(
        DemandKind(kind.shape, kind.flavors, count)
        for kind, count in zip(kinds, counts, strict=True)
        if count
    )


def _decided(snapshot: Snapshot, policy: Policy, placed: IntArray) -> Snapshot:
    """Return the world once the plan's starts run, and note where they do."""
    plan = decide(
        snapshot, policy, now_s=snapshot.now_s, budget_s=policy.budget_s, clock=time.monotonic
    )
    jobs, held, begun = {job.uid: job for job in snapshot.pending}, Holdings(snapshot.fleet), []
    for start in plan.starts:
        job = jobs[start.uid]
        held.take(job.shape, start.replicas, job.uid)
        begun.append(RunningJob(job, start.replicas, snapshot.now_s))
        placed[int(job.uid)] = start.replicas[0].node
    running = (*snapshot.running, *begun)
    return replace(snapshot, fleet=held.freeze(), pending=(), running=running)
