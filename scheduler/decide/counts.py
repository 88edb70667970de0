"""What was counted on a profile: replicas, scores and sums per node, kept while it changes.

The profile notes which nodes it touched. Whatever was counted here is counted again on those nodes
only, when it is asked for next.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from scheduler.core.snapshot import IntArray
from scheduler.decide.backfill import Profile
from scheduler.decide.feasibility import Demand, Filter, Free, Nodes, sum_devices
from scheduler.decide.placement import Site
from scheduler.decide.scoring import FloatArray, Scorer

MOST_KEPT = 256
"""So many demands and windows are remembered; a queue of more kinds forgets the older ones."""

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


RowT = TypeVar("RowT")


class Amounts(NamedTuple, Generic[RowT]):
    """What is free of all that a demand may use: of each node, the sum, or the most.

    Attributes:
        cpu, memory: milli-cores and MiB.
        milli, device_memory: thousandths and MiB of all devices of a node together.
        share, share_memory: thousandths and MiB of the device that has most of them.
        takes: devices that can take a part of a replica.
    """

    cpu: RowT
    memory: RowT
    milli: RowT
    device_memory: RowT
    share: RowT
    share_memory: RowT
    takes: RowT


class Pool:
    """What is free now of all that a demand may use; 0 where it may use nothing.

    Attributes:
        nodes: (nodes,) arrays.
        sums, most: over all nodes.
        seen: how much of the profile's touch log is in.
    """

    def __init__(self, table: IntArray, seen: int) -> None:
        self._table, self.seen = table, seen
        self.nodes: Amounts[IntArray] = Amounts(*table)
        self._sums = table.sum(axis=1)
        self._most = table.max(axis=1, initial=0)

    @property
    def sums(self) -> Amounts[int]:
        """Return the sums over all nodes."""
        return Amounts(*self._sums.tolist())

    @property
    def most(self) -> Amounts[int]:
        """Return the most on one node."""
        return Amounts(*self._most.tolist())

    def write(self, part: IntArray, nodes: Nodes, seen: int) -> None:
        """Take over what was worked out anew for some nodes."""
        before = self._table[:, nodes]  # a view, where the nodes are a range
        self._sums += (part - before).sum(axis=1)
        fallen = (before.max(axis=1, initial=0) == self._most).any()
        self._table[:, nodes] = part
        if fallen:  # one of those with most may have less now
            self._most = self._table.max(axis=1, initial=0)
        else:
            np.maximum(self._most, part.max(axis=1, initial=0), out=self._most)
        self.seen = seen


@dataclass(slots=True)
class _Window:
    """What is free in a whole window, and how much of the touch log is in it."""

    free: Free
    seen: int


class Counts:
    """The counts on one profile.

    Args:
        profile: capacity over time.
        scorers: gives the scorer of a wished placement, the policy's of "".
    """

    def __init__(self, profile: Profile, scorers: Callable[[str], Scorer]) -> None:
        self._profile, self._scorers = profile, scorers
        self._windows: dict[int, _Window] = {}
        self._counted: dict[tuple[Demand, int], Counted] = {}
        self._scored: dict[tuple[Demand, int], _Scored] = {}
        self._pools: dict[Demand, Pool] = {}

    def free(self, rows: int) -> Free:
        """Return what is free in all of the first rows."""
        if rows == 1:
            return self._profile.row(0)
        key, log = self._profile.rows[rows - 1], self._profile.touched
        window = self._windows.get(key)
        if window is None:
            window = _Window(self._profile.floor(0, rows), len(log))
            remember(self._windows, key, window)
        elif window.seen < len(log):
            nodes = self._touched_since(window.seen)
            part = self._profile.floor(0, rows, nodes)
            for table, values in zip(window.free, part, strict=True):
                table[nodes] = values
            window.seen = len(log)
        return window.free

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
            found.total += int((counts - found.counts[nodes]).sum())
            found.counts[nodes] = counts
            found.seen = seen
        return found

    def site(self, demand: Demand, wanted: Filter, rows: int) -> Site:
        """Return what a placement is chosen from: the counts, and a score of every node."""
        key, seen = (demand, self._profile.rows[rows - 1]), len(self._profile.touched)
        layout, free, scorer = self._profile.layout, self.free(rows), self.scorer(demand)
        found = self._scored.get(key)
        if found is None:
            found = _Scored(scorer.nodes(wanted, free, np.arange(layout.nodes)), seen)
            remember(self._scored, key, found)
        elif found.seen < seen:
            nodes = self._touched_since(found.seen)
            found.scores[nodes] = scorer.nodes(wanted, _part(free, nodes), _indices(nodes))
            found.seen = seen
        counts = self.counted(demand, wanted, rows).counts
        return Site(layout, wanted, free, counts, found.scores, scorer)

    def scorer(self, demand: Demand) -> Scorer:
        """Return the scorer that the demand wishes, the policy's where it wishes none."""
        return self._scorers(demand.placement)

    def pool(self, demand: Demand, wanted: Filter) -> Pool:
        """Return what is free now of all that a demand may use."""
        found, seen = self._pools.get(demand), len(self._profile.touched)
        free = self._profile.row(0)
        if found is None:
            found = Pool(_pooled(wanted, free, slice(None)), seen)
            remember(self._pools, demand, found)
        elif found.seen < seen:
            nodes = self._touched_since(found.seen)
            found.write(_pooled(wanted, _part(free, nodes), nodes), nodes, seen)
        return found

    def _touched_since(self, seen: int) -> Nodes:
        nodes = set(self._profile.touched[seen:])
        if len(nodes) == 1:
            node = nodes.pop()
            return slice(node, node + 1)
        return np.array(sorted(nodes), dtype=np.int64)


def remember(cache: dict[KeyT, ValueT], key: KeyT, value: ValueT, most: int = MOST_KEPT) -> None:
    """Keep a value; the older half is forgotten where there are too many.

    One by one they would leave holes at the front of the dict, and the search for the oldest goes
    through them each time: that made 100,000 jobs of as many kinds take twice as long.
    """
    if len(cache) >= most:
        for old in list(islice(cache, (most + 1) // 2)):
            del cache[old]
    cache[key] = value


def _part(free: Free, nodes: Nodes) -> Free:
    return Free._make([table[nodes] for table in free])


def _indices(nodes: Nodes) -> IntArray:
    return np.arange(nodes.start, nodes.stop) if isinstance(nodes, slice) else nodes


def _pooled(wanted: Filter, free: Free, nodes: Nodes) -> IntArray:
    """Return (7, nodes) `Amounts` of some nodes; `free` is the state of exactly those."""
    node_ok = wanted.node_ok[nodes]
    usable = wanted.bearable(wanted.usable[nodes], free)
    milli = free.milli * usable
    memory = np.maximum(free.device_memory, 0) * usable
    rows = Amounts(
        cpu=np.maximum(free.cpu, 0) * node_ok,
        memory=np.maximum(free.memory, 0) * node_ok,
        milli=sum_devices(milli),
        device_memory=sum_devices(memory),
        share=milli.max(axis=-1, initial=0),
        share_memory=memory.max(axis=-1, initial=0),
        takes=sum_devices(wanted.takes(free, nodes).astype(np.int64)),
    )
    return np.array(rows)
