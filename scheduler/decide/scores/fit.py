"""Best fit: the node on which least is left. Numbers or arrays, compiled or not."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

AmountT = TypeVar("AmountT", float, npt.NDArray[np.float64])


def fullness(cpu_left: AmountT, gpu_left: AmountT, cpu: int, gpu: int) -> AmountT:
    """Return how full a node is once a job is placed there, 0 = empty to 1 = full.

    Args:
        cpu_left: milli-cores left.
        gpu_left: milli of all devices left.
        cpu: milli-cores of the largest node.
        gpu: milli of the largest node's devices.

    Source:
        BestFit of the FGD paper: 1 - (0.5 cpu_left/cpu + 0.5 gpu_left/gpu).
    """
    return 1.0 - (0.5 * cpu_left / cpu + 0.5 * gpu_left / gpu)
