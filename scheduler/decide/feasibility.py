"""How many replicas of a shape fit on each node: the one filter of the engine.

Everything is vectorised over nodes. Devices lie in a padded (nodes, width) grid, so that one node
is one row and a change of one node costs one row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations
from typing import NamedTuple, TypeAlias

import numpy as np

from scheduler.core.resources import WHOLE_MILLI, ReplicaShape
from scheduler.core.snapshot import BoolArray, Fleet, IntArray
from scheduler.core.topology import Level, domain_of
from scheduler.decide.foes import ANYBODY, NO_FOES, Foes

MOST_MEMORY_MIB = 1 << 40
"""Stands for device memory where there is no device; far above any."""

NEVER_MIB = np.iinfo(np.int64).max
"""What a device would need free that may not be used: no device has so much."""

ANY = -1
"""Flavor index of a shape without devices."""


Nodes: TypeAlias = IntArray | slice
"""Some nodes: their indices, or a range, which is read without a copy."""


class Free(NamedTuple):
    """What is free at one moment, or at every moment of a window (the minimum).

    Attributes:
        cpu: (nodes,) milli-cores.
        memory: (nodes,) MiB.
        milli: (nodes, width) thousandths of each device.
        device_memory: (nodes, width) MiB of each device.
        foes: (nodes, width, classes) minus the holds on it that each class can't bear (`foes`).
    """

    cpu: IntArray
    memory: IntArray
    milli: IntArray
    device_memory: IntArray
    foes: IntArray


class Layout:
    """The part of a fleet that a cycle does not change, as a grid.

    Attributes:
        device_at: (nodes, width) index of the device in the fleet, -1 where there is none.
        flavor: (nodes, width) index of the device's flavor, -1 where there is none.
        capacity: what an empty fleet has free, healthy or not.
        usable: (nodes, width) a healthy device, not throttled for heat, on a ready node.
        ready: (nodes,) the node may take new work.
        impaired: indices of the nodes that are not ready or have a device that is not healthy.
        link_group: (nodes, width) link island, -1 = none known.
        numa: (nodes, width) NUMA node, -1 = not known.
        nic: (nodes, width) nearest network card, -1 = not known.
        foes: the classes that never share a device with some other.
    """

    def __init__(self, fleet: Fleet, foes: Foes = NO_FOES) -> None:
        self.foes = foes
        nodes, devices = len(fleet.node_names), len(fleet.device_uids)
        column = _column_on_node(fleet.device_node, nodes)
        self.column = column
        self.nodes = nodes
        self.width = int(column.max(initial=-1)) + 1
        self.device_at = self._grid(fleet, np.arange(devices), fill=-1)
        self.flavor = self._grid(fleet, fleet.device_flavor, fill=-1)
        self.link_group = self._grid(fleet, fleet.device_link_group, fill=-1)
        self.numa = self._known(fleet, fleet.device_numa)
        self.nic = self._known(fleet, fleet.device_nic)
        self._labels = fleet.node_labels
        self._domains: dict[Level, IntArray] = {}
        present = self.device_at >= 0
        self.ready = np.asarray(fleet.node_ready, dtype=np.bool_)
        healthy = self._grid(fleet, fleet.device_healthy.astype(np.int64), fill=0) > 0
        if len(fleet.device_throttled):
            healthy &= self._grid(fleet, fleet.device_throttled.astype(np.int64), fill=0) == 0
        self.usable: BoolArray = healthy & self.ready[:, None]
        self.impaired = np.flatnonzero(~self.ready | (present & ~healthy).any(axis=-1))
        self.capacity = Free(
            np.maximum(fleet.node_cpu_milli, 0).astype(np.int64),
            np.maximum(fleet.node_memory_mib, 0).astype(np.int64),
            np.where(present, WHOLE_MILLI, 0).astype(np.int64),
            self._grid(fleet, fleet.device_memory_mib, fill=0),
            self._nobody(),
        )
        self.taints = tuple(sorted(set(fleet.node_taints), key=sorted))
        ids = {taints: i for i, taints in enumerate(self.taints)}
        self.taint_of = np.array([ids[t] for t in fleet.node_taints], dtype=np.int64)

    def _grid(self, fleet: Fleet, values: IntArray, *, fill: int) -> IntArray:
        grid = np.full((self.nodes, self.width), fill, dtype=np.int64)
        grid[fleet.device_node, self.column] = values
        return grid

    def _nobody(self) -> IntArray:
        return np.zeros((self.nodes, self.width, self.foes.count), dtype=np.int64)

    def _known(self, fleet: Fleet, values: IntArray) -> IntArray:
        if not len(values):
            return np.full((self.nodes, self.width), -1, dtype=np.int64)
        return self._grid(fleet, values, fill=-1)

    def domains(self, level: Level) -> IntArray:
        """Return (nodes,) the number of each node's domain of a level, -1 = in none.

        A node is its own domain of the levels within nodes. Numbers follow the sorted names.
        """
        if level not in self._domains:
            self._domains[level] = self._domains_of(level)
        return self._domains[level]

    def _domains_of(self, level: Level) -> IntArray:
        if level not in {Level.RACK, Level.BLOCK}:
            return np.arange(self.nodes)
        names = [domain_of(labels, level) for labels in self._labels]
        index = {name: i for i, name in enumerate(sorted(set(names) - {()}))}
        return np.array([index.get(name, -1) for name in names], dtype=np.int64)

    @cached_property
    def nearness(self) -> tuple[IntArray, ...]:
        """Return (nodes, width) groups of devices near to each other, the nearest first.

        Near by link, NUMA node and network card together, then by fewer of them; links count for
        most, network cards for least. What is known of no device is left out; -1 = not known.
        """
        known = [grid for grid in (self.link_group, self.numa, self.nic) if (grid >= 0).any()]
        kinds = range(len(known))
        subsets = [s for size in kinds for s in combinations(kinds, size + 1)]
        subsets.sort(key=lambda s: tuple(k not in s for k in kinds))
        return tuple(_joined([known[k] for k in s]) for s in subsets) or (self.link_group,)

    def islands(self, level: Level) -> IntArray:
        """Return (nodes, width) which island of its node each device is in, counted from 0.

        Islands of a level within nodes: of NVLink or HCCS, where a device without links is an
        island of its own, or of a network card or of NUMA, where a device of which it is not known
        is in none (-1).
        """
        groups = {Level.NIC: self.nic, Level.NUMA: self.numa}.get(level, self.link_group)
        alone = (groups < 0) & (self.device_at >= 0) & (level is Level.LINK)
        apart = int(groups.max(initial=0)) + 1 + np.arange(self.width)
        groups = np.where(alone, apart[None, :], groups)
        known = np.where(groups >= 0, groups, np.iinfo(np.int64).max)
        ranked = np.sort(known, axis=-1)
        first = np.ones_like(ranked, dtype=np.bool_)
        first[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
        below = (known[:, :, None] > ranked[:, None, :]) & first[:, None, :]
        return np.where(groups >= 0, below.sum(axis=-1), -1)

    def free_now(self, fleet: Fleet) -> Free:
        """Return what the fleet has free, as arrays of this grid (copies); nobody has foes yet."""
        return Free(
            np.array(fleet.node_cpu_free_milli, dtype=np.int64),
            np.array(fleet.node_memory_free_mib, dtype=np.int64),
            self._grid(fleet, fleet.device_free_milli, fill=0),
            self._grid(fleet, fleet.device_free_memory_mib, fill=0),
            self._nobody(),
        )

    def largest_node(self, flavor: int) -> int:
        """Return the most devices of a flavor on one node."""
        return int((self.flavor == flavor).sum(axis=-1).max(initial=0))

    def tolerated(self, tolerations: frozenset[str]) -> BoolArray:
        """Return (nodes,) whether each node's taints are all tolerated."""
        allowed = np.array([taints <= tolerations for taints in self.taints], dtype=np.bool_)
        return allowed[self.taint_of] if self.nodes else np.zeros(0, dtype=np.bool_)


def _joined(grids: Sequence[IntArray]) -> IntArray:
    """Return one group number for each combination of groups; -1 where one is not known."""
    joined = grids[0]
    for grid in grids[1:]:
        apart = joined * (int(grid.max(initial=0)) + 1) + grid
        joined = np.where((joined >= 0) & (grid >= 0), apart, -1)
    return joined


def _column_on_node(device_node: IntArray, nodes: int) -> IntArray:
    """Return (devices,) the place of each device on its node; devices are sorted by node."""
    first = np.searchsorted(device_node, np.arange(nodes))
    return np.arange(len(device_node)) - first[device_node]


@dataclass(frozen=True, slots=True)
class Demand:
    """One kind of replica on one flavor: equal demands share every cached answer.

    Attributes:
        flavor: index of the flavor, `ANY` for a shape without devices.
        tolerations: taint keys that are tolerated.
        whatever_health: count nodes that are not ready and devices that are not healthy, too.
        within: all replicas on a node share one island of this level; None = any devices do.
        one_per_node: no node takes more than one replica.
        placement: score that chooses among nodes; "" = the policy's.
        interference: number of its class among those with foes, `ANYBODY` for none.
    """

    shape: ReplicaShape
    flavor: int
    tolerations: frozenset[str]
    whatever_health: bool = False
    within: Level | None = None
    one_per_node: bool = False
    placement: str = ""
    interference: int = ANYBODY
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work out the hash once: every look into a cache asks for it."""
        where = (self.flavor, self.tolerations, self.whatever_health)
        how = (self.within, self.one_per_node, self.placement, self.interference)
        object.__setattr__(self, "_hash", hash((self.shape, where, how)))

    def __hash__(self) -> int:
        """Return the hash of all parts."""
        return self._hash


class Filter:
    """A demand made ready for one layout: masks once, then counts for any state.

    Attributes:
        shape: what a replica takes.
        flavor: index of its flavor, `ANY` for none.
        node_ok: (nodes,) nodes that may be used at all.
        device_ok: (nodes, width) devices that may be used at all.
        usable: (nodes, width) those of them on nodes that may be used.
        memory_each: (nodes, width) device memory that a replica takes of each device, MiB.
        least_memory_mib: the least of that over the devices that may be used.
        islands: (nodes, width) of which all replicas on a node share one; None = any devices do.
        against: (classes,) 1 for each that it can't bear on its device; None = it bears all.
    """

    def __init__(self, layout: Layout, demand: Demand) -> None:
        shape = demand.shape
        self.islands = None if demand.within is None else layout.islands(demand.within)
        self._one_per_node = demand.one_per_node
        self._class, against = demand.interference, layout.foes.against
        self.against = None if self._class == ANYBODY else against[self._class]
        self.shape, self.flavor = shape, demand.flavor
        self.node_ok = layout.tolerated(demand.tolerations)
        self.device_ok = layout.flavor == demand.flavor
        if not demand.whatever_health:
            self.node_ok = self.node_ok & layout.ready
            self.device_ok = self.device_ok & layout.usable
        memory = layout.capacity.device_memory
        self.device_ok &= memory >= shape.gpu_memory_mib
        self.memory_each = _memory_each(shape, memory)
        self.usable = self.device_ok & self.node_ok[:, None]
        self.least_memory_mib = int(self.memory_each[self.usable].min(initial=MOST_MEMORY_MIB))
        self._least_milli = shape.gpu_milli if shape.is_fraction else WHOLE_MILLI
        self._needs_mib = np.where(self.usable, self.memory_each, NEVER_MIB)
        self._any_for_nothing = bool((self.memory_each[self.usable] == 0).any())

    def count(self, free: Free, nodes: Nodes = slice(None)) -> IntArray:
        """Return how many replicas each of the nodes can take.

        Args:
            free: state of exactly those nodes, in that order.
            nodes: which nodes; all by default.

        Returns:
            (nodes,) counts, >= 0; exact, as all replicas are equal.
        """
        shape = self.shape
        fit = np.minimum(free.cpu // shape.cpu_milli, free.memory // shape.memory_mib)
        if shape.devices:
            fit = np.minimum(fit, self._by_devices(free, nodes))
        if self._one_per_node:
            fit = np.minimum(fit, 1)
        return np.maximum(fit, 0) * self.node_ok[nodes]

    def takes(self, free: Free, nodes: Nodes = slice(None)) -> BoolArray:
        """Return (nodes, width) which devices can take a part of a replica, CPU left aside."""
        takes: BoolArray = free.milli >= self._least_milli
        takes &= free.device_memory >= self._needs_mib[nodes]
        return self.bearable(takes, free)

    def bearable(self, devices: BoolArray, free: Free) -> BoolArray:
        """Return those of the (nodes, width) devices on which nobody is that it can't bear."""
        if self.against is None:
            return devices
        bearable: BoolArray = devices & (free.foes[..., self._class] >= 0)
        return bearable

    def _by_devices(self, free: Free, nodes: Nodes) -> IntArray:
        if self.islands is None:
            return self._replicas(self._shares(free, nodes))
        most: IntArray = self.count_islands(free, nodes).max(axis=-1, initial=0)
        return most

    def _shares(self, free: Free, nodes: Nodes) -> IntArray:
        """Return (nodes, width) how many replicas' parts each device takes."""
        if not self.shape.is_fraction:
            return self.takes(free, nodes).astype(np.int64)
        ok = self.bearable(self.usable[nodes], free)
        times = np.minimum(free.milli // self.shape.gpu_milli, self._by_memory(free, nodes))
        if self.against is not None and self.against[self._class]:
            times = np.minimum(times, 1)  # it can't bear its like
        shares: IntArray = np.maximum(times, 0) * ok
        return shares

    def _by_memory(self, free: Free, nodes: Nodes) -> IntArray:
        """Return (nodes, width) parts by memory; as many as one likes where they take none."""
        if self._any_for_nothing:
            return _divide(free.device_memory, self.memory_each[nodes])
        return free.device_memory // self._needs_mib[nodes]

    def _replicas(self, shares: IntArray) -> IntArray:
        counts: IntArray = sum_devices(shares) // self.shape.devices
        return counts

    def count_islands(self, free: Free, nodes: Nodes = slice(None)) -> IntArray:
        """Return (nodes, islands) how many replicas the devices of each island take."""
        shares = self._shares(free, nodes)
        if self.islands is None:
            return self._replicas(shares)[:, None]
        islands, most = self.islands[nodes], int(self.islands.max(initial=-1)) + 1
        counts = np.zeros((len(shares), most), dtype=np.int64)
        for island in range(most):
            counts[:, island] = self._replicas(np.where(islands == island, shares, 0))
        return counts


def sum_devices(table: IntArray) -> IntArray:
    """Return (nodes,) sums of a (nodes, width) table; `sum` is slow along a short axis."""
    sums: IntArray = table @ _ones(table.shape[1])
    return sums


@cache
def _ones(count: int) -> IntArray:
    return np.ones(count, dtype=np.int64)


def _memory_each(shape: ReplicaShape, memory: IntArray) -> IntArray:
    """Return the device memory a replica takes of each device; rounded down, so that shares fit."""
    if not shape.is_fraction:
        return memory
    if shape.gpu_memory_mib:
        return np.full_like(memory, shape.gpu_memory_mib)
    return memory * shape.gpu_milli // WHOLE_MILLI


def _divide(free: IntArray, each: IntArray) -> IntArray:
    """Return free // each, and "as many as one likes" where nothing is taken."""
    return np.where(each > 0, free // np.maximum(each, 1), WHOLE_MILLI)


def flavor_index(fleet: Fleet) -> Mapping[str, int]:
    """Return flavor name -> index in `fleet.flavors`."""
    return {flavor.name: i for i, flavor in enumerate(fleet.flavors)}
