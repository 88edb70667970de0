"""Which classes of jobs never share a device, as numbers that add up over time.

Each device has, for each class, minus the number of holds on it that the class can't bear. That is
an amount like any other: a hold takes, its end gives back, the least of a window is what counts,
and a class may use a device where nothing is missing.
"""

import numpy as np

from scheduler.core.interference import Pairs, foes_of
from scheduler.core.snapshot import IntArray, JobSpec, Snapshot

ANYBODY = -1
"""Class of who shares with anybody, and of who shares with nobody: holds a whole device."""


class Foes:
    """The classes that can't bear some other, or their like.

    Attributes:
        against: (classes, classes) 1 where two never share a device, else 0; symmetric.

    Args:
        pairs: what was measured of pairs.
    """

    def __init__(self, pairs: Pairs) -> None:
        foes = foes_of(pairs)
        names = sorted({name for pair in foes for name in pair})
        self._index = {name: i for i, name in enumerate(names)}
        self.against: IntArray = np.zeros((len(names), len(names)), dtype=np.int64)
        for pair in foes:
            at = [self._index[name] for name in sorted(pair)]
            self.against[at[0], at[-1]] = self.against[at[-1], at[0]] = 1

    @property
    def count(self) -> int:
        """Return the number of classes."""
        return len(self.against)

    def of(self, job: JobSpec) -> int:
        """Return the class of a job by its number, `ANYBODY` for none."""
        if not job.shape.is_fraction:
            return ANYBODY
        return self._index.get(job.interference, ANYBODY)


def met_pairs(snapshot: Snapshot) -> Pairs:
    """Return the pairs of a snapshot of which both sides wait or run: no others can meet.

    Whoever asks for one device counts: it may be advised to ask for a share of it.
    """
    if not snapshot.pairs:
        return snapshot.pairs
    jobs = (*snapshot.pending, *(job.spec for job in snapshot.running))
    present = {job.interference for job in jobs if job.shape.devices == 1}
    return {pair: rates for pair, rates in snapshot.pairs.items() if present.issuperset(pair)}


NO_FOES = Foes({})
