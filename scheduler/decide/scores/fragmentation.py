"""Fragmentation of a node and the gradient score of FGD.

Source: "Beware of Fragmentation", USENIX ATC 2023; docs/guides/packing.md.
"""

import math

from scheduler.decide.scores.compiled import compiled
from scheduler.decide.scores.state import WHOLE, IntArray, Mix


@compiled
def fragmentation(cpu: int, row: IntArray, model: int, mix: Mix) -> float:
    """Return the milli of free devices that the jobs of a mix could not use, on average.

    For a kind of job that does not fit (devices, CPU or model), and for CPU-only jobs, that is
    everything free; else what is free on devices with less than a job takes of one.

    Args:
        cpu: free milli-cores, >= 0.
        row: (width,) free milli of the devices.
        model: one bit, the node's device model.
        mix: kinds of jobs and how often each is asked for.

    Returns:
        milli, 0 .. sum of `row`.
    """
    free = 0
    for device in range(len(row)):
        free += row[device]
    if free == 0:
        return 0.0
    total = 0.0
    for k in range(len(mix.weight)):
        lost = free
        if mix.devices[k] and cpu >= mix.cpu[k] and (mix.models[k] == 0 or mix.models[k] & model):
            least, count, small = mix.milli[k], 0, 0
            for device in range(len(row)):
                if row[device] >= least:
                    count += 1
                else:
                    small += row[device]
            if count >= mix.devices[k]:
                lost = small
        total += mix.weight[k] * lost
    return total


@compiled
def fgd(before: float, after: float) -> float:
    """Return FGD's score: 50 where fragmentation stays, more where it shrinks; whole numbers.

    Args:
        before: fragmentation of the node in milli.
        after: the same with the job placed.
    """
    return float(int(100.0 / (1.0 + math.exp(-(before - after) / WHOLE))))
