"""Published placement scores, one node at a time: higher is better, 0 to 100, whole numbers.

Each is the score of a node for a job that fits there. The device of a fraction is the tightest one
that holds it, whichever of these scores chose the node.

Source: hkust-adsl/kubernetes-scheduler-simulator (docs/guides/packing.md).
"""

from scheduler.decide.scores.compiled import compiled
from scheduler.decide.scores.fit import fullness
from scheduler.decide.scores.state import WHOLE, IntArray, Scale

_fullness = compiled(fullness)


@compiled
def tightest(row: IntArray, milli: int) -> int:
    """Return the device with the least free milli that holds the fraction, -1 if none does."""
    best = -1
    for device in range(len(row)):
        if row[device] >= milli and (best < 0 or row[device] < row[best]):
            best = device
    return best


@compiled
def bestfit(cpu_left: int, gpu_left: int, scale: Scale) -> float:
    """Return the score of what is left after placing: the less, the better.

    Args:
        cpu_left: milli-cores left.
        gpu_left: milli of all devices left.
        scale: the largest node.

    Source:
        BestFit of the FGD paper: a hundred times how full the node is then.
    """
    return float(int(100 * _fullness(cpu_left, gpu_left, scale.cpu, scale.gpu)))


@compiled
def dotprod(cpu_free: int, gpu_free: int, cpu: int, gpu: int, scale: Scale) -> float:
    """Return the score of a small product of what is free and what is asked for.

    Both vectors (CPU, all devices) are relative to the largest node. The smaller the product the
    higher the score, which prefers nodes that are full in what the job needs.

    Source:
        DotProd of the FGD paper: int(100 * (1 - (free . asked) / 2)).
    """
    product = cpu_free / scale.cpu * (cpu / scale.cpu)
    product += gpu_free / scale.gpu * (gpu / scale.gpu)
    return float(int(100 * (1.0 - product / 2)))


@compiled
def gpupacking(row: IntArray, devices: int, count: int, milli: int) -> float:
    """Return the score that prefers devices in use, then nodes in use, then free nodes.

    Args:
        row: (width,) free milli of the node's devices.
        devices: number of devices of the node.
        count: devices asked for; a job without devices scores 0.
        milli: thousandths of each.

    Source:
        GpuPacking of the FGD paper: on a shared device 100 minus a tenth of its free percent, on
        free devices of a used node 50 minus how many are taken (33 at least), on a free node 33
        minus its devices.
    """
    if count == 0:
        return 0.0
    free = 0
    for device in range(devices):
        free += row[device] == WHOLE
    if free == devices:
        return float(max(33 - free, free))
    device = tightest(row, milli)
    if row[device] < WHOLE:
        return float(max(100 - row[device] * 100 // WHOLE // 10, 50))
    return float(max(50 - count, 33))


@compiled
def gpuclustering(held: IntArray, kind: int, gpu_free: int, scale: Scale) -> float:
    """Return the score that keeps jobs of one class together.

    Args:
        held: (classes,) jobs of each class on the node; CPU-only ones, class 0, do not count.
        kind: class of the job; a job without devices scores 0.
        gpu_free: free milli of all devices of the node.
        scale: the largest node.

    Source:
        GpuClustering of the FGD paper: 75 where only this class is, 50 where it is among others,
        25 on an idle node, 0 beside other classes; plus up to 25 for how full the node is.
    """
    if kind == 0:
        return 0.0
    classes = 0
    for other in range(1, len(held)):
        classes += held[other] > 0
    base = 0 if classes else 25
    if held[kind] > 0:
        base = 75 if classes == 1 else 50
    return float(base + 25 * (scale.gpu - gpu_free) // scale.gpu)
