"""An empty fleet out of a list of nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from scheduler.core.resources import WHOLE_MILLI
from scheduler.core.snapshot import BoolArray, FlavorSpec, Fleet, IntArray


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node.

    Attributes:
        name: unique.
        cpu_milli, memory_mib: capacity.
        devices: flavor of each of its devices.
        link_groups: island of each device; () = none is known.
        labels, taints: as in `Fleet`.
        ready, note: as in `Fleet`.
        device_memory_mib: of each device; () = as its flavor says.
        numa, nics: NUMA node and nearest network card of each device; () = none is known.
        unhealthy, throttled: numbers of devices, counted from 0 on the node.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    devices: tuple[str, ...] = ()
    link_groups: tuple[int, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: frozenset[str] = frozenset()
    ready: bool = True
    note: str = ""
    device_memory_mib: tuple[int, ...] = ()
    numa: tuple[int, ...] = ()
    nics: tuple[int, ...] = ()
    unhealthy: frozenset[int] = frozenset()
    throttled: frozenset[int] = frozenset()


def empty_fleet(rows: Iterable[NodeRow], flavors: Sequence[FlavorSpec]) -> Fleet:
    """Return a fleet of which everything is free.

    Args:
        rows: in any order.
        flavors: all that occur, in any order; KeyError names one that is missing.
    """
    nodes = sorted(rows, key=lambda row: row.name)
    specs = tuple(sorted(flavors, key=lambda flavor: flavor.name))
    index = {flavor.name: i for i, flavor in enumerate(specs)}
    places = [(row, i) for row in nodes for i in range(len(row.devices))]
    of = _ints(index[row.devices[i]] for row, i in places)
    memory = _ints(
        row.device_memory_mib[i] if row.device_memory_mib else specs[flavor].memory_mib
        for (row, i), flavor in zip(places, of.tolist(), strict=True)
    )
    cpu, ram = _ints(row.cpu_milli for row in nodes), _ints(row.memory_mib for row in nodes)
    hot = _bools(i in row.throttled for row, i in places)
    return _fixed(
        Fleet(
            node_names=tuple(row.name for row in nodes),
            node_cpu_milli=cpu,
            node_memory_mib=ram,
            node_cpu_free_milli=cpu,
            node_memory_free_mib=ram,
            node_ready=_bools(row.ready for row in nodes),
            node_note=tuple(row.note for row in nodes),
            node_taints=tuple(row.taints for row in nodes),
            node_labels=tuple(row.labels for row in nodes),
            device_uids=tuple(f"{row.name}/{i}" for row, i in places),
            device_node=_ints(n for n, row in enumerate(nodes) for _ in row.devices),
            device_flavor=of,
            device_free_milli=np.full(len(places), WHOLE_MILLI, dtype=np.int64),
            device_free_memory_mib=memory,
            device_memory_mib=memory,
            device_healthy=_bools(i not in row.unhealthy for row, i in places),
            device_link_group=_ints(_known(row.link_groups, i) for row, i in places),
            flavors=specs,
            device_numa=_told(_ints(_known(row.numa, i) for row, i in places)),
            device_nic=_told(_ints(_known(row.nics, i) for row, i in places)),
            device_throttled=hot if hot.any() else hot[:0],
        )
    )


def _ints(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)


def _bools(values: Iterable[bool]) -> BoolArray:
    return np.fromiter(values, dtype=np.bool_)


def _known(groups: tuple[int, ...], device: int) -> int:
    return groups[device] if groups else -1


def _told(table: IntArray) -> IntArray:
    """Return a table, empty where it knows nothing of any device."""
    return table if (table >= 0).any() else table[:0]


def all_free(fleet: Fleet) -> Fleet:
    """Return a fleet as if nothing held anything."""
    return _fixed(
        replace(
            fleet,
            node_cpu_free_milli=fleet.node_cpu_milli.copy(),
            node_memory_free_mib=fleet.node_memory_mib.copy(),
            device_free_milli=np.full_like(fleet.device_free_milli, WHOLE_MILLI),
            device_free_memory_mib=fleet.device_memory_mib.copy(),
        )
    )


def _fixed(fleet: Fleet) -> Fleet:
    for column in fields(Fleet):
        if isinstance(table := getattr(fleet, column.name), np.ndarray):
            table.setflags(write=False)
    return fleet
