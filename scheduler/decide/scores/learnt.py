"""Learns the mix and the prices of the `prices` score from the jobs that have arrived.

Source: our own, derived in docs/guides/packing.md, "The score `prices`": how scarce a model is,
what a block is worth, and the constants of `Setting`, chosen on some seeds of the traces of the FGD
paper and held against fresh ones there. Prices by Gilmore and Gomory (`prices`).
"""

from dataclasses import dataclass

import numpy as np

from scheduler.decide.scores.potential import BLOCKS, CPU_STEPS, Terms
from scheduler.decide.scores.prices import gap_values, share_prices
from scheduler.decide.scores.state import (
    ANY_MODEL,
    CLASSES,
    WHOLE,
    FloatArray,
    IntArray,
    Mix,
    Scale,
    Shapes,
    mix_of,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """The one setting of `prices`, for all workloads.

    Attributes:
        curve: see `Terms`.
        cpu_wanted: CPU per free device, two levels, as parts of the fleet's CPU per device.
        cpu_worth: worth of one such part that is short of each level, in devices.
        fragment: see `Terms`.
        cpu_curve: see `Terms`.
        scarce: worth of a whole free device of a model that is asked for twice as much as all are
            on average; 0 = no model is kept for those who insist on it.
        whole: worth of each device of a block of free ones if all demand came in blocks of that
            size; 0 = large jobs are not looked after.
        first: jobs after which the mix is estimated for the first time.
        growth: the mix is estimated again when this many times as many jobs have arrived.
        every: ... and at the latest after this many jobs.
        half_life: jobs after which an arrival counts half.
    """

    curve: float = 0.02
    cpu_wanted: tuple[float, float] = (0.63, 2.18)
    cpu_worth: tuple[float, float] = (0.86, 0.034)
    fragment: float = 0.1
    cpu_curve: float = 0.3
    scarce: float = 0.1
    whole: float = 0.15
    first: int = 50
    growth: float = 1.5
    every: int = 2000
    half_life: float = 20_000.0


def next_estimate(arrived: int, setting: Setting) -> int:
    """Return the number of arrivals at which the mix is to be estimated next."""
    if arrived < setting.first:
        return setting.first
    return min(int(arrived * setting.growth) + 1, arrived + setting.every)


def counts_of(arrivals: IntArray, shapes: int, half_life: float) -> FloatArray:
    """Return (shapes,) how often each shape arrived, old arrivals counting less.

    Args:
        arrivals: (jobs,) shapes in order of arrival.
        shapes: number of shapes.
        half_life: jobs after which an arrival counts half.
    """
    age = np.arange(len(arrivals), 0, -1) - 1
    weights = np.exp2(-age / half_life)
    return np.bincount(arrivals, weights=weights, minlength=shapes).astype(np.float64)


def terms_of(
    shapes: Shapes, counts: FloatArray, setting: Setting, scale: Scale
) -> tuple[Mix, Terms]:
    """Return mix and worths for what has arrived so far.

    Args:
        shapes: the kinds of jobs.
        counts: (shapes,) how often each arrived.
        setting: the constants.
        scale: the fleet that they are relative to.
    """
    demand = {WHOLE: 1e-3}
    for devices, milli, count in zip(
        shapes.devices.tolist(), shapes.milli.tolist(), counts.tolist(), strict=True
    ):
        if devices and count > 0:
            demand[milli] = demand.get(milli, 0.0) + devices * count
    pressure = _pressure(shapes, counts, scale)
    gpu_counts = np.where(shapes.devices > 0, counts, 0.0)
    terms = Terms(
        gap_values(share_prices(demand)),
        setting.curve,
        np.array(setting.cpu_wanted) * scale.cpu_each,
        np.array(setting.cpu_worth) / scale.cpu_each,
        setting.fragment,
        setting.cpu_curve,
        scale.cpu,
        setting.scarce * _scarcity(pressure),
        setting.whole * _blocks(shapes, pressure, scale),
    )
    return mix_of(shapes, gpu_counts), terms


def _pressure(shapes: Shapes, counts: FloatArray, scale: Scale) -> FloatArray:
    """Return (shapes, models) how much each shape asks of a device, all on average 1.

    The demand of a shape is spread evenly over all devices that it may use: of the models that it
    names, and of these those whose largest node has the devices and the CPU. So jobs that few nodes
    are large enough for count there as if they had named a model.
    """
    supply = np.array(scale.models, dtype=np.float64)
    named = (shapes.models[:, None] >> np.arange(len(supply))) & 1
    may = (shapes.models[:, None] == ANY_MODEL) | (named > 0)
    may &= shapes.cpu[:, None] <= np.array(scale.model_cpu, dtype=np.int64)
    may &= shapes.devices[:, None] <= np.array(scale.model_devices, dtype=np.int64)
    asked, reach = counts * shapes.devices * shapes.milli, may @ supply
    each = np.divide(asked, reach, out=np.zeros(len(asked)), where=reach > 0)
    mean = max(float(asked.sum()), 1.0) / max(float(supply.sum()), 1.0)
    pressure: FloatArray = each[:, None] * may / mean
    return pressure


def _scarcity(pressure: FloatArray) -> FloatArray:
    """Return (models,) the root of how much more than the mean is asked of a device, 0 if less."""
    more: FloatArray = np.sqrt(np.maximum(pressure.sum(axis=0) - 1.0, 0.0))
    return more


def _blocks(shapes: Shapes, pressure: FloatArray, scale: Scale) -> FloatArray:
    """Return (models, 3, 129) devices of a block times the pressure of who finds CPU enough there.

    What all of a size ask for together, divided by their mean CPU, would not do: a node of 128
    cores is worth more than one of 96 to the jobs that need 120.
    """
    worth = np.zeros((pressure.shape[1], len(BLOCKS), CPU_STEPS + 1))
    step = -(-np.minimum(shapes.cpu, scale.cpu) * CPU_STEPS // scale.cpu)
    for k, size in enumerate(BLOCKS):
        here = shapes.kind == CLASSES.index(str(size))
        np.add.at(worth[:, k].T, step[here], size * pressure[here])
    return np.cumsum(worth, axis=-1)
