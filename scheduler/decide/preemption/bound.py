"""What a set of losers would free at most: a look at a few numbers before anything is tried.

What is free of each resource on a node is divided by what a replica needs of it, whatever devices
it is on and whatever the laws say; quota and power grow by no more than what is given back. So a
set that does not suffice here does not suffice.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from scheduler.core.snapshot import JobSpec, RunningJob
from scheduler.decide.preemption.trial import Trial


class Bound:
    """The bound for one job on one flavor.

    Args:
        trial: on which nothing was taken yet.
        job: that waits.
        losers: index -> who may be taken from.
    """

    def __init__(self, trial: Trial, job: JobSpec, losers: dict[int, RunningJob]) -> None:
        shape, floor = job.shape, trial.floor
        self._wanted: int = job.replicas_min
        self._each = (shape.device_milli, shape.cpu_milli, shape.memory_mib)
        milli = np.maximum(floor.milli, 0).sum(axis=-1)
        free = (milli.tolist(), floor.cpu.tolist(), floor.memory.tolist())
        self._free: list[tuple[int, int, int]] = list(zip(*free, strict=True))
        self._counts: list[int] = trial.counts.tolist()
        self._total = sum(self._counts)
        self._missing = trial.missing()
        self._relief = {i: trial.relief(i) for i in losers}
        self._parts = {i: _parts(one, trial.place) for i, one in losers.items()}

    def helps(self, loser: int) -> bool:
        """Return whether a loser gives anything of what is missing."""
        if any(self._relief[loser].get(name) for name in self._missing):
            return True
        return self._total < self._wanted and bool(self._parts[loser])

    def allows(self, some: Sequence[int]) -> bool:
        """Return whether the job might fit without some losers."""
        for name, amount in self._missing.items():
            if sum(self._relief[i].get(name, 0) for i in some) < amount:
                return False
        freed: dict[int, Counter[int]] = {}
        for i in some:
            for node, parts in self._parts[i].items():
                freed.setdefault(node, Counter()).update(parts)
        more = sum(self._most(node, parts) - self._counts[node] for node, parts in freed.items())
        enough: bool = self._total + more >= self._wanted
        return enough

    def _most(self, node: int, freed: Counter[int]) -> int:
        ratios = [
            (free + freed[k]) // each
            for k, (free, each) in enumerate(zip(self._free[node], self._each, strict=True))
            if each
        ]
        return max(self._counts[node], min(ratios, default=self._wanted))


def _parts(job: RunningJob, place: dict[int, int]) -> dict[int, Counter[int]]:
    """Return node (position in the trial) -> what the job holds there, in the order of `_each`."""
    found: dict[int, Counter[int]] = {}
    for replica in job.replicas:
        if replica.node in place:
            shape, milli = job.spec.shape, replica.gpu_milli * len(replica.devices)
            held = Counter({0: milli, 1: shape.cpu_milli, 2: shape.memory_mib})
            found.setdefault(place[replica.node], Counter()).update(held)
    return found
