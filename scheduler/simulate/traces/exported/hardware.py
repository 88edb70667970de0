"""Flavors and nodes of a trace."""

import numpy as np

from scheduler.core.snapshot import FlavorSpec, Fleet, IntArray
from scheduler.simulate.errors import TraceError
from scheduler.simulate.traces.exported.content import Content
from scheduler.simulate.traces.exported.line import Line, known, new
from scheduler.simulate.traces.fleet import NodeRow

MOST_DEVICES = 1024


def read_flavor(line: Line, content: Content) -> None:
    """Read an accelerator model."""
    name = new(line.cell("name"), content.flavors)
    units, watts = line.cell("compute_units"), line.cell("power_w")
    content.flavors[name] = FlavorSpec(
        name,
        None if units.value is None else units.positive(),
        line.cell("memory_mib").integer(),
        None if watts.value is None else watts.number(),
    )


def flavor_values(flavor: FlavorSpec) -> dict[str, object]:
    """Return what `read_flavor` reads."""
    return {
        "name": flavor.name,
        "memory_mib": flavor.memory_mib,
        "compute_units": flavor.compute_units,
        "power_w": flavor.power_w,
    }


def read_node(line: Line, content: Content) -> None:
    """Read a node with its devices."""
    name = new(line.cell("name"), content.nodes)
    cells = line.cells("devices")
    if len(cells) > MOST_DEVICES:
        raise TraceError(line.file, line.number, "devices", len(cells), "are too many")
    devices = tuple(known(cell, content.flavors, "flavor") for cell in cells)
    count = len(devices)
    content.nodes[name] = NodeRow(
        name,
        line.cell("cpu_milli").integer(),
        line.cell("memory_mib").integer(),
        devices,
        link_groups=line.integers("link_groups", low=-1, count=count),
        labels={key: cell.text(empty=True) for key, cell in line.mapping("labels").items()},
        taints=frozenset(line.names("taints")),
        ready=line.flag("ready", default=True),
        note=line.word("note"),
        device_memory_mib=line.integers("device_memory_mib", low=0, count=count),
        numa=line.integers("numa", low=-1, count=count),
        nics=line.integers("nics", low=-1, count=count),
        unhealthy=line.numbers("unhealthy", below=count),
        throttled=line.numbers("throttled", below=count),
    )


def node_values(fleet: Fleet, n: int) -> dict[str, object]:
    """Return what `read_node` reads."""
    at = np.flatnonzero(fleet.device_node == n)
    flavors = [fleet.flavors[flavor] for flavor in fleet.device_flavor[at].tolist()]
    memory = fleet.device_memory_mib[at].tolist()
    return {
        "name": fleet.node_names[n],
        "cpu_milli": int(fleet.node_cpu_milli[n]),
        "memory_mib": int(fleet.node_memory_mib[n]),
        "devices": [flavor.name for flavor in flavors],
        "device_memory_mib": memory if memory != [one.memory_mib for one in flavors] else [],
        "link_groups": _known(fleet.device_link_group, at),
        "numa": _known(fleet.device_numa, at),
        "nics": _known(fleet.device_nic, at),
        "unhealthy": np.flatnonzero(~fleet.device_healthy[at]).tolist(),
        "throttled": (
            np.flatnonzero(fleet.device_throttled[at]).tolist()
            if len(fleet.device_throttled)
            else []
        ),
        "labels": dict(fleet.node_labels[n]),
        "taints": sorted(fleet.node_taints[n]),
        "ready": bool(fleet.node_ready[n]),
        "note": fleet.node_note[n],
    }


def _known(table: IntArray, at: IntArray) -> list[int]:
    """Return what a table says of some devices, [] where it knows nothing of any."""
    values: list[int] = table[at].tolist() if len(table) else []
    return values if any(value != -1 for value in values) else []
