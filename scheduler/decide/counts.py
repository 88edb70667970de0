"""What was counted on a profile: replicas, scores and sums per node, kept while it changes.

The profile notes which nodes it touched. Whatever was counted here is counted again on those nodes
only, when it is asked for next.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from scheduler.core.snapshot import IntArray
from scheduler.decide.backfill import Profile
from scheduler.decide.feasibility import Demand, Filter, Free
from scheduler.decide.placement import Site
from scheduler.decide.scoring import SCORES, FloatArray

MOST_KEPT = 256
"""So many demands and windows are remembered; a queue of more kinds forgets the oldest."""

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


@dataclass(slots=True)
class Counted:
    """How many replicas of one demand fit on each node for a whole window that begins now.

    Attributes:
        counts: (nodes,) replicas.
        total: sum of the counts.
        seen: how much of the profile's touch log is in.
    """

    counts: IntArray
    total: int
    seen: int


@dataclass(slots=True)
class _Scored:
    """(nodes,) score of one more replica, and how much of the touch log is in it."""

    scores: FloatArray
    seen: int


class Pool(NamedTuple):
    """What is free now of all that a demand may use, node by node; 0 where it may use nothing.

    Attributes:
        cpu, memory: (nodes,) milli-cores and MiB.
        milli, device_memory: (nodes,) thousandths and MiB of all its devices together.
        largest_milli, largest_memory: (nodes,) the most on one device.
        takes: (nodes,) devices that can take a part of a replica.
    """

    cpu: IntArray
    memory: IntArray
    milli: IntArray
    device_memory: IntArray
    largest_milli: IntArray
    largest_memory: IntArray
    takes: IntArray


@dataclass(slots=True)
class _Kept:
    """Arrays with nodes first, and how much of the touch log is in them."""

    arrays: Free | Pool
    seen: int


class Counts:
    """The counts on one profile.

    Args:
        profile: capacity over time.
        placement: key of `SCORES`.
    """

    def __init__(self, profile: Profile, placement: str) -> None:
        self._profile, self._placement = profile, placement
        self._windows: dict[int, _Kept] = {}
        self._counted: dict[tuple[Demand, int], Counted] = {}
        self._scored: dict[tuple[Demand, int], _Scored] = {}
        self._pools: dict[Demand, _Kept] = {}

    def free(self, rows: int) -> Free:
        """Return what is free in all of the first rows."""
        if rows == 1:
            return self._profile.row(0)
        key, log = self._profile.rows[rows - 1], self._profile.touched
        kept = self._windows.get(key)
        if kept is None:
            kept = _Kept(self._profile.floor(0, rows), len(log))
            remember(self._windows, key, kept)
        elif kept.seen < len(log):
            nodes = self._touched_since(kept.seen)
            _write(kept, self._profile.floor(0, rows, nodes), nodes, len(log))
        return Free(*kept.arrays)

    def counted(self, demand: Demand, wanted: Filter, rows: int) -> Counted:
        """Return the counts of a demand for a start now that lasts for so many rows."""
        key, seen = (demand, self._profile.rows[rows - 1]), len(self._profile.touched)
        found = self._counted.get(key)
        if found is None:
            counts = wanted.count(self.free(rows))
            found = Counted(counts, int(counts.sum()), seen)
            remember(self._counted, key, found)
        elif found.seen < seen:
            nodes = self._touched_since(found.seen)
            counts = wanted.count(_part(self.free(rows), nodes), nodes)
            found.total += int(counts.sum() - found.counts[nodes].sum())
            found.counts[nodes] = counts
            found.seen = seen
        return found

    def site(self, demand: Demand, wanted: Filter, rows: int) -> Site:
        """Return what a placement is chosen from: the counts, and a score of every node."""
        key, seen = (demand, self._profile.rows[rows - 1]), len(self._profile.touched)
        layout, free, score = self._profile.layout, self.free(rows), SCORES[self._placement]
        found = self._scored.get(key)
        if found is None:
            found = _Scored(score(layout, wanted, free, np.arange(layout.nodes)), seen)
            remember(self._scored, key, found)
        elif found.seen < seen:
            nodes = self._touched_since(found.seen)
            found.scores[nodes] = score(layout, wanted, _part(free, nodes), nodes)
            found.seen = seen
        counts = self.counted(demand, wanted, rows).counts
        return Site(layout, wanted, free, counts, found.scores)

    def pool(self, demand: Demand, wanted: Filter) -> Pool:
        """Return what is free now of all that a demand may use."""
        kept, log = self._pools.get(demand), self._profile.touched
        free = self._profile.row(0)
        if kept is None:
            nodes = np.arange(self._profile.layout.nodes)
            kept = _Kept(_pooled(wanted, free, nodes), len(log))
            remember(self._pools, demand, kept)
        elif kept.seen < len(log):
            nodes = self._touched_since(kept.seen)
            _write(kept, _pooled(wanted, _part(free, nodes), nodes), nodes, len(log))
        return Pool(*kept.arrays)

    def _touched_since(self, seen: int) -> IntArray:
        return np.array(sorted(set(self._profile.touched[seen:])), dtype=np.int64)


def remember(cache: dict[KeyT, ValueT], key: KeyT, value: ValueT) -> None:
    """Keep a value; the oldest is forgotten where there are too many."""
    if len(cache) >= MOST_KEPT:
        del cache[next(iter(cache))]
    cache[key] = value


def _part(free: Free, nodes: IntArray) -> Free:
    return Free(*(table[nodes] for table in free))


def _write(kept: _Kept, part: Free | Pool, nodes: IntArray, seen: int) -> None:
    for table, values in zip(kept.arrays, part, strict=True):
        table[nodes] = values
    kept.seen = seen


def _pooled(wanted: Filter, free: Free, nodes: IntArray) -> Pool:
    """Return the pool on some nodes; `free` is the state of exactly those."""
    node_ok = wanted.node_ok[nodes]
    usable = wanted.device_ok[nodes] & node_ok[:, None]
    milli = np.where(usable, free.milli, 0)
    memory = np.where(usable, free.device_memory.clip(0), 0)
    return Pool(
        cpu=np.where(node_ok, free.cpu.clip(0), 0),
        memory=np.where(node_ok, free.memory.clip(0), 0),
        milli=milli.sum(axis=-1),
        device_memory=memory.sum(axis=-1),
        largest_milli=milli.max(axis=-1, initial=0),
        largest_memory=memory.max(axis=-1, initial=0),
        takes=wanted.takes(free, nodes).sum(axis=-1),
    )
