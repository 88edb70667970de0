"""What is simulated: jobs with the truth about them, and what befalls the fleet."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.core.snapshot import JobSpec, Snapshot
from scheduler.simulate.errors import InvalidSimulationError

LEAST_CHECKPOINT_S = 1.0
"""Nobody saves more often than every second; a smaller number is a mistake in its unit."""


@dataclass(frozen=True, slots=True)
class SimJob:
    """A job and how it really behaves, which no decision may look at.

    With a work of S and nothing else given, it runs for S seconds wherever it is placed.

    Attributes:
        spec: what its user asked for; it arrives at `spec.submitted_s`.
        work: how much there is to do, in units of work, > 0.
        throughput: flavor -> units of work a second with `replicas_min` replicas, >= 0; a flavor
            that is not named gets nothing done. Empty: 1 everywhere. "" is a job without devices.
        scaling: r times the least replicas work r^scaling times as fast; 0 to 1.
        startup_s: seconds from a start or a resize until work goes on.
        checkpoint_every_s: seconds of work between checkpoints, LEAST_CHECKPOINT_S at least; 0 = it
            never saves anything.
        saves_when_told: it saves its work when it is told to end.
        fails_after_s: seconds after a start at which it fails for good; inf = never.
    """

    spec: JobSpec
    work: float
    throughput: Mapping[str, float] = field(default_factory=dict)
    scaling: float = 1.0
    startup_s: float = 0.0
    checkpoint_every_s: float = 0.0
    saves_when_told: bool = False
    fails_after_s: float = math.inf

    def rate(self, flavor: str, replicas: int) -> float:
        """Return the units of work a second on a flavor with so many replicas."""
        alone = self.throughput.get(flavor, 0.0) if self.throughput else 1.0
        if replicas == self.spec.replicas_min:
            return alone
        return alone * math.pow(replicas / self.spec.replicas_min, self.scaling)


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node goes down, is taken out, or comes back.

    Attributes:
        at_s: epoch seconds.
        node: its name.
        note: why it may take no new work ("cordoned", "unknown"); "" = it may again.
        loses_jobs: what runs there is gone, and goes back to the queue.
    """

    at_s: float
    node: str
    note: str = ""
    loses_jobs: bool = False


def checked_jobs(jobs: Iterable[SimJob], *, begin_s: float) -> list[SimJob]:
    """Return the jobs in order of arrival: submit time, then uid.

    Raises:
        InvalidSimulationError: a uid occurs twice, a job arrives before the begin, or an amount is
            negative or not a number.
    """
    ordered = list(jobs)
    seen: set[str] = set()
    for job in ordered:
        uid = job.spec.uid
        if uid in seen:
            raise InvalidSimulationError(f"job {uid!r} occurs twice")
        seen.add(uid)
        wrong = _wrong(job, begin_s)
        if wrong:
            raise InvalidSimulationError(f"{wrong} of job {uid!r} cannot be simulated")
        if 0 < job.checkpoint_every_s < LEAST_CHECKPOINT_S:
            raise InvalidSimulationError(
                f"checkpoint_every_s {job.checkpoint_every_s} of job {uid!r} cannot be simulated: "
                f"give 0 for never, or {LEAST_CHECKPOINT_S:g} s at least"
            )
    return sorted(ordered, key=lambda job: (job.spec.submitted_s, job.spec.uid))


def _wrong(job: SimJob, begin_s: float) -> str:
    """Return which value of a job cannot be simulated, "" if none."""
    spec = job.spec
    checks = {
        f"submitted_s {spec.submitted_s}": begin_s <= spec.submitted_s < math.inf,
        f"time_limit_s {spec.time_limit_s}": spec.time_limit_s > 0,
        f"replicas_min {spec.replicas_min}": 1 <= spec.replicas_min <= spec.replicas_max,
        f"work {job.work}": 0 < job.work < math.inf,
        f"throughput {dict(job.throughput)}": all(
            0 <= rate < math.inf for rate in job.throughput.values()
        ),
        f"scaling {job.scaling}": 0 <= job.scaling <= 1,
        f"startup_s {job.startup_s}": 0 <= job.startup_s < math.inf,
        f"checkpoint_every_s {job.checkpoint_every_s}": 0 <= job.checkpoint_every_s < math.inf,
        f"fails_after_s {job.fails_after_s}": job.fails_after_s > 0,
    }
    return next((what for what, good in checks.items() if not good), "")


def checked_changes(changes: Iterable[NodeChange], world: Snapshot) -> Sequence[NodeChange]:
    """Return the changes in order of time, then node.

    Raises:
        InvalidSimulationError: of a node that does not exist, or before the begin.
    """
    names = set(world.fleet.node_names)
    ordered = list(changes)
    for change in ordered:
        if change.node not in names:
            raise InvalidSimulationError(f"node {change.node!r} of a change does not exist")
        if not world.now_s <= change.at_s < math.inf:
            raise InvalidSimulationError(f"change of node {change.node!r} at {change.at_s}")
    return sorted(ordered, key=lambda c: (c.at_s, c.node, c.note, c.loses_jobs))
