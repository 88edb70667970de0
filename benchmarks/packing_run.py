"""One stream of the FGD protocol under one policy."""

import time
from typing import NamedTuple

import numpy as np

from benchmarks.packing_moves import World, nothing_held, place_or_move
from benchmarks.packing_placer import Kept, nothing_kept, place_all, seed_chance, value_all
from benchmarks.packing_stream import Trace, devices_of, nodes_of, stream_of
from benchmarks.packing_window import arrive, drain, empty_window
from scheduler.decide.scores.choice import SCORES, Scoring
from scheduler.decide.scores.learnt import Setting, counts_of, next_estimate, terms_of
from scheduler.decide.scores.state import (
    CLASSES,
    TYPICAL,
    IntArray,
    Nodes,
    Scale,
    Shapes,
    mix_of,
    scale_of,
)

RULES = "prices"
"""Our best score: what --policy rules stands for."""
PATIENCE = 2
"""A job of a window goes first once so many windows have arrived after it."""


class Run(NamedTuple):
    """Figures of one run: devices allocated, jobs arrived and accepted by class, speed, moves."""

    allocated_pct: float
    arrived: IntArray
    accepted: IntArray
    decisions_per_s: float
    moves: int = 0


class Freedom(NamedTuple):
    """What a policy may do beyond the protocol, in which each job is placed as it arrives.

    Attributes:
        window: waiting jobs that are placed jointly; 0 = none waits.
        migrations: moves of jobs that run, for one that would be refused.
    """

    window: int = 0
    migrations: int = 0


class Stage(NamedTuple):
    """A stream and the empty cluster that it meets.

    Attributes:
        shapes: kinds of jobs.
        nodes: changed in place.
        kept: scores.
        arrivals: (jobs,) shape of each job.
        placed: (jobs,) node of each job, -1 = refused.
        scale: of the cluster.
    """

    shapes: Shapes
    nodes: Nodes
    kept: Kept
    arrivals: IntArray
    placed: IntArray
    scale: Scale


def stage_of(trace: Trace, seed: int, stream: int, jobs: int | None) -> Stage:
    """Return one stream of a seed, and seed the compiled code's chance, too."""
    rng = np.random.default_rng([seed, stream])
    nodes, arrivals = nodes_of(trace, rng), stream_of(trace, rng)[:jobs]
    seed_chance(int(rng.integers(1 << 31)))
    return Stage(
        trace.shapes,
        nodes,
        nothing_kept(len(trace.shapes.cpu), len(nodes.cpu)),
        arrivals,
        np.full(len(arrivals), -1, dtype=np.int64),
        scale_of(nodes.cpu, nodes.devices, devices_of(trace.nodes), nodes.model),
    )


def run_one(
    trace: Trace,
    score: str,
    seed: int,
    *,
    stream: int = 0,
    jobs: int | None = None,
    setting: Setting | None = None,
    freedom: Freedom | None = None,
) -> Run:
    """Return the figures of one stream under one score.

    Args:
        trace: the workload.
        score: one of `SCORES`.
        seed: with `stream`, of the stream and of the order that breaks ties; the same for all.
        stream: number of the seed's stream.
        jobs: how many of the arrivals; all by default.
        setting: of `prices`.
        freedom: of `prices`.
    """
    stage, moves = stage_of(trace, seed, stream, jobs), 0
    began_s = time.process_time()
    if score == RULES:
        moves = _place_learning(stage, setting or Setting(), freedom or Freedom())
    else:
        _place_knowing(stage, trace.pods, score)
    took_s = time.process_time() - began_s
    return run_of(trace, stage.arrivals, stage.placed, took_s)._replace(moves=moves)


def run_of(trace: Trace, arrivals: IntArray, placed: IntArray, took_s: float) -> Run:
    """Return the figures of where the jobs of a stream went, in that CPU time."""
    shapes, runs = trace.shapes, arrivals[placed >= 0]
    capacity = 1000 * sum(node.devices for node in trace.nodes)
    return Run(
        100 * int((shapes.devices * shapes.milli)[runs].sum()) / capacity,
        np.bincount(shapes.kind[arrivals], minlength=len(CLASSES)),
        np.bincount(shapes.kind[runs], minlength=len(CLASSES)),
        len(arrivals) / max(took_s, 1e-9),
    )


def _place_knowing(stage: Stage, pods: IntArray, score: str) -> None:
    """Place with a baseline; FGD knows the mix of the whole file, as in its paper."""
    shapes, nodes, scale = stage.shapes, stage.nodes, stage.scale
    whole = np.bincount(pods, minlength=len(shapes.cpu)).astype(np.float64)
    mix = mix_of(shapes, whole, cover=TYPICAL)
    terms = terms_of(shapes, whole, Setting(), scale)[1]
    scoring = Scoring(SCORES.index(score), nodes, shapes, mix, terms, scale)
    value_all(scoring, stage.kept)
    place_all(scoring, stage.kept, stage.arrivals, stage.placed)


def _place_learning(stage: Stage, setting: Setting, freedom: Freedom) -> int:
    """Place with `prices`, which knows only what has arrived; return how many jobs moved."""
    shapes, kept, arrivals, placed = stage.shapes, stage.kept, stage.arrivals, stage.placed
    held = nothing_held(arrivals)
    span, patience = freedom.window, PATIENCE * freedom.window
    window = empty_window(arrivals, len(shapes.cpu), span=span, patience=patience)
    start = 0
    while start < len(arrivals):
        stop = min(next_estimate(start, setting), len(arrivals))
        counts = counts_of(arrivals[:start], len(shapes.cpu), setting.half_life)
        mix, terms = terms_of(shapes, counts, setting, stage.scale)
        scoring = Scoring(SCORES.index(RULES), stage.nodes, shapes, mix, terms, stage.scale)
        value_all(scoring, kept)
        if freedom.window:
            for job in range(start, stop):
                arrive(scoring, kept, window, job)
        elif freedom.migrations:
            for job in range(start, stop):
                place_or_move(World(scoring, kept, held), job, freedom.migrations)
        else:
            place_all(scoring, kept, arrivals[start:stop], placed[start:stop])
        start = stop
    if freedom.window:
        drain(scoring, kept, window)
        placed[:] = window.placed
    if freedom.migrations:
        placed[:] = held.node
    return int(held.moves[0])
