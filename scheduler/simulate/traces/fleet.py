"""An empty fleet out of a list of nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from scheduler.core.resources import WHOLE_MILLI
from scheduler.core.snapshot import FlavorSpec, Fleet


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node.

    Attributes:
        name: unique.
        cpu_milli, memory_mib: capacity.
        devices: flavor of each of its devices.
        link_groups: island of each device; () = none is known.
        labels, taints: as in `Fleet`.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    devices: tuple[str, ...] = ()
    link_groups: tuple[int, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: frozenset[str] = frozenset()


def empty_fleet(rows: Iterable[NodeRow], flavors: Sequence[FlavorSpec]) -> Fleet:
    """Return a fleet that is ready, healthy and free.

    Args:
        rows: in any order.
        flavors: all that occur, in any order; KeyError names one that is missing.
    """
    nodes = sorted(rows, key=lambda row: row.name)
    specs = tuple(sorted(flavors, key=lambda flavor: flavor.name))
    index = {flavor.name: i for i, flavor in enumerate(specs)}
    places = [(n, i) for n, row in enumerate(nodes) for i in range(len(row.devices))]
    of = np.array([index[nodes[n].devices[i]] for n, i in places], dtype=np.int64)
    memory = np.array([flavor.memory_mib for flavor in specs], dtype=np.int64)[of]
    cpu = np.array([row.cpu_milli for row in nodes], dtype=np.int64)
    ram = np.array([row.memory_mib for row in nodes], dtype=np.int64)
    groups = [nodes[n].link_groups[i] if nodes[n].link_groups else -1 for n, i in places]
    return _fixed(
        Fleet(
            node_names=tuple(row.name for row in nodes),
            node_cpu_milli=cpu,
            node_memory_mib=ram,
            node_cpu_free_milli=cpu,
            node_memory_free_mib=ram,
            node_ready=np.ones(len(nodes), dtype=np.bool_),
            node_note=("",) * len(nodes),
            node_taints=tuple(row.taints for row in nodes),
            node_labels=tuple(row.labels for row in nodes),
            device_uids=tuple(f"{nodes[n].name}/{i}" for n, i in places),
            device_node=np.array([n for n, _ in places], dtype=np.int64),
            device_flavor=of,
            device_free_milli=np.full(len(places), WHOLE_MILLI, dtype=np.int64),
            device_free_memory_mib=memory,
            device_memory_mib=memory,
            device_healthy=np.ones(len(places), dtype=np.bool_),
            device_link_group=np.array(groups, dtype=np.int64),
            flavors=specs,
        )
    )


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
