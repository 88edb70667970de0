"""Which of the feasible nodes and devices to take: one scorer per placement, higher is better.

pack is best fit: the node on which least is left afterwards. spread is its opposite. Both weigh CPU
and devices alike, each measured against the largest node, so that a CPU-only job prefers a node
without devices. The others are compiled (`scores`), and loaded where they are chosen.

Source: FGD's baselines (docs/guides/packing.md).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.core.resources import WHOLE_MILLI, ReplicaShape
from scheduler.core.snapshot import IntArray, ReplicaPlacement, Snapshot
from scheduler.decide.feasibility import Filter, Free, Layout, sum_devices
from scheduler.decide.scores.fit import fullness

FloatArray: TypeAlias = npt.NDArray[np.float64]


class Scorer(Protocol):
    """What chooses among places that fit; made for one snapshot."""

    def nodes(self, wanted: Filter, free: Free, nodes: IntArray) -> FloatArray:
        """Return (nodes,) scores of one more replica; `free` is the state of those nodes."""

    def device(self, wanted: Filter, node: int, free: Free, columns: IntArray) -> int:
        """Return the column of the device that a fraction takes; `free` is that node's state."""

    def note(self, shape: ReplicaShape, replicas: tuple[ReplicaPlacement, ...]) -> None:
        """Note what this cycle placed."""


class Pack:
    """The fullest node, and the fullest device."""

    def __init__(self, snapshot: Snapshot, layout: Layout) -> None:
        del snapshot
        self._cpu = max(int(layout.capacity.cpu.max(initial=1)), 1)
        self._gpu = max(layout.width * WHOLE_MILLI, 1)
        self._memory = layout.capacity.device_memory

    def nodes(self, wanted: Filter, free: Free, nodes: IntArray) -> FloatArray:
        """Return how full each node is with the replica on it, in about 0..1."""
        del nodes
        cpu_left = (free.cpu - wanted.shape.cpu_milli).astype(np.float64)
        gpu_left = (sum_devices(free.milli) - wanted.shape.device_milli).astype(np.float64)
        return fullness(cpu_left, gpu_left, self._cpu, self._gpu)

    def device(self, wanted: Filter, node: int, free: Free, columns: IntArray) -> int:
        """Return the device with the least free, thousandths and memory together."""
        del wanted
        return int(columns[int(np.argmin(self._left(node, free, columns)))])

    def _left(self, node: int, free: Free, columns: IntArray) -> FloatArray:
        """Return (columns,) what is free of each device in 0..2: its share, and of its memory."""
        memory = free.device_memory[0, columns] / np.maximum(self._memory[node, columns], 1)
        left: FloatArray = free.milli[0, columns] / WHOLE_MILLI + memory
        return left

    def note(self, shape: ReplicaShape, replicas: tuple[ReplicaPlacement, ...]) -> None:
        """Need no note: what is free says it all."""


class Spread(Pack):
    """The emptiest node, and the emptiest device."""

    def nodes(self, wanted: Filter, free: Free, nodes: IntArray) -> FloatArray:
        """Return how empty each node is with the replica on it, in about 0..1."""
        return 1.0 - super().nodes(wanted, free, nodes)

    def device(self, wanted: Filter, node: int, free: Free, columns: IntArray) -> int:
        """Return the device with the most free, thousandths and memory together."""
        del wanted
        return int(columns[int(np.argmax(self._left(node, free, columns)))])


def _compiled(name: str, snapshot: Snapshot, layout: Layout) -> Scorer:
    from scheduler.decide.scores.fleet import (  # noqa: PLC0415 - loads numba, which few need
        FleetScore,
    )

    return FleetScore(name, snapshot, layout)


LEARNING = ("fgd", "prices")
"""The placements that look at the mix of what arrived (`Snapshot.demand_mix`)."""

SCORES: Mapping[str, Callable[[Snapshot, Layout], Scorer]] = {
    "pack": Pack,
    "spread": Spread,
    **{
        name: partial(_compiled, name)
        for name in ("dotprod", "gpupacking", "gpuclustering", *LEARNING)
    },
}
"""`Policy.placement` -> makes the scorer of a snapshot."""


def choose_whole(
    columns: npt.NDArray[np.int64], groups: Sequence[npt.NDArray[np.int64]], devices: int
) -> list[int]:
    """Return the columns to take: of the nearest group that is large enough, the smallest such.

    Args:
        columns: free devices of one node, ascending.
        groups: groupings of them, nearest first, each the group of each device, -1 = none known.
        devices: how many to take, <= len(columns).
    """
    widest: list[list[int]] = []
    for grouping in groups:
        members: dict[int, list[int]] = {}
        for column, group in zip(columns.tolist(), grouping.tolist(), strict=True):
            members.setdefault(group, []).append(column)
        enough = [m for group, m in members.items() if group >= 0 and len(m) >= devices]
        if enough:
            return min(enough, key=lambda m: (len(m), m))[:devices]
        if not widest or len(members) < len(widest):
            widest = list(members.values())
    return _largest_first(widest)[:devices]


def _largest_first(members: Sequence[list[int]]) -> list[int]:
    ordered = sorted(members, key=lambda m: (-len(m), m))
    return [column for group in ordered for column in group]
