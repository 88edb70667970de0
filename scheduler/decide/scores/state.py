"""The arrays that placement scores work on.

Nodes stand in the order in which ties are broken: of two equal scores the first node wins.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

ANY_MODEL = 0
"""Bit set of a shape that accepts every model."""
WHOLE = 1000
"""A whole device in milli."""
TYPICAL = 0.95
"""FGD looks at the most frequent kinds of jobs that make up this part of all."""
CLASSES = ("cpu_only", "shared", "1", "2", "4", "8")
"""Classes of jobs, by what they take; 3 devices count as 4, and 5 to 8 as 8."""


class Nodes(NamedTuple):
    """What the nodes have free; changed in place as jobs are placed.

    Attributes:
        cpu: (nodes,) free milli-cores.
        memory: (nodes,) free MiB.
        milli: (nodes, width) free thousandths of each device, 0 where there is none.
        devices: (nodes,) number of devices.
        model: (nodes,) one bit, of the node's device model.
        held: (nodes, classes) jobs of each class on the node.
    """

    cpu: IntArray
    memory: IntArray
    milli: IntArray
    devices: IntArray
    model: IntArray
    held: IntArray


class Scale(NamedTuple):
    """What scores are relative to.

    Attributes:
        cpu: milli-cores of the largest node, >= 1.
        gpu: milli of all devices of the largest node, >= 1.
        cpu_each: milli-cores per device of the whole fleet, > 0.
        models: devices of each model, by its bit.
        model_cpu: milli-cores of the largest node of each model.
        model_devices: devices of the largest node of each.
    """

    cpu: int
    gpu: int
    cpu_each: float
    models: tuple[int, ...]
    model_cpu: tuple[int, ...]
    model_devices: tuple[int, ...]


def scale_of(cpu: IntArray, devices: IntArray, models: IntArray, bits: IntArray) -> Scale:
    """Return the scale of a fleet, of one core and one device at least.

    Args:
        cpu: (nodes,) milli-cores of each node.
        devices: (nodes,) number of devices of each.
        models: (models,) devices of each model, by its bit.
        bits: (nodes,) bit set of the models of each node.
    """
    has = (bits[:, None] >> np.arange(len(models))) & 1
    total = max(float(cpu.sum()), float(WHOLE))
    return Scale(
        max(int(cpu.max(initial=0)), WHOLE),
        max(int(devices.max(initial=0)), 1) * WHOLE,
        total / max(int(devices.sum()), 1),
        tuple(models.tolist()),
        tuple((has * cpu[:, None]).max(axis=0, initial=0).tolist()),
        tuple((has * devices[:, None]).max(axis=0, initial=0).tolist()),
    )


class Shapes(NamedTuple):
    """Kinds of jobs.

    Attributes:
        cpu: (shapes,) milli-cores.
        memory: (shapes,) MiB.
        devices: (shapes,) number of devices.
        milli: (shapes,) thousandths of each device; below 1000 only for one device.
        models: (shapes,) bit set of allowed models, `ANY_MODEL` = all.
        kind: (shapes,) index in `CLASSES`.
    """

    cpu: IntArray
    memory: IntArray
    devices: IntArray
    milli: IntArray
    models: IntArray
    kind: IntArray


class Mix(NamedTuple):
    """How often each kind of job is asked for.

    Attributes:
        cpu: (shapes,) milli-cores.
        devices: (shapes,) number of devices.
        milli: (shapes,) thousandths of each device.
        models: (shapes,) bit set of allowed models.
        weight: (shapes,) part of all jobs, 0..1.
    """

    cpu: IntArray
    devices: IntArray
    milli: IntArray
    models: IntArray
    weight: FloatArray


def kind_of(devices: int, milli: int) -> int:
    """Return the index in `CLASSES` of a job of that many devices of that many milli."""
    if not devices:
        return 0
    if devices == 1:
        return 1 if milli < WHOLE else 2
    return 3 if devices == 2 else 4 if devices <= 4 else 5  # noqa: PLR2004 - the classes' names


def mix_of(shapes: Shapes, counts: FloatArray, *, cover: float = 1.0) -> Mix:
    """Return the most frequent kinds that make up a part of all jobs.

    Shapes that differ in memory only are one kind; among equal counts the smaller kind goes first.

    Args:
        shapes: the kinds.
        counts: (shapes,) how often each was seen, >= 0.
        cover: part of all jobs to cover, 0..1; FGD uses `TYPICAL`.

    Source:
        FGD, "typical pods": "Beware of Fragmentation", USENIX ATC 2023.
    """
    seen: dict[tuple[int, int, int, int], float] = {}
    columns = (shapes.cpu, shapes.devices, shapes.milli, shapes.models)
    for *key, count in zip(*(c.tolist() for c in columns), counts.tolist(), strict=True):
        if count > 0:
            kind = (key[0], key[1], key[2], key[3])
            seen[kind] = seen.get(kind, 0.0) + count
    total, kept, reached = sum(seen.values()), [], 0.0
    for kind, count in sorted(seen.items(), key=lambda item: (-item[1], item[0])):
        if reached >= cover * total:
            break
        kept.append((*kind, count / total))
        reached += count
    table = np.array(kept, dtype=np.float64).reshape(-1, 5)
    whole = table[:, :4].astype(np.int64)
    cpu, devices, milli, models = (np.ascontiguousarray(whole[:, k]) for k in range(4))
    return Mix(cpu, devices, milli, models, np.ascontiguousarray(table[:, 4]))
