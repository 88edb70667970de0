"""The score of one node for one kind of job, whichever score is chosen."""

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
from scheduler.decide.scores.state import WHOLE, FloatArray, IntArray, Mix, Nodes, Scale, Shapes

SCORES = ("random", "bestfit", "dotprod", "gpupacking", "gpuclustering", "fgd", "prices")
"""Names of the scores, in the order of their numbers."""
RANDOM, _BESTFIT, _DOTPROD, _GPUPACKING, _GPUCLUSTERING, FGD, _PRICES = range(7)
"""From `FGD` on, a score is a gradient: the change of a node's value."""
NEVER = -np.inf
"""The score of a node that a job does not fit on."""
TIE = 1e-9
"""Scores that differ by less are equal."""


class Scoring(NamedTuple):
    """What a score is made from.

    Attributes:
        score: index in `SCORES`.
        nodes: what is free.
        shapes: kinds of jobs.
        mix: how often each kind of job is asked for.
        terms: worths of `prices`.
        scale: what amounts are relative to.
    """

    score: int
    nodes: Nodes
    shapes: Shapes
    mix: Mix
    terms: Terms
    scale: Scale


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
def value_of(scoring: Scoring, cpu: int, row: IntArray, model: int) -> float:
    """Return what the gradient scores compare before and after: fragmentation or potential."""
    if scoring.score == FGD:
        return fragmentation(cpu, row, model, scoring.mix)
    return potential(cpu, row, model, scoring.mix, scoring.terms)


@compiled
def node_value(scoring: Scoring, n: int) -> float:
    """Return the value of a node as it is; 0 for a score that is no gradient."""
    if scoring.score < FGD:
        return 0.0
    nodes = scoring.nodes
    return value_of(scoring, nodes.cpu[n], nodes.milli[n], nodes.model[n])


@compiled
def _gradient(scoring: Scoring, n: int, s: int, now: float) -> tuple[float, int]:
    """Return the best gradient score over the devices a job could take, and the device."""
    nodes, shapes = scoring.nodes, scoring.shapes
    cpu, best, chosen = nodes.cpu[n] - shapes.cpu[s], NEVER, 0
    fraction = shapes.devices[s] == 1 and shapes.milli[s] < WHOLE
    row = nodes.milli[n].copy()
    for device in range(len(row) if fraction else 1):
        left = row[device]
        if fraction and (left < shapes.milli[s] or _is_among(row, device)):
            continue
        take(row, shapes.devices[s], shapes.milli[s], device)
        after = value_of(scoring, cpu, row, nodes.model[n])
        row[device] = left
        gained = fgd(now, after) if scoring.score == FGD else after - now
        if gained > best + TIE:
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
def _plain(scoring: Scoring, n: int, s: int) -> float:
    """Return the score of a node that the job fits on, of a score that is no gradient."""
    nodes, shapes, row = scoring.nodes, scoring.shapes, scoring.nodes.milli[n]
    free, gpu = row.sum(), shapes.devices[s] * shapes.milli[s]
    if scoring.score == _BESTFIT:
        return bestfit(nodes.cpu[n] - shapes.cpu[s], free - gpu, scoring.scale)
    if scoring.score == _DOTPROD:
        return dotprod(nodes.cpu[n], free, shapes.cpu[s], gpu, scoring.scale)
    if scoring.score == _GPUPACKING:
        return gpupacking(row, nodes.devices[n], shapes.devices[s], shapes.milli[s])
    if scoring.score == _GPUCLUSTERING:
        return gpuclustering(nodes.held[n], shapes.kind[s], free, scoring.scale)
    return 0.0


@compiled
def score_node(scoring: Scoring, n: int, s: int, now: float) -> tuple[float, int]:
    """Return the score of a node for a shape, and the device of a fraction.

    Args:
        scoring: what scores are made from.
        n: index of the node.
        s: index of the shape.
        now: the node's value as it is, for the gradient scores.

    Returns:
        (score, device); -inf where the shape does not fit.
    """
    if not fits(scoring.nodes, n, scoring.shapes, s):
        return NEVER, 0
    if scoring.score >= FGD:
        return _gradient(scoring, n, s, now)
    return _plain(scoring, n, s), tightest(scoring.nodes.milli[n], scoring.shapes.milli[s])


@compiled
def score_nodes(scoring: Scoring, scores: FloatArray) -> None:
    """Score all nodes for the first shape.

    Args:
        scoring: what scores are made from.
        scores: (nodes,) out.
    """
    for n in range(len(scores)):
        scores[n], _ = score_node(scoring, n, 0, node_value(scoring, n))
