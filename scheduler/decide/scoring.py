"""Which of the feasible nodes and devices to take: one function per score, higher is better.

pack is best fit: the node on which least is left afterwards. spread is its opposite. Both weigh CPU
and devices alike, each measured against the largest node, so that a CPU-only job prefers a node
without devices.

Source: FGD's BestFit baseline (reference/packing.md section 1).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from scheduler.core.resources import WHOLE_MILLI
from scheduler.decide.feasibility import Filter, Free, Layout

FloatArray: TypeAlias = npt.NDArray[np.float64]
Score: TypeAlias = Callable[[Layout, Filter, Free, "npt.NDArray[np.int64]"], FloatArray]


def pack(layout: Layout, wanted: Filter, free: Free, nodes: npt.NDArray[np.int64]) -> FloatArray:
    """Return (nodes,) best-fit scores in about 0..1: one minus what is left after one replica.

    Args:
        layout: the fleet's grid.
        wanted: the replica.
        free: state of exactly those nodes.
        nodes: indices of the nodes.
    """
    del nodes
    largest_cpu = max(int(layout.capacity.cpu.max(initial=1)), 1)
    largest_gpu = max(layout.width * WHOLE_MILLI, 1)
    cpu_left = (free.cpu - wanted.shape.cpu_milli) / largest_cpu
    gpu_left = (free.milli.sum(axis=-1) - wanted.shape.device_milli) / largest_gpu
    score: FloatArray = 1.0 - 0.5 * (cpu_left + gpu_left)
    return score


def spread(layout: Layout, wanted: Filter, free: Free, nodes: npt.NDArray[np.int64]) -> FloatArray:
    """Return (nodes,) scores in about 0..1: the emptier the node, the higher."""
    return 1.0 - pack(layout, wanted, free, nodes)


SCORES: Mapping[str, Score] = {"pack": pack, "spread": spread}
"""`Policy.placement` -> score of nodes."""


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


def choose_share(
    columns: npt.NDArray[np.int64], free_milli: npt.NDArray[np.int64], *, tight: bool
) -> int:
    """Return the column of the device to share: the fullest when `tight`, else the emptiest."""
    key = free_milli if tight else -free_milli
    return int(columns[int(np.argmin(key))])
