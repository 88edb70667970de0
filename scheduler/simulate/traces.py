"""Reads public traces into plain values: the openb node and pod lists.

The caller opens the files; what is given here is any iterable of lines.

Source: alibaba/clusterdata gpu-v2023, used by "Beware of Fragmentation", USENIX ATC 2023.
"""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

WHOLE_MILLI = 1000


class TraceError(ValueError):
    """A line of a trace cannot be read; says which one and why."""


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
    """

    name: str
    cpu_milli: int
    memory_mib: int
    devices: int
    gpu_milli: int
    models: frozenset[str]


def read_nodes(lines: Iterable[str]) -> tuple[TraceNode, ...]:
    """Return the nodes of an openb node list, in file order.

    Raises:
        TraceError: a column is missing, or a number is not one or is negative.
    """
    return tuple(
        TraceNode(
            row["sn"],
            _count(row, "cpu_milli", line),
            _count(row, "memory_mib", line),
            _count(row, "gpu", line),
            row["model"] or "",
        )
        for line, row in _rows(lines, ("sn", "cpu_milli", "memory_mib", "gpu", "model"))
    )


def read_pods(lines: Iterable[str]) -> tuple[TracePod, ...]:
    """Return the pods of an openb pod list, in file order; without `gpu_spec` any model will do.

    Raises:
        TraceError: a column is missing, a number is not one or is negative, or a share of several
            devices is asked for.
    """
    wanted = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    return tuple(_pod(row, line) for line, row in _rows(lines, wanted))


def _pod(row: dict[str, str], line: int) -> TracePod:
    devices, milli = _count(row, "num_gpu", line), _count(row, "gpu_milli", line)
    if not devices:
        milli = 0
    elif not 0 < milli <= WHOLE_MILLI or (devices > 1 and milli < WHOLE_MILLI):
        raise TraceError(f"line {line}: {devices} devices of {milli} milli each")
    models = frozenset(model for model in (row.get("gpu_spec") or "").split("|") if model)
    cpu, memory = _count(row, "cpu_milli", line), _count(row, "memory_mib", line)
    return TracePod(row["name"], cpu, memory, devices, milli, models)


def _rows(lines: Iterable[str], wanted: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.DictReader(lines)
    missing = [name for name in wanted if name not in (reader.fieldnames or ())]
    if missing:
        raise TraceError(f"line 1: no column {', '.join(missing)}")
    for row in reader:
        yield reader.line_num, row


def _count(row: dict[str, str], name: str, line: int) -> int:
    text = row[name] or ""
    if not (text.isascii() and text.isdigit() and len(text) < len(str(2**62))):
        raise TraceError(f"line {line}: {name} is {text!r}, not a whole number from 0 up")
    return int(text)
