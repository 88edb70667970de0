"""Which nodes could make room, and at what price: the order in which evictions are tried.

On every node the losers are taken away one after the other, all nodes at once. Where that makes
room for more replicas of the waiting job, it is an offer. This looks at the moment only at which
the room is needed; the trial looks at all of the time.
"""

from typing import NamedTuple

import numpy as np

from scheduler.core.snapshot import BoolArray, IntArray
from scheduler.decide.feasibility import Filter, Free
from scheduler.decide.foes import ANYBODY
from scheduler.decide.preemption.losers import Losers
from scheduler.decide.scoring import FloatArray

MOST_ON_NODE = 16
"""So many losers are looked at on one node; who shares a device with more is out of luck."""


class Offer(NamedTuple):
    """Room on one node, if who is there gives it.

    Attributes:
        node: index.
        losers: who gives what it has on the node, in this order.
    """

    node: int
    losers: tuple[int, ...]


class Pieces(NamedTuple):
    """What each loser holds on each node, flat.

    Attributes:
        loser, node: (pieces,) whose, where; losers in order on each node.
        turn: (pieces,) 0 for the first on its node, 1 for the next, ...
        of_replica, of_device: (replicas,), (devices,) the piece of each cell, -1 = of none.
    """

    loser: IntArray
    node: IntArray
    turn: IntArray
    of_replica: IntArray
    of_device: IntArray


def pieces_of(losers: Losers, may: BoolArray, shrinks: BoolArray, node_ok: BoolArray) -> Pieces:
    """Return what those who may lose hold on nodes that help; who shrinks comes first.

    Args:
        losers: who may lose at all.
        may: (losers,) who may lose to this job.
        shrinks: (losers,) who need not be evicted whole.
        node_ok: (nodes,) that the job may use.
    """
    nodes, hold, node = len(node_ok), losers.cells.replica[0], losers.cells.replica[1]
    open_to_it = may[hold] & node_ok[node]
    keys = np.unique(hold[open_to_it] * nodes + node[open_to_it])
    loser, at = np.divmod(keys, nodes) if nodes else (keys, keys)
    order = np.lexsort((loser, ~shrinks[loser], at))
    loser, at, keys = loser[order], at[order], keys[order]
    begins = np.r_[True, at[1:] != at[:-1]] if len(at) else np.zeros(0, dtype=np.bool_)
    first = np.maximum.accumulate(np.where(begins, np.arange(len(at)), 0))
    turn = np.arange(len(at)) - first
    return Pieces(
        loser,
        at,
        turn,
        _find(keys, hold * nodes + node),
        _find(keys, losers.cells.device[0] * nodes + losers.cells.device[1]),
    )


def _find(keys: IntArray, wanted: IntArray) -> IntArray:
    """Return the position of each wanted key among the keys, -1 where it is not."""
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    found = order[at]
    return np.where(keys[found] == wanted, found, -1)


def release(free: Free, losers: Losers, pieces: Pieces, chosen: BoolArray) -> None:
    """Add to what is free what the chosen pieces hold, in place."""
    _, node, cpu, memory = losers.cells.replica
    mine = _of_chosen(pieces.of_replica, chosen)
    np.add.at(free.cpu, node[mine], cpu[mine])
    np.add.at(free.memory, node[mine], memory[mine])
    _, node, column, milli, device_memory, number = losers.cells.device
    mine = _of_chosen(pieces.of_device, chosen)
    np.add.at(free.milli, (node[mine], column[mine]), milli[mine])
    np.add.at(free.device_memory, (node[mine], column[mine]), device_memory[mine])
    mine = mine[number[mine] != ANYBODY]
    np.add.at(free.foes, (node[mine], column[mine]), losers.against[number[mine]])


def _of_chosen(piece: IntArray, chosen: BoolArray) -> IntArray:
    """Return which cells are of a chosen piece; there may be cells, but no pieces."""
    some = np.flatnonzero(piece >= 0)
    return some[chosen[piece[some]]]


def offers(
    losers: Losers, pieces: Pieces, shrinks: BoolArray, free: Free, wanted: Filter, *, most: int
) -> list[Offer]:
    """Return what the nodes offer, best first: nobody evicted, low priority, little work lost.

    Args:
        losers: who may lose at all.
        pieces: what may be taken from them.
        shrinks: (losers,) who need not be evicted whole.
        free: what is free at the moment; used up here.
        wanted: one replica of the waiting job.
        most: so many offers at most.
    """
    nodes, counts = len(free.cpu), wanted.count(free)
    cost, level = np.zeros(nodes), np.full(nodes, np.iinfo(np.int64).min)
    evicts, found = np.zeros(nodes, dtype=np.bool_), list[tuple[IntArray | FloatArray, ...]]()
    for k in range(min(int(pieces.turn.max(initial=-1)) + 1, MOST_ON_NODE)):
        now = pieces.turn == k
        loser, node = pieces.loser[now], pieces.node[now]
        release(free, losers, pieces, now)
        cost[node] += losers.lost[loser]
        level[node] = np.maximum(level[node], losers.priority[loser])
        evicts[node] |= ~shrinks[loser]
        after = wanted.count(free)
        at = np.flatnonzero(after > counts)
        each = cost[at] / (after[at] - counts[at])
        found.append((np.full_like(at, k), at, each, level[at], evicts[at].astype(np.int64)))
        counts = after
    if not found:
        return []
    keys = [np.concatenate(column) for column in zip(*found, strict=True)]
    order = np.lexsort(keys)[:most]
    starts = np.searchsorted(pieces.node, keys[1][order])
    return [
        Offer(int(node), tuple(pieces.loser[start : start + turn + 1].tolist()))
        for turn, node, start in zip(keys[0][order], keys[1][order], starts, strict=True)
    ]
