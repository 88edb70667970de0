"""Moves a few jobs that run, so that one that fits nowhere finds a place.

On each node that has the model, jobs leave until the new one fits: one that suffices alone, the
smallest, else the one that brings it nearest. The few nodes that the least has to leave are tried;
whoever leaves must find another place by the same score. Either all of it is done or nothing.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.packing_placer import Kept, best_node, note_change, place, refresh
from scheduler.decide.scores.choice import Scoring, score_node
from scheduler.decide.scores.compiled import compiled
from scheduler.decide.scores.state import WHOLE, BoolArray, IntArray

TRIED = 16
"""So many nodes are tried for a job, those first that the least has to leave."""


class Held(NamedTuple):
    """What runs where.

    Attributes:
        shape: (jobs,) index of each job's shape.
        node: (jobs,) its node, -1 = it does not run.
        devices: (jobs,) bit set of its devices.
        moves: (1,) how many moves there were.
    """

    shape: IntArray
    node: IntArray
    devices: IntArray
    moves: IntArray


class World(NamedTuple):
    """What changes together.

    Attributes:
        scoring: any score but `random`.
        kept: brought up by `value_all`.
        held: the jobs.
    """

    scoring: Scoring
    kept: Kept
    held: Held


class _Node(NamedTuple):
    """A node while jobs are thought away from it.

    Attributes:
        here: (here,) the jobs on it.
        gone: (here,) which of them have left.
        free: (2,) milli-cores and MiB that are free then.
        row: (width,) free milli of its devices then.
    """

    here: IntArray
    gone: BoolArray
    free: IntArray
    row: IntArray


def nothing_held(arrivals: IntArray) -> Held:
    """Return the jobs of a stream, given their shapes; none of them runs yet."""
    return Held(
        arrivals,
        np.full(len(arrivals), -1, dtype=np.int64),
        np.zeros(len(arrivals), dtype=np.int64),
        np.zeros(1, dtype=np.int64),
    )


@compiled
def place_or_move(world: World, job: int, most: int) -> bool:
    """Place a job; where it fits nowhere, move jobs out of its way.

    Args:
        world: changed in place.
        job: its number.
        most: moves that it may cause.

    Returns:
        whether it runs now.
    """
    if _settle(world, job):
        return True
    starts, order = _by_node(world.held.node, len(world.kept.value))
    leaving, cost = np.empty(most, dtype=np.int64), np.full(len(world.kept.value), np.inf)
    for n in range(len(cost)):
        _, cost[n] = _leave(world, job, n, order[starts[n] : starts[n + 1]], leaving)
    for _ in range(TRIED):
        n = int(np.argmin(cost))
        if cost[n] == np.inf:
            break
        cost[n] = np.inf
        count, _ = _leave(world, job, n, order[starts[n] : starts[n + 1]], leaving)
        if _moved(world, job, n, leaving[:count]):
            world.held.moves[0] += count
            return True
    return False


@compiled
def _by_node(node: IntArray, nodes: int) -> tuple[IntArray, IntArray]:
    """Return (nodes + 1,) where each node's jobs begin in the list of all, and that list."""
    starts = np.zeros(nodes + 2, dtype=np.int64)
    for n in node:
        starts[n + 2] += 1  # those that do not run, -1, come first
    starts = np.cumsum(starts)
    order, at = np.empty(len(node), dtype=np.int64), starts.copy()
    for job in range(len(node)):
        order[at[node[job] + 1]] = job
        at[node[job] + 1] += 1
    return starts[1:], order


@compiled
def _leave(world: World, job: int, n: int, here: IntArray, leaving: IntArray) -> tuple[int, float]:
    """Choose which jobs leave a node for a new one.

    Args:
        world: as it is.
        job: the new job.
        n: the node.
        here: the jobs on it.
        leaving: out: those that leave, first of all; as many as it holds at most.

    Returns:
        (how many leave, their size in thousandths of a device); infinite where more had to.
    """
    nodes, shapes, s = world.scoring.nodes, world.scoring.shapes, world.held.shape[job]
    wanted = shapes.models[s] if shapes.devices[s] else 0
    if (wanted and not wanted & nodes.model[n]) or nodes.devices[n] < shapes.devices[s]:
        return 0, np.inf
    free = np.array([nodes.cpu[n], nodes.memory[n]])
    node = _Node(here, np.zeros(len(here), dtype=np.bool_), free, nodes.milli[n].copy())
    size = 0.0
    for count in range(len(leaving)):
        chosen, short = _next_to_leave(world.scoring, world.held, s, node)
        if chosen < 0:
            break
        node.gone[chosen], leaving[count] = True, here[chosen]
        _think_away(world.scoring, world.held, node, chosen, 1)
        size += _size(world.scoring, world.held.shape[here[chosen]])
        if short == 0:
            return count + 1, size
    return 0, np.inf


@compiled
def _next_to_leave(scoring: Scoring, held: Held, s: int, node: _Node) -> tuple[int, float]:
    """Return who brings a node nearest to fitting a shape, the smallest of equals, and how near.

    Returns:
        (index in `node.here`, what is short then); -1 where nobody's leaving helps.
    """
    chosen, least, smallest = -1, _shortage(scoring, s, node), np.inf
    for k in range(len(node.here)):
        if node.gone[k]:
            continue
        _think_away(scoring, held, node, k, 1)
        short = _shortage(scoring, s, node)
        _think_away(scoring, held, node, k, -1)
        size = _size(scoring, held.shape[node.here[k]])
        if short < least or (short == least and chosen >= 0 and size < smallest):
            chosen, least, smallest = k, short, size
    return chosen, least


@compiled
def _think_away(scoring: Scoring, held: Held, node: _Node, k: int, times: int) -> None:
    """Free what a job on a node holds, or (-1 times) hold it again."""
    job = node.here[k]
    s = held.shape[job]
    node.free[0] += times * scoring.shapes.cpu[s]
    node.free[1] += times * scoring.shapes.memory[s]
    _give(node.row, held.devices[job], times * scoring.shapes.milli[s])


@compiled
def _give(row: IntArray, devices: int, milli: int) -> None:
    """Add to the free milli of a set of devices."""
    for device in range(len(row)):
        if devices >> device & 1:
            row[device] += milli


@compiled
def _size(scoring: Scoring, s: int) -> float:
    """Return the size of a job in thousandths of a device, its CPU counted as devices come."""
    shapes = scoring.shapes
    cpu = shapes.cpu[s] * WHOLE / scoring.scale.cpu_each
    return float(shapes.devices[s] * shapes.milli[s] + cpu)


@compiled
def _shortage(scoring: Scoring, s: int, node: _Node) -> float:
    """Return what a shape lacks on a node, as parts of what it asks for, in sum; 0 = it fits."""
    shapes, short = scoring.shapes, 0.0
    if node.free[0] < shapes.cpu[s]:
        short += (shapes.cpu[s] - node.free[0]) / shapes.cpu[s]
    if node.free[1] < shapes.memory[s]:
        short += (shapes.memory[s] - node.free[1]) / shapes.memory[s]
    if shapes.devices[s]:
        lacking = _lacking(node.row, shapes.devices[s], shapes.milli[s])
        short += lacking / (shapes.devices[s] * shapes.milli[s])
    return short


@compiled
def _lacking(row: IntArray, devices: int, milli: int) -> int:
    """Return the milli that the freest devices lack to have so many each."""
    chosen, lacking = 0, 0
    for _ in range(devices):
        best = -1
        for device in range(len(row)):
            if not chosen >> device & 1 and (best < 0 or row[device] > row[best]):
                best = device
        chosen |= 1 << best
        lacking += max(milli - row[best], 0)
    return lacking


@compiled
def _moved(world: World, job: int, n: int, leaving: IntArray) -> bool:
    """Put a job on a node and those that leave it elsewhere; return whether all found a place."""
    devices = world.held.devices[leaving]
    for other in leaving:
        _release(world, other)
    _hold(world, job, n)
    settled = 0
    while settled < len(leaving) and _settle(world, leaving[settled]):
        settled += 1
    if settled == len(leaving):
        return True
    for other in leaving[:settled]:
        _release(world, other)
    _release(world, job)
    for k in range(len(leaving)):
        _charge(world, leaving[k], n, devices[k])
    return False


@compiled
def _settle(world: World, job: int) -> bool:
    """Place a job where its score is best; return whether it fits anywhere."""
    s = world.held.shape[job]
    refresh(world.scoring, world.kept, s)
    n = best_node(world.kept.score[s])
    if n >= 0:
        _hold(world, job, n)
    return n >= 0


@compiled
def _hold(world: World, job: int, n: int) -> None:
    """Place a job on a node that it fits on, and note which devices it got."""
    scoring, kept, s = world.scoring, world.kept, world.held.shape[job]
    before = scoring.nodes.milli[n].copy()
    kept.score[s, n], kept.device[s, n] = score_node(scoring, n, s, kept.value[n])
    place(scoring, kept, n, s)
    world.held.node[job], world.held.devices[job] = n, 0
    for device in range(len(before)):
        if scoring.nodes.milli[n, device] != before[device]:
            world.held.devices[job] |= 1 << device


@compiled
def _release(world: World, job: int) -> None:
    """Give back what a job holds."""
    _count(world, job, -1)
    world.held.node[job], world.held.devices[job] = -1, 0


@compiled
def _charge(world: World, job: int, n: int, devices: int) -> None:
    """Put a job back on the devices of a node that it held."""
    world.held.node[job], world.held.devices[job] = n, devices
    _count(world, job, 1)


@compiled
def _count(world: World, job: int, times: int) -> None:
    """Take what a job holds from its node, or (-1 times) give it back."""
    nodes, shapes, held = world.scoring.nodes, world.scoring.shapes, world.held
    n, s = held.node[job], held.shape[job]
    nodes.cpu[n] -= times * shapes.cpu[s]
    nodes.memory[n] -= times * shapes.memory[s]
    nodes.held[n, shapes.kind[s]] += times
    _give(nodes.milli[n], held.devices[job], -times * shapes.milli[s])
    note_change(world.scoring, world.kept, n)
