"""Places jobs one at a time at the node and device with the best score.

Scores are kept per shape and node; only nodes that changed since the shape was last placed are
scored again.
"""

from typing import NamedTuple

import numpy as np

from scheduler.decide.scores.choice import (
    NEVER,
    RANDOM,
    TIE,
    Scoring,
    node_value,
    score_node,
    take,
)
from scheduler.decide.scores.compiled import compiled
from scheduler.decide.scores.state import FloatArray, IntArray


class Kept(NamedTuple):
    """Scores kept between decisions.

    Attributes:
        score: (shapes, nodes) score, -inf where the shape does not fit.
        device: (shapes, nodes) device of a fraction.
        seen: (shapes,) number of changes when the shape was last scored, -1 = never.
        log: (nodes,) the last nodes that changed, change number k at k modulo their number.
        length: (1,) changes so far.
        value: (nodes,) fragmentation or potential of each node as it is.
    """

    score: FloatArray
    device: IntArray
    seen: IntArray
    log: IntArray
    length: IntArray
    value: FloatArray


def nothing_kept(shapes: int, nodes: int) -> Kept:
    """Return an empty store for that many kinds of jobs and nodes."""
    return Kept(
        np.full((shapes, nodes), NEVER),
        np.zeros((shapes, nodes), dtype=np.int64),
        np.full(shapes, -1, dtype=np.int64),
        np.zeros(nodes, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(nodes),
    )


@compiled
def refresh(scoring: Scoring, kept: Kept, s: int) -> None:
    """Score a shape again on the nodes that changed since it was last scored."""
    end, seen = kept.length[0], kept.seen[s]
    some = seen >= 0 and end - seen < len(kept.log)
    for entry in range(seen, end) if some else range(len(kept.value)):
        n = kept.log[entry % len(kept.log)] if some else entry
        kept.score[s, n], kept.device[s, n] = score_node(scoring, n, s, kept.value[n])
    kept.seen[s] = end


@compiled
def best_node(scores: FloatArray) -> int:
    """Return the first node with the best score, -1 if the shape fits nowhere."""
    best, chosen = NEVER, -1
    for n in range(len(scores)):
        if scores[n] > best + TIE or (chosen < 0 and scores[n] > NEVER):
            best, chosen = scores[n], n
    return chosen


@compiled
def _any(scores: FloatArray) -> int:
    """Return a random node among those that fit, -1 if there is none."""
    count, chosen = 0, -1
    for n in range(len(scores)):
        if scores[n] > NEVER:
            count += 1
            if np.random.randint(count) == 0:  # noqa: NPY002 - seeded by `seed_chance`, compiled
                chosen = n
    return chosen


@compiled
def _any_device(row: IntArray, milli: int) -> int:
    """Return a random device among those with enough free."""
    count, chosen = 0, -1
    for device in range(len(row)):
        if row[device] >= milli:
            count += 1
            if np.random.randint(count) == 0:  # noqa: NPY002 - seeded by `seed_chance`, compiled
                chosen = device
    return chosen


@compiled
def seed_chance(seed: int) -> None:
    """Seed the compiled code's own random numbers, which the `random` score draws from."""
    np.random.seed(seed)  # noqa: NPY002 - the only generator that needs no argument in compiled code


@compiled
def value_all(scoring: Scoring, kept: Kept) -> None:
    """Work out every node's value anew and forget all scores; after a change of mix or terms."""
    kept.seen[:] = -1
    for n in range(len(kept.value)):
        kept.value[n] = node_value(scoring, n)


@compiled
def place_all(scoring: Scoring, kept: Kept, arrivals: IntArray, placed: IntArray) -> None:
    """Place jobs in the order of their arrival; one that fits nowhere is refused for good.

    Args:
        scoring: its nodes are changed in place.
        kept: brought up by `value_all`, changed in place.
        arrivals: (jobs,) index of each job's shape.
        placed: (jobs,) out: the node of each job, -1 = refused.
    """
    for job in range(len(arrivals)):
        s = arrivals[job]
        refresh(scoring, kept, s)
        n = _any(kept.score[s]) if scoring.score == RANDOM else best_node(kept.score[s])
        placed[job] = n
        if n >= 0:
            place(scoring, kept, n, s)


@compiled
def place(scoring: Scoring, kept: Kept, n: int, s: int) -> None:
    """Place a job of a shape, whose scores are up to date, on a node that it fits on."""
    _put(scoring, kept, n, s)
    note_change(scoring, kept, n)


@compiled
def note_change(scoring: Scoring, kept: Kept, n: int) -> None:
    """Note that what a node has free is no longer what it was."""
    kept.value[n] = node_value(scoring, n)
    kept.log[kept.length[0] % len(kept.log)] = n
    kept.length[0] += 1


@compiled
def _put(scoring: Scoring, kept: Kept, n: int, s: int) -> None:
    """Take what a job of a shape needs from a node."""
    nodes, shapes = scoring.nodes, scoring.shapes
    nodes.cpu[n] -= shapes.cpu[s]
    nodes.memory[n] -= shapes.memory[s]
    nodes.held[n, shapes.kind[s]] += 1
    device = kept.device[s, n]
    if scoring.score == RANDOM:
        device = _any_device(nodes.milli[n], shapes.milli[s])
    take(nodes.milli[n], shapes.devices[s], shapes.milli[s], device)
