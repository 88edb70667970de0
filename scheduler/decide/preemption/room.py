"""Room for one waiting job: who gives what for it, and what that costs."""

from math import fsum
from typing import NamedTuple

from scheduler.core.plan import EvictionCause
from scheduler.core.snapshot import ReplicaPlacement, RunningJob
from scheduler.decide.placement import Fit


class Cut(NamedTuple):
    """What one job gives.

    Attributes:
        job: that gives.
        lost: the replicas that it loses; all of them = it is evicted.
        cause: by which law; `SHARED` only where something is left to the job.
        work: device-seconds (core-seconds) that it loses.
    """

    job: RunningJob
    lost: tuple[ReplicaPlacement, ...]
    cause: EvictionCause
    work: float

    @property
    def evicts(self) -> bool:
        """Return whether nothing is left to the job."""
        return len(self.lost) == len(self.job.replicas)


class Room(NamedTuple):
    """Room for one job, and at what price.

    Attributes:
        fit: where and when it fits.
        cuts: who gives it, in the order of the losers.
    """

    fit: Fit
    cuts: tuple[Cut, ...]

    @property
    def price(self) -> tuple[bool, int, float, int]:
        """Return what is compared: is anybody evicted, of which priority, how much work, how many.

        Work is lost by whoever shrinks, too: it begins anew from where it was last safe.
        """
        evicted = sum(cut.evicts for cut in self.cuts)
        highest = max(cut.job.spec.priority for cut in self.cuts)
        return evicted > 0, highest, fsum(cut.work for cut in self.cuts), evicted
