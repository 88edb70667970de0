"""The power cap: board power of what is allocated, in exact integers.

A device counts with its board power, a share of one with its part of it. A flavor whose board power
is unknown counts as the highest known one of the fleet, so that the cap is kept rather than passed;
where none is known nothing can be counted, and the cap holds nobody back.

Source: our own; a sum of what vendors rate the boards at, not a forecast of what they will draw.
"""

import math
from collections.abc import Sequence

import numpy as np

from scheduler.core.resources import WHOLE_MILLI
from scheduler.core.snapshot import FlavorSpec, IntArray, JobSpec

MICRO = 1_000_000
"""Microwatts per watt: thousandths of a device times milliwatts of its board."""


def board_mw(flavors: Sequence[FlavorSpec]) -> tuple[int, ...]:
    """Return (flavors,) board power of one device in milliwatts."""
    known = [flavor.power_w for flavor in flavors if flavor.power_w is not None]
    highest = max(known, default=0.0)
    watts = (highest if flavor.power_w is None else flavor.power_w for flavor in flavors)
    return tuple(round(w * 1000) for w in watts)


def grid_mw(board: Sequence[int], flavor: IntArray) -> IntArray:
    """Return (nodes, width) board power in milliwatts, 0 where there is no device.

    Args:
        board: (flavors,) milliwatts.
        flavor: (nodes, width) index of the flavor, -1 where there is no device.
    """
    return np.where(flavor >= 0, np.array([*board, 0], dtype=np.int64)[flavor], 0)


def held_uw(grid: IntArray, free_milli: IntArray) -> IntArray:
    """Return (rows,) microwatts of what is allocated.

    Args:
        grid: (nodes, width) milliwatts.
        free_milli: (rows, nodes, width) thousandths not held.
    """
    held: IntArray = ((WHOLE_MILLI - free_milli) * grid).sum(axis=(-2, -1))
    return held


class PowerCap:
    """What a policy allows of one fleet, and what jobs need.

    Attributes:
        cap_uw: microwatts; None = no cap.
        board_mw: (flavors,) milliwatts of one device.
    """

    def __init__(self, cap_w: float | None, flavors: Sequence[FlavorSpec]) -> None:
        self.cap_uw = None if cap_w is None else math.floor(cap_w * MICRO)
        self.board_mw = board_mw(flavors)

    def needs_uw(self, job: JobSpec, flavor: int, replicas: int) -> int:
        """Return the microwatts that a job's devices add; the flavor is an index, -1 for none."""
        return job.shape.device_milli * self.board_mw[flavor] * replicas if flavor >= 0 else 0

    def least_w(self, job: JobSpec, flavors: Sequence[int]) -> float:
        """Return the watts of the smallest gang on the flavor that needs fewest."""
        return min(self.needs_uw(job, f, job.replicas_min) for f in flavors) / MICRO

    def left_uw(self, held: int) -> int | None:
        """Return what the cap leaves beside so many microwatts; None = no cap."""
        return None if self.cap_uw is None else self.cap_uw - held

    def ever(self, job: JobSpec, flavor: int) -> bool:
        """Return whether the cap would allow the smallest gang were nothing else allocated."""
        return self.cap_uw is None or self.needs_uw(job, flavor, job.replicas_min) <= self.cap_uw

    def grid_mw(self, flavor: IntArray) -> IntArray | None:
        """Return the milliwatts of a grid of devices, None where nobody asks for them."""
        return None if self.cap_uw is None else grid_mw(self.board_mw, flavor)
