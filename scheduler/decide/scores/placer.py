"""Places jobs one at a time at the node and device with the best score.

Scores are kept per shape and node; only nodes that changed since the shape was last placed are
scored again.
"""

from typing import NamedTuple

import numpy as np

from scheduler.decide.scores.baselines import (
    bestfit,
    dotprod,
    gpuclustering,
    gpupacking,
    tightest,
)
from scheduler.decide.scores.compiled import compiled
from scheduler.decide.scores.fragmentation import fgd, fragmentation
from scheduler.decide.scores.potential import Terms, potential
from scheduler.decide.scores.state import WHOLE, FloatArray, IntArray, Mix, Nodes, Shapes

SCORES = ("random", "bestfit", "dotprod", "gpupacking", "gpuclustering", "fgd", "prices")
"""Names of the scores, in the order of their numbers."""
_RANDOM, _BESTFIT, _DOTPROD, _GPUPACKING, _GPUCLUSTERING, _FGD, _PRICES = range(7)
_NEVER = -np.inf
_TIE = 1e-9


class Kept(NamedTuple):
    """Scores kept between decisions.

    Attributes:
        score: (shapes, nodes) score, -inf where the shape does not fit.
        device: (shapes, nodes) device of a fraction.
        seen: (shapes,) length of the log when the shape was last scored, -1 = never.
        log: (decisions,) nodes in the order in which they changed.
        length: (1,) entries of the log.
        value: (nodes,) fragmentation or potential of each node as it is.
    """

    score: FloatArray
    device: IntArray
    seen: IntArray
    log: IntArray
    length: IntArray
    value: FloatArray


class Placing(NamedTuple):
    """What a placement needs to know.

    Attributes:
        score: index in `SCORES`.
        nodes: what is free; changed in place.
        shapes: kinds of jobs.
        mix: how often each kind of job is asked for.
        terms: worths of `prices`.
        kept: scores kept between decisions; changed in place.
    """

    score: int
    nodes: Nodes
    shapes: Shapes
    mix: Mix
    terms: Terms
    kept: Kept


def nothing_kept(shapes: int, nodes: int, decisions: int) -> Kept:
    """Return an empty store for that many decisions."""
    return Kept(
        np.full((shapes, nodes), _NEVER),
        np.zeros((shapes, nodes), dtype=np.int64),
        np.full(shapes, -1, dtype=np.int64),
        np.zeros(decisions, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(nodes),
    )


@compiled
def fits(nodes: Nodes, n: int, shapes: Shapes, s: int) -> bool:
    """Return whether a node can take one job of a shape now."""
    if nodes.cpu[n] < shapes.cpu[s] or nodes.memory[n] < shapes.memory[s]:
        return False
    if shapes.devices[s] == 0:
        return True
    if shapes.models[s] != 0 and not shapes.models[s] & nodes.model[n]:
        return False
    count = 0
    for device in range(nodes.milli.shape[1]):
        count += nodes.milli[n, device] >= shapes.milli[s]
    return bool(count >= shapes.devices[s])


@compiled
def take(row: IntArray, devices: int, milli: int, device: int) -> None:
    """Take a job's devices from a row of free milli: a fraction from one, else whole free ones."""
    if milli < WHOLE and devices == 1:
        row[device] -= milli
        return
    left = devices
    for k in range(len(row)):
        if left and row[k] == WHOLE:
            row[k] = 0
            left -= 1


@compiled
def value_of(placing: Placing, cpu: int, row: IntArray, model: int) -> float:
    """Return what the gradient scores compare before and after: fragmentation or potential."""
    if placing.score == _FGD:
        return fragmentation(cpu, row, model, placing.mix)
    return potential(cpu, row, model, placing.mix, placing.terms)


@compiled
def _gradient(placing: Placing, n: int, s: int) -> tuple[float, int]:
    """Return the best gradient score over the devices a job could take, and the device."""
    nodes, shapes = placing.nodes, placing.shapes
    cpu, best, chosen = nodes.cpu[n] - shapes.cpu[s], _NEVER, 0
    fraction = shapes.devices[s] == 1 and shapes.milli[s] < WHOLE
    row, now = nodes.milli[n].copy(), placing.kept.value[n]
    for device in range(len(row) if fraction else 1):
        left = row[device]
        if fraction and (left < shapes.milli[s] or _is_among(row, device)):
            continue
        take(row, shapes.devices[s], shapes.milli[s], device)
        after = value_of(placing, cpu, row, nodes.model[n])
        row[device] = left
        gained = fgd(now, after) if placing.score == _FGD else after - now
        if gained > best + _TIE:
            best, chosen = gained, device
    return best, chosen


@compiled
def _is_among(row: IntArray, device: int) -> bool:
    """Return whether an earlier device has just as much free, so that its score is the same."""
    found = False
    for other in range(device):
        found = found or row[other] == row[device]
    return found


@compiled
def _plain(placing: Placing, n: int, s: int) -> float:
    """Return the score of a node that the job fits on, of a score that is no gradient."""
    nodes, shapes, row = placing.nodes, placing.shapes, placing.nodes.milli[n]
    free, gpu = row.sum(), shapes.devices[s] * shapes.milli[s]
    if placing.score == _BESTFIT:
        return bestfit(nodes.cpu[n] - shapes.cpu[s], free - gpu)
    if placing.score == _DOTPROD:
        return dotprod(nodes.cpu[n], free, shapes.cpu[s], gpu)
    if placing.score == _GPUPACKING:
        return gpupacking(row, nodes.devices[n], shapes.devices[s], shapes.milli[s])
    if placing.score == _GPUCLUSTERING:
        return gpuclustering(nodes.held[n], shapes.kind[s], free)
    return 0.0


@compiled
def _score(placing: Placing, n: int, s: int) -> tuple[float, int]:
    """Return (score, device) of a node for a shape; -inf where it does not fit."""
    if not fits(placing.nodes, n, placing.shapes, s):
        return _NEVER, 0
    if placing.score >= _FGD:
        return _gradient(placing, n, s)
    return _plain(placing, n, s), tightest(placing.nodes.milli[n], placing.shapes.milli[s])


@compiled
def _refresh(placing: Placing, s: int) -> None:
    """Score a shape again on the nodes that changed since it was last scored."""
    kept = placing.kept
    end, seen = kept.length[0], kept.seen[s]
    for entry in range(seen, end) if seen >= 0 else range(len(kept.value)):
        n = kept.log[entry] if seen >= 0 else entry
        kept.score[s, n], kept.device[s, n] = _score(placing, n, s)
    kept.seen[s] = end


@compiled
def _best(scores: FloatArray) -> int:
    """Return the first node with the best score, -1 if the shape fits nowhere."""
    best, chosen = _NEVER, -1
    for n in range(len(scores)):
        if scores[n] > best + _TIE or (chosen < 0 and scores[n] > _NEVER):
            best, chosen = scores[n], n
    return chosen


@compiled
def _any(scores: FloatArray) -> int:
    """Return a random node among those that fit, -1 if there is none."""
    count, chosen = 0, -1
    for n in range(len(scores)):
        if scores[n] > _NEVER:
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
def value_all(placing: Placing) -> None:
    """Work out every node's value anew and forget all scores; after a change of mix or terms."""
    placing.kept.seen[:] = -1
    if placing.score >= _FGD:
        for n in range(len(placing.kept.value)):
            _value(placing, n)


@compiled
def _value(placing: Placing, n: int) -> None:
    nodes = placing.nodes
    placing.kept.value[n] = value_of(placing, nodes.cpu[n], nodes.milli[n], nodes.model[n])


@compiled
def place_all(placing: Placing, arrivals: IntArray, placed: IntArray) -> None:
    """Place jobs in the order of their arrival; one that fits nowhere is refused for good.

    Args:
        placing: brought up by `value_all`; nodes and scores are changed in place.
        arrivals: (jobs,) index of each job's shape.
        placed: (jobs,) out: the node of each job, -1 = refused.
    """
    kept = placing.kept
    for job in range(len(arrivals)):
        s = arrivals[job]
        _refresh(placing, s)
        n = _any(kept.score[s]) if placing.score == _RANDOM else _best(kept.score[s])
        placed[job] = n
        if n < 0:
            continue
        _put(placing, n, s)
        if placing.score >= _FGD:
            _value(placing, n)
        kept.log[kept.length[0]] = n
        kept.length[0] += 1


@compiled
def _put(placing: Placing, n: int, s: int) -> None:
    """Take what a job of a shape needs from a node."""
    nodes, shapes = placing.nodes, placing.shapes
    nodes.cpu[n] -= shapes.cpu[s]
    nodes.memory[n] -= shapes.memory[s]
    nodes.held[n, shapes.kind[s]] += 1
    device = placing.kept.device[s, n]
    if placing.score == _RANDOM:
        device = _any_device(nodes.milli[n], shapes.milli[s])
    take(nodes.milli[n], shapes.devices[s], shapes.milli[s], device)
