"""The program of the `optimising` strategy on a stream of the FGD protocol, a window at a time.

For each window the engine's own program chooses which jobs start on which model, and the engine
places them by `prices`, then whoever still fits. The rest is refused, as nothing ever leaves. Left
out is what a cycle does beside: the rules plan to compare with, and saying why a job waits.
"""

import time
from dataclasses import replace

import numpy as np

from benchmarks.packing_run import RULES, Run, run_of
from benchmarks.packing_stream import Trace, models_of, stream_of
from scheduler.core.policy import Policy
from scheduler.core.resources import WHOLE_MILLI, ReplicaShape
from scheduler.core.snapshot import DemandKind, JobSpec, RunningJob, Snapshot
from scheduler.decide.objective import Objective
from scheduler.decide.scores.learnt import Setting, counts_of
from scheduler.decide.scores.state import IntArray, Shapes
from scheduler.decide.strategies.optimising.bands import start_chosen
from scheduler.decide.strategies.optimising.classes import group_jobs, group_nodes
from scheduler.decide.strategies.optimising.engines import Highs, positions
from scheduler.decide.strategies.optimising.model import build
from scheduler.decide.strategies.optimising.search import search
from scheduler.decide.strategies.optimising.watch import Watch
from scheduler.decide.turns import Turns
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
    policy = Policy(placement=RULES, budget_s=budget_s, seed=seed)
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
    """Return the world once what was chosen runs, and note where it does."""
    turns = Turns(snapshot, policy, now_s=snapshot.now_s)
    _start(turns)
    jobs, held, begun = {job.uid: job for job in snapshot.pending}, Holdings(snapshot.fleet), []
    for start in turns.starts:
        job = jobs[start.uid]
        held.take(job.shape, start.replicas, job.uid)
        begun.append(RunningJob(job, start.replicas, snapshot.now_s))
        placed[int(job.uid)] = start.replicas[0].node
    running = (*snapshot.running, *begun)
    return replace(snapshot, fleet=held.freeze(), pending=(), running=running)


def _start(turns: Turns) -> None:
    """Start what the program chooses, then whoever else fits, in the order of the queue."""
    session, queue, started = turns.session, list(turns.queue()), set[str]()
    watch = Watch(turns.policy.budget_s, time.monotonic, time.monotonic())
    groups = group_nodes(session)
    classes, _ = group_jobs(session, queue, groups)
    if classes:
        objective = Objective(turns)
        model = build(session, objective, objective.base, classes, groups)
        integers = [option.jobs for option in model.options]
        engine = Highs(model.problem, integers, turns.policy.seed)
        at = positions(model.problem, integers)
        found = search(model, engine, at, start=None, watch=watch, seed=turns.policy.seed)
        started = start_chosen(turns, found.choices)
    for ranked in queue:
        if ranked.job.uid not in started:
            turns.try_start(ranked)
