"""Who holds what, and until when: what runs, what this cycle starts, and what was told to leave."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from scheduler.core.snapshot import JobSpec, ReplicaPlacement, RunningJob, Snapshot
from scheduler.decide.backfill import Cells, Hold, cells_of
from scheduler.decide.feasibility import ANY, Layout
from scheduler.decide.quota import Charge, QuotaTree, charges_of
from scheduler.decide.runtimes import OVERRUN_SLACK_S, end_s

Ends: TypeAlias = Callable[[JobSpec, float], float]
"""(job, its start) -> when it frees its placement, epoch seconds after now."""


class Active(NamedTuple):
    """What a job holds that runs or was started in this cycle.

    Attributes:
        job: what it asked for.
        started_s: epoch seconds.
        hold: all of it, or the part that it leaves at another time than the rest.
        leaves_s: when it was told to leave that, epoch seconds; None = at its own end.
    """

    job: JobSpec
    started_s: float
    hold: Hold
    leaves_s: float | None = None


class Holdings:
    """All that is held.

    Attributes:
        active: of whatever runs or was started in this cycle.
    """

    def __init__(
        self, snapshot: Snapshot, layout: Layout, tree: QuotaTree, *, now_s: float
    ) -> None:
        self._layout, self._tree, self._now_s = layout, tree, now_s
        self._device_flavor = snapshot.fleet.device_flavor
        self._names = tuple(flavor.name for flavor in snapshot.fleet.flavors)
        self.active = [one for job in snapshot.running for one in self._of(job)]
        self._cells = (0, cells_of(layout, tree, ()))

    def charges(self, job: JobSpec, flavor: int, replicas: int) -> tuple[Charge, ...]:
        """Return what the tenant is charged for that many replicas."""
        return charges_of(job, replicas, "" if flavor == ANY else self._names[flavor])

    def hold_of(self, job: RunningJob, replicas: Sequence[ReplicaPlacement] | None = None) -> Hold:
        """Return what a running job holds, or what some of its replicas hold."""
        held = job.replicas if replicas is None else tuple(replicas)
        charges = self.charges(job.spec, self.flavor_held(job), len(held))
        foes = self._layout.foes.of(job.spec)
        return Hold(job.spec.tenant, charges, job.spec.shape, held, foes)

    def flavor_held(self, job: RunningJob) -> int:
        """Return the flavor index of a running job's devices, `ANY` for none."""
        devices = (device for replica in job.replicas for device in replica.devices)
        first = next(devices, None)
        return ANY if first is None else int(self._device_flavor[first])

    def _of(self, job: RunningJob) -> Iterator[Active]:
        """Give what a running job holds: what it was told to leave apart from what it keeps."""
        if job.ending_s is None:
            yield Active(job.spec, job.started_s, self.hold_of(job))
            return
        leaves_s = job.ending_s if job.ending_s > self._now_s else self._now_s + OVERRUN_SLACK_S
        lost = without(job.replicas, job.keeps)
        if lost:
            yield Active(job.spec, job.started_s, self.hold_of(job, lost), leaves_s)
        if job.keeps:
            yield Active(job.spec, job.started_s, self.hold_of(job, job.keeps))

    def start(self, job: JobSpec, hold: Hold) -> None:
        """Note what a job holds that starts in this cycle."""
        self.active.append(Active(job, self._now_s, hold))

    def leave(self, job: RunningJob, left: Hold, leaves_s: float) -> None:
        """Note that a running job leaves a part of what it holds, or all, and when."""
        at = next(i for i, one in enumerate(self.active) if one.job.uid == job.spec.uid)
        self.active[at] = Active(job.spec, job.started_s, left, leaves_s)
        kept = without(job.replicas, left.replicas)
        if kept:
            self.active.append(Active(job.spec, job.started_s, self.hold_of(job, kept)))
            self._cells = (0, cells_of(self._layout, self._tree, ()))

    def cells(self) -> Cells:
        """Return what all that is active holds; what was worked out before is kept."""
        known, cells = self._cells
        if known < len(self.active):
            holds = [one.hold for one in self.active[known:]]
            cells = cells.and_then(cells_of(self._layout, self._tree, holds), known)
            self._cells = (len(self.active), cells)
        return cells

    def ends_s(self, ends: Ends) -> list[float]:
        """Return when each hold is free again, given when jobs end that nobody told to."""
        return [
            ends(one.job, one.started_s) if one.leaves_s is None else one.leaves_s
            for one in self.active
        ]

    def leaving_s(self) -> set[float]:
        """Return the times at which something is left early."""
        return {one.leaves_s for one in self.active if one.leaves_s is not None}


def by_limit(now_s: float) -> Ends:
    """Return the ends at which time limits are taken at their word."""
    return lambda job, started_s: end_s(started_s, job.time_limit_s, now_s=now_s)


def without(
    replicas: Sequence[ReplicaPlacement], some: Sequence[ReplicaPlacement]
) -> tuple[ReplicaPlacement, ...]:
    """Return the replicas but for some of them; equal ones are counted, not merged."""
    fewer: Mapping[ReplicaPlacement, int] = Counter(some)
    left, rest = dict(fewer), []
    for replica in replicas:
        if left.get(replica, 0):
            left[replica] -= 1
        else:
            rest.append(replica)
    return tuple(rest)
