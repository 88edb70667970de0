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
def value_of(score: int, cpu: int, row: IntArray, model: int, mix: Mix, terms: Terms) -> float:
    """Return what the gradient scores compare before and after: fragmentation or potential."""
    if score == _FGD:
        return fragmentation(cpu, row, model, mix)
    return potential(cpu, row, model, mix, terms)


@compiled
def _gradient(
    score: int, nodes: Nodes, n: int, shapes: Shapes, s: int, mix: Mix, terms: Terms, now: float
) -> tuple[float, int]:
    """Return the best gradient score over the devices a job could take, and the device."""
    cpu, best, chosen = nodes.cpu[n] - shapes.cpu[s], _NEVER, 0
    fraction = shapes.devices[s] == 1 and shapes.milli[s] < WHOLE
    row = nodes.milli[n].copy()
    for device in range(len(row) if fraction else 1):
        left = row[device]
        if fraction and left < shapes.milli[s]:
            continue
        repeated = False
        for other in range(device if fraction else 0):
            repeated = repeated or row[other] == left
        if repeated:
            continue
        take(row, shapes.devices[s], shapes.milli[s], device)
        after = value_of(score, cpu, row, nodes.model[n], mix, terms)
        row[device] = left
        gained = fgd(now, after) if score == _FGD else after - now
        if gained > best + (0.0 if score == _FGD else _TIE):
            best, chosen = gained, device
    return best, chosen


@compiled
def _score(
    score: int, nodes: Nodes, n: int, shapes: Shapes, s: int, mix: Mix, terms: Terms, now: float
) -> tuple[float, int]:
    """Return (score, device) of a node for a shape; -inf where it does not fit."""
    if not fits(nodes, n, shapes, s):
        return _NEVER, 0
    if score >= _FGD:
        return _gradient(score, nodes, n, shapes, s, mix, terms, now)
    row, free = nodes.milli[n], nodes.milli[n].sum()
    gpu = shapes.devices[s] * shapes.milli[s]
    device = tightest(row, shapes.milli[s])
    if score == _BESTFIT:
        return bestfit(nodes.cpu[n] - shapes.cpu[s], free - gpu), device
    if score == _DOTPROD:
        return dotprod(nodes.cpu[n], free, shapes.cpu[s], gpu), device
    if score == _GPUPACKING:
        return gpupacking(row, nodes.devices[n], shapes.devices[s], shapes.milli[s]), device
    if score == _GPUCLUSTERING:
        return gpuclustering(nodes.held[n], shapes.kind[s], free), device
    return 0.0, device


@compiled
def _refresh(
    score: int, nodes: Nodes, shapes: Shapes, s: int, mix: Mix, terms: Terms, kept: Kept
) -> None:
    """Score a shape again on the nodes that changed since it was last scored."""
    end, seen = kept.length[0], kept.seen[s]
    if seen < 0:
        for n in range(len(nodes.cpu)):
            kept.score[s, n], kept.device[s, n] = _score(
                score, nodes, n, shapes, s, mix, terms, kept.value[n]
            )
    else:
        for entry in range(seen, end):
            n = kept.log[entry]
            kept.score[s, n], kept.device[s, n] = _score(
                score, nodes, n, shapes, s, mix, terms, kept.value[n]
            )
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
def value_all(score: int, nodes: Nodes, mix: Mix, terms: Terms, kept: Kept) -> None:
    """Work out every node's value anew and forget all scores; after a change of mix or terms."""
    kept.seen[:] = -1
    if score >= _FGD:
        for n in range(len(nodes.cpu)):
            kept.value[n] = value_of(
                score, nodes.cpu[n], nodes.milli[n], nodes.model[n], mix, terms
            )


@compiled
def place_all(
    score: int,
    nodes: Nodes,
    shapes: Shapes,
    arrivals: IntArray,
    mix: Mix,
    terms: Terms,
    kept: Kept,
    placed: IntArray,
) -> None:
    """Place jobs in the order of their arrival; one that fits nowhere is refused for good.

    Args:
        score: index in `SCORES`.
        nodes: changed in place.
        shapes: kinds of jobs.
        arrivals: (jobs,) index of each job's shape.
        mix: how often each kind of job is asked for.
        terms: worths of `prices`.
        kept: scores, brought up by `value_all`; changed in place.
        placed: (jobs,) out: the node of each job, -1 = refused.
    """
    for job in range(len(arrivals)):
        s = arrivals[job]
        _refresh(score, nodes, shapes, s, mix, terms, kept)
        n = _any(kept.score[s]) if score == _RANDOM else _best(kept.score[s])
        placed[job] = n
        if n < 0:
            continue
        nodes.cpu[n] -= shapes.cpu[s]
        nodes.memory[n] -= shapes.memory[s]
        nodes.held[n, shapes.kind[s]] += 1
        device = kept.device[s, n]
        if score == _RANDOM:
            device = _any_device(nodes.milli[n], shapes.milli[s])
        take(nodes.milli[n], shapes.devices[s], shapes.milli[s], device)
        if score >= _FGD:
            kept.value[n] = value_of(
                score, nodes.cpu[n], nodes.milli[n], nodes.model[n], mix, terms
            )
        kept.log[kept.length[0]] = n
        kept.length[0] += 1
