"""Reads the openb node and pod lists, and makes a world and jobs of them that can be simulated.

The caller opens the files; what is given here is any iterable of lines.

Source: alibaba/clusterdata gpu-v2023, used by "Beware of Fragmentation", USENIX ATC 2023.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scheduler.core.resources import WHOLE_MILLI, ReplicaShape
from scheduler.core.snapshot import FlavorSpec, JobSpec, Snapshot, TenantNode
from scheduler.simulate.errors import TraceError
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.traces.cells import Cell
from scheduler.simulate.traces.fleet import NodeRow, empty_fleet

TENANT = "all"
"""The list names no owners: all pods are one tenant's."""

MOST_DEVICES = 1024

TIMES = ("creation_time", "deletion_time")
"""Columns of when a pod came and went; the lists with many devices a pod (multigpu) lack them."""


@dataclass(frozen=True, slots=True)
class TraceNode:
    """One node: milli-cores, MiB, number of devices, and their model ("" = none)."""

    name: str
    cpu_milli: int
    memory_mib: int
    devices: int
    model: str


@dataclass(frozen=True, slots=True)
class TracePod:
    """One pod.

    Attributes:
        cpu_milli: milli-cores, >= 0.
        memory_mib: MiB, >= 0.
        devices: number of devices, 0 for a CPU-only pod.
        gpu_milli: thousandths of each device; below 1000 only for one device.
        models: allowed device models; empty = any.
        created_s: seconds since the begin of the trace; 0 where the list has no times.
        ran_s: seconds from its start, or its creation where it never started, to its end; 0 where
            the list has no times.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    devices: int
    gpu_milli: int
    models: frozenset[str]
    created_s: float = 0.0
    ran_s: float = 0.0


def read_nodes(lines: Iterable[str], file: str = "") -> tuple[TraceNode, ...]:
    """Return the nodes of an openb node list, in file order.

    Args:
        lines: of the file.
        file: its name, for errors.

    Raises:
        TraceError: a column is missing, or a number is not one or is negative.
    """
    return tuple(
        TraceNode(
            row["sn"].text(),
            row["cpu_milli"].integer(),
            row["memory_mib"].integer(),
            row["gpu"].integer(high=MOST_DEVICES),
            str(row["model"].value or ""),
        )
        for row in _rows(lines, file, ("sn", "cpu_milli", "memory_mib", "gpu", "model"))
    )


def read_pods(lines: Iterable[str], file: str = "", *, timed: bool = False) -> tuple[TracePod, ...]:
    """Return the pods of an openb pod list, in file order; without `gpu_spec` any model will do.

    Args:
        lines: of the file.
        file: its name, for errors.
        timed: the list has to say when pods came and went, as they are to be simulated.

    Raises:
        TraceError: a column is missing, a number is not one or is negative, a share of several
            devices is asked for, or a pod ends before it begins.
    """
    wanted: tuple[str, ...] = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    wanted += TIMES if timed else ()
    return tuple(_pod(row) for row in _rows(lines, file, wanted))


def _pod(row: Mapping[str, Cell]) -> TracePod:
    devices, milli = row["num_gpu"].integer(high=MOST_DEVICES), row["gpu_milli"].integer()
    if not devices:
        milli = 0
    elif not 0 < milli <= WHOLE_MILLI or (devices > 1 and milli < WHOLE_MILLI):
        raise row["gpu_milli"].error(f"of each of {devices} devices cannot be")
    asked = str(row["gpu_spec"].value or "") if "gpu_spec" in row else ""
    models = frozenset(model for model in asked.split("|") if model)
    cpu, memory = row["cpu_milli"].integer(), row["memory_mib"].integer()
    name = row["name"].text()
    return TracePod(name, cpu, memory, devices, milli, models, *_times(row))


def _times(row: Mapping[str, Cell]) -> tuple[float, float]:
    """Return creation and run time in seconds, (0, 0) where the list has no times."""
    if not row.keys() >= set(TIMES):
        return 0.0, 0.0
    created_s = row["creation_time"].number()
    started = row.get("scheduled_time")
    began_s = started.number(low=created_s) if started and started.value else created_s
    return created_s, row["deletion_time"].number(low=began_s) - began_s


def _rows(lines: Iterable[str], file: str, wanted: Sequence[str]) -> Iterator[Mapping[str, Cell]]:
    reader = csv.DictReader(lines)
    try:
        missing = [name for name in wanted if name not in (reader.fieldnames or ())]
        if missing:
            why = f"has no column {', '.join(missing)}"
            if set(missing) <= set(TIMES):
                why += ", without which no pod comes or goes; openb_pod_list_default.csv has them"
            raise TraceError(file, 1, "", reader.fieldnames, why)
        for row in reader:
            line = reader.line_num
            yield {name: Cell(file, line, name, value) for name, value in row.items() if name}
    except csv.Error as broken:
        raise TraceError(file, reader.line_num, "", str(broken), "is no CSV") from broken


def sim_world(nodes: Sequence[TraceNode]) -> Snapshot:
    """Return the empty cluster; what the trace does not know of its devices is 0 or none.

    Raises:
        TraceError: two nodes have one name.
    """
    names = [node.name for node in nodes]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TraceError("", 0, "sn", twice, "occurs twice")
    rows = [
        NodeRow(node.name, node.cpu_milli, node.memory_mib, (node.model,) * node.devices)
        for node in nodes
    ]
    models = sorted({node.model for node in nodes if node.devices})
    flavors = [FlavorSpec(model, None, 0, None) for model in models]
    fleet = empty_fleet(rows, flavors)
    return Snapshot("openb", 0.0, fleet, (), (), (TenantNode(TENANT, None, 1.0, {}),))


def sim_jobs(pods: Sequence[TracePod], *, limit_frac: float) -> list[SimJob]:
    """Return one job per pod; it runs for as long as the pod did, wherever it is placed.

    Args:
        pods: of a list with times; where a name occurs twice its place in the list is added.
        limit_frac: time limit as a multiple of the run time, as the list has none; >= 1.
    """
    return [_sim_job(number, pod, limit_frac) for number, pod in enumerate(pods)]


def _sim_job(number: int, pod: TracePod, limit_frac: float) -> SimJob:
    shape = ReplicaShape(
        max(pod.cpu_milli, 1), max(pod.memory_mib, 1), pod.devices, pod.gpu_milli or WHOLE_MILLI
    )
    ran_s = max(pod.ran_s, 1.0)
    spec = JobSpec(
        uid=f"{number:06d}-{pod.name}",
        tenant=TENANT,
        kind="batch",
        shape=shape,
        replicas_min=1,
        replicas_max=1,
        flavors=tuple(sorted(pod.models)),
        priority=0,
        preemptible=True,
        time_limit_s=limit_frac * ran_s,
        submitted_s=pod.created_s,
    )
    return SimJob(spec, ran_s)
