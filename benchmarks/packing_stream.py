"""The stream of the FGD protocol: which jobs arrive, in which order, on which nodes.

Source: "Beware of Fragmentation", USENIX ATC 2023, and hkust-adsl/kubernetes-scheduler-simulator:
shuffled pods, cut or drawn again until 130 % of the devices are asked for.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.inputs import lines_of
from scheduler.decide.scores.state import CLASSES, IntArray, Nodes, Shapes, kind_of
from scheduler.simulate.errors import TraceError
from scheduler.simulate.traces.openb import TraceNode, TracePod, read_nodes, read_pods

ARRIVING = 1.3
"""Demand that arrives, relative to all devices."""
_WIDTH = 8


class Trace(NamedTuple):
    """A workload: its nodes, and the shape of each of its pods."""

    nodes: tuple[TraceNode, ...]
    shapes: Shapes
    pods: IntArray


def lists_of(folder: Path, workload: str) -> tuple[Path, Path]:
    """Return the files that list the nodes and the pods of a workload."""
    return folder / "openb_node_list_gpu_node.csv", folder / f"openb_pod_list_{workload}.csv"


def load(folder: Path, workload: str) -> Trace:
    """Read a workload from a folder of openb lists.

    Raises:
        OSError: a list cannot be read.
        TraceError: it is none, or nobody asks for a device: such a stream would never end.
    """
    of_nodes, of_pods = lists_of(folder, workload)
    nodes = read_nodes(lines_of(of_nodes), of_nodes.name)
    pods = read_pods(lines_of(of_pods), of_pods.name)
    if not any(pod.devices for pod in pods) or not any(node.devices for node in nodes):
        raise TraceError(
            str(folder), 0, "", workload, "has no devices, or no pod that asks for any"
        )
    bits = {model: 1 << k for k, model in enumerate(models_of(nodes))}
    rows = [_row(pod, bits) for pod in pods]
    known = {row: k for k, row in enumerate(sorted(set(rows)))}
    table = np.array(list(known), dtype=np.int64)
    shapes = Shapes(*(np.ascontiguousarray(table[:, k]) for k in range(6)))
    return Trace(nodes, shapes, np.array([known[row] for row in rows], dtype=np.int64))


def models_of(nodes: Sequence[TraceNode]) -> list[str]:
    """Return the device models in the order of their bits."""
    return sorted({node.model for node in nodes})


def devices_of(nodes: Sequence[TraceNode]) -> IntArray:
    """Return (models,) how many devices there are of each model."""
    models = models_of(nodes)
    return np.array(
        [sum(node.devices for node in nodes if node.model == model) for model in models],
        dtype=np.int64,
    )


def _row(pod: TracePod, bits: dict[str, int]) -> tuple[int, ...]:
    nowhere = 1 << 62 if pod.models else 0  # asks for models that no node has, only
    models = sum(bits[model] for model in pod.models if model in bits) or nowhere
    kind = kind_of(pod.devices, pod.gpu_milli)
    return (pod.cpu_milli, pod.memory_mib, pod.devices, pod.gpu_milli, models, kind)


def nodes_of(trace: Trace, rng: np.random.Generator) -> Nodes:
    """Return the empty nodes in a random order, which breaks ties for the whole run."""
    nodes = [trace.nodes[k] for k in rng.permutation(len(trace.nodes)).tolist()]
    models = models_of(trace.nodes)
    devices = np.array([node.devices for node in nodes], dtype=np.int64)
    return Nodes(
        np.array([node.cpu_milli for node in nodes], dtype=np.int64),
        np.array([node.memory_mib for node in nodes], dtype=np.int64),
        np.where(np.arange(_WIDTH) < devices[:, None], 1000, 0).astype(np.int64),
        devices,
        np.array([1 << models.index(node.model) for node in nodes], dtype=np.int64),
        np.zeros((len(nodes), len(CLASSES)), dtype=np.int64),
    )


def stream_of(trace: Trace, rng: np.random.Generator) -> IntArray:
    """Return the shapes in order of arrival, up to 130 % of the devices.

    A trace that asks for more loses random pods; one that asks for less gets pods drawn from the
    whole trace until the next would pass the mark, where the check counts one device of it.
    """
    mark = ARRIVING * 1000 * sum(node.devices for node in trace.nodes)
    each = trace.shapes.milli
    takes = each * trace.shapes.devices
    arrivals = trace.pods[rng.permutation(len(trace.pods))].tolist()
    asked = int(takes[arrivals].sum())
    if asked > mark:
        while asked > mark:
            asked -= int(takes[arrivals.pop(int(rng.integers(len(arrivals))))])
        return np.array(arrivals, dtype=np.int64)
    while True:
        shape = int(trace.pods[rng.integers(len(trace.pods))])
        if asked + int(each[shape]) > mark:
            return np.array(arrivals, dtype=np.int64)
        arrivals.append(shape)
        asked += int(takes[shape])
