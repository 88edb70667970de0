"""Which nodes could make room, and at what price: the order in which evictions are tried.

On every node the losers are taken away one after the other, all nodes at once. Where that makes
room for more replicas of the waiting job, it is an offer. This looks at the moment only at which
the room is needed; the trial looks at all of the time.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from scheduler.core.snapshot import BoolArray, IntArray
from scheduler.decide.feasibility import Filter, Free
from scheduler.decide.foes import ANYBODY
from scheduler.decide.preemption.losers import Losers
from scheduler.decide.scoring import FloatArray
from scheduler.decide.topology import sum_domains

MOST_ON_NODE = 1024
"""So many losers are looked at on one node, more than there ever are."""


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


def release(free: Free, losers: Losers, replicas: IntArray, devices: IntArray) -> None:
    """Add to what is free what some cells of the losers hold, in place."""
    _, node, cpu, memory = losers.cells.replica[:, replicas]
    np.add.at(free.cpu, node, cpu)
    np.add.at(free.memory, node, memory)
    _, node, column, milli, device_memory, number = losers.cells.device[:, devices]
    np.add.at(free.milli, (node, column), milli)
    np.add.at(free.device_memory, (node, column), device_memory)
    some = number != ANYBODY
    np.add.at(free.foes, (node[some], column[some]), losers.against[number[some]])


class Offered:
    """What the nodes offer, best first: nobody evicted, low priority, little work lost.

    Where all replicas are to be in one domain, the offers of one domain stand together: first those
    of the domain whose dearest offer that the job needs is the cheapest.

    Args:
        losers: who may lose at all.
        pieces: what may be taken from them.
        shrinks: (losers,) who need not be evicted whole.
        free: what is free at the moment; used up here.
        wanted: one replica of the waiting job.
        ready: (nodes,) replicas for which there is room already, 0 where it must not run.
        replicas: how many it needs.
        domains: (nodes,) the domain of each node, -1 = in none; None = any nodes do.
    """

    def __init__(
        self,
        losers: Losers,
        pieces: Pieces,
        shrinks: BoolArray,
        free: Free,
        wanted: Filter,
        *,
        ready: IntArray,
        replicas: int,
        domains: IntArray | None,
    ) -> None:
        self._pieces = pieces
        turn, node, each, level, evicts, gain = _found(
            losers, pieces, shrinks, free, wanted, ready=ready
        )
        order = np.lexsort((turn, node, each, level, evicts))
        if domains is not None:
            order = order[domains[node[order]] >= 0]
            order = _by_domain(order, domains, node, gain, ready=ready, replicas=replicas)
        self._node, self._turn = node[order], turn[order]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._node)

    def first(self, most: int) -> list[Offer]:
        """Return so many of them at most."""
        node, turn = self._node[:most], self._turn[:most]
        starts = np.searchsorted(self._pieces.node, node)
        return [
            Offer(n, tuple(self._pieces.loser[start : start + k + 1].tolist()))
            for n, k, start in zip(node.tolist(), turn.tolist(), starts.tolist(), strict=True)
        ]


def _found(
    losers: Losers,
    pieces: Pieces,
    shrinks: BoolArray,
    free: Free,
    wanted: Filter,
    *,
    ready: IntArray,
) -> tuple[IntArray, IntArray, FloatArray, IntArray, IntArray, IntArray]:
    """Return of each offer: turn, node, work lost a replica, priority, evicts, replicas gained."""
    nodes = len(free.cpu)
    cost, level = np.zeros(nodes), np.full(nodes, np.iinfo(np.int64).min)
    evicts, counts = np.zeros(nodes, dtype=np.int64), ready.copy()
    found: list[tuple[IntArray | FloatArray, ...]] = []
    cells = zip(
        _by_turn(pieces, np.arange(len(pieces.turn))),
        _by_turn(pieces, pieces.of_replica),
        _by_turn(pieces, pieces.of_device),
        strict=True,
    )
    for k, (now, replicas, devices) in enumerate(cells):
        loser, node = pieces.loser[now], pieces.node[now]
        release(free, losers, replicas, devices)
        cost[node] += losers.lost[loser]
        level[node] = np.maximum(level[node], losers.priority[loser])
        evicts[node] |= ~shrinks[loser]
        after = wanted.count(Free(*(table[node] for table in free)), node)
        more = after - counts[node]
        counts[node] = after
        node, more = node[more > 0], more[more > 0]
        found.append(
            (np.full_like(node, k), node, cost[node] / more, level[node], evicts[node], more)
        )
    if not found:
        nothing = np.zeros(0, dtype=np.int64)
        return nothing, nothing, np.zeros(0), nothing, nothing, nothing
    turn, node, each, level, evict, gain = (np.concatenate(c) for c in zip(*found, strict=True))
    return turn, node, each, level, evict, gain


def _by_turn(pieces: Pieces, of_cell: IntArray) -> Sequence[IntArray]:
    """Return for each turn which cells are of its pieces, those of no piece left out."""
    some = np.flatnonzero(of_cell >= 0)
    turns = pieces.turn[of_cell[some]]
    order = np.argsort(turns, kind="stable")
    last = min(int(pieces.turn.max(initial=-1)) + 1, MOST_ON_NODE)
    ends = np.searchsorted(turns[order], np.arange(last + 1))
    return [some[order[a:b]] for a, b in pairwise(ends.tolist())]


def _by_domain(
    order: IntArray,
    domains: IntArray,
    node: IntArray,
    gain: IntArray,
    *,
    ready: IntArray,
    replicas: int,
) -> IntArray:
    """Return the order with the offers of a domain together, the cheapest domain first.

    Args:
        order: positions of offers, best first, all in some domain.
        domains: (nodes,) as of `Offered`.
        node: (offers,) where each is.
        gain: (offers,) for how many replicas more it makes room.
        ready: (nodes,) replicas for which there is room already.
        replicas: that one domain has to take.
    """
    domain, rank = domains[node[order]], np.arange(len(order))
    held = sum_domains(ready, domains)
    together = np.argsort(domain, kind="stable")
    begins = np.searchsorted(domain[together], domain[together])
    sums = np.cumsum(gain[order][together])
    sums += held[domain[together]] - (sums - gain[order][together])[begins]
    dearest = np.full(len(held), len(order))
    enough = together[sums >= replicas]
    np.minimum.at(dearest, domain[enough], enough)
    return order[np.lexsort((rank, domain, dearest[domain]))]
