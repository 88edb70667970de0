"""What jobs may use: which flavors, which reservations, and the demand of one replica.

Jobs of one kind share one object, so that whatever is known of one of them is known of all.
"""

from dataclasses import dataclass

from scheduler.core.resources import ONE_PER_NODE, is_flavor, may_be_given
from scheduler.core.snapshot import Fleet, JobSpec
from scheduler.core.throughputs import Throughputs
from scheduler.core.topology import WITHIN_NODE
from scheduler.decide.apart import Group, group_of
from scheduler.decide.calendar import Calendar
from scheduler.decide.counts import remember
from scheduler.decide.feasibility import ANY, Demand, flavor_index
from scheduler.decide.foes import NO_FOES, Foes

MOST_JOBS_KNOWN = 1 << 16
"""The kinds of so many jobs are remembered."""

LEAST_SPEED = 1e-9
"""Of a flavor on which a class is said not to move at all."""


@dataclass(slots=True, eq=False)
class Kind:
    """What a job has in common with others that need the same places; one object for all of them.

    Attributes:
        allowed: flavors that they may use, best first.
        mine: reservations that they may use (`Calendar.open_to`).
        demands: (flavor, whatever health) -> the demand of one replica.
        apart: group whose jobs never share a node with them, None for none.
    """

    allowed: tuple[int, ...]
    mine: frozenset[int]
    demands: dict[tuple[int, bool], Demand]
    apart: Group | None = None


class Kinds:
    """The kinds of one cycle's jobs.

    Attributes:
        normalised: (flavors,) compute units against the fastest of the fleet; 0 where unknown.
    """

    def __init__(
        self, fleet: Fleet, calendar: Calendar, throughputs: Throughputs, foes: Foes = NO_FOES
    ) -> None:
        self._foes = foes
        self._throughputs = throughputs
        self._measured = {job_class for job_class, _ in throughputs}
        self._fleet, self._calendar = fleet, calendar
        self._flavor_of = flavor_index(fleet)
        self.normalised = _normalised(fleet)
        self._allowed: dict[tuple[int, tuple[str, ...], float, str], tuple[int, ...]] = {}
        self._kinds: dict[tuple[object, ...], Kind] = {}
        self._of: dict[int, tuple[JobSpec, Kind]] = {}
        self._demands: dict[Demand, Demand] = {}

    def of(self, job: JobSpec) -> Kind:
        """Return what the job has in common with others; known jobs are known by identity."""
        known = self._of.get(id(job))
        if known is None or known[0] is not job:
            allowed, mine = self._allowed_of(job), self._calendar.open_to(job)
            wishes = (
                job.topology,
                job.placement_wish,
                self.measured_class(job),
                self._foes.of(job),
                group_of(job),
            )
            same = (job.shape, allowed, job.tolerations, job.replicas_min, mine, wishes)
            known = (job, self._kinds.setdefault(same, Kind(allowed, mine, {}, wishes[-1])))
            remember(self._of, id(job), known, MOST_JOBS_KNOWN)
        return known[1]

    def _allowed_of(self, job: JobSpec) -> tuple[int, ...]:
        """Return the flavors that a job may use, best first; (ANY,) for a job without devices.

        Named flavors keep the user's order. Without names every flavor of the fleet is allowed
        (slices to replicas of one device only), the smallest first, so that large devices stay free
        for those who need them; where the throughput of the job's class is measured, the fastest
        first.
        """
        measured = self.measured_class(job)
        key = (min(job.shape.devices, 2), job.flavors, job.min_throughput, measured)
        if key not in self._allowed:
            self._allowed[key] = self._flavors_of(job) if job.shape.devices else (ANY,)
        return self._allowed[key]

    def _flavors_of(self, job: JobSpec) -> tuple[int, ...]:
        named = [
            self._flavor_of[name]
            for asked in job.flavors
            for name in sorted(self._flavor_of)
            if is_flavor(name, asked)
        ]
        if not job.flavors:
            named = sorted(self._unnamed(job.shape.devices), key=self._smallest_first)
        if not job.flavors and self.measured_class(job):
            named.sort(key=lambda f: -self.throughput(job, f))  # stable: the smaller on a tie
        fast = [f for f in named if self.throughput(job, f) >= job.min_throughput]
        return tuple(dict.fromkeys(fast))

    def _unnamed(self, devices: int) -> list[int]:
        """Return the flavors that a replica of so many devices may have that names none."""
        flavors = enumerate(self._fleet.flavors)
        return [f for f, spec in flavors if may_be_given(spec.name, (), devices)]

    def measured_class(self, job: JobSpec) -> str:
        """Return the job's class where its throughput is measured on some flavor, else ""."""
        job_class = job.job_class or job.kind
        return job_class if job_class in self._measured else ""

    def throughput(self, job: JobSpec, flavor: int) -> float:
        """Return the job's normalised throughput on a flavor, in 0..1; 0 where unknown.

        Measured where it was; else the flavor's compute units against the fleet's largest.
        """
        key = (job.job_class or job.kind, self._fleet.flavors[flavor].name)
        return self._throughputs.get(key, self.normalised[flavor])

    def speed(self, job: JobSpec, flavor: int) -> float:
        """Return what a replica of an elastic job is worth on a flavor, 1 where nothing is known.

        Jobs of a fixed size are served in the order of their flavors.
        """
        if job.replicas_min == job.replicas_max or not self.measured_class(job):
            return 1.0
        return max(self.throughput(job, flavor), LEAST_SPEED)

    def _smallest_first(self, flavor: int) -> tuple[bool, float, str]:
        spec = self._fleet.flavors[flavor]
        return (spec.compute_units is None, spec.compute_units or 0.0, spec.name)

    def demand(self, job: JobSpec, flavor: int, *, whatever_health: bool) -> Demand:
        """Return the demand of one replica on one flavor; equal ones are one object."""
        demands = self.of(job).demands
        found = demands.get((flavor, whatever_health))
        if found is None:
            new = _demand(job, flavor, self._foes.of(job), whatever_health=whatever_health)
            found = demands[flavor, whatever_health] = self._demands.setdefault(new, new)
        return found


def _demand(job: JobSpec, flavor: int, interference: int, *, whatever_health: bool) -> Demand:
    wish, placement = job.topology, job.placement_wish
    alone = placement == ONE_PER_NODE
    return Demand(
        job.shape,
        flavor,
        job.tolerations,
        whatever_health,
        within=wish.level if wish and wish.required and wish.level in WITHIN_NODE else None,
        one_per_node=alone,
        placement="" if alone else placement,
        interference=interference,
    )


def _normalised(fleet: Fleet) -> tuple[float, ...]:
    """Return (flavors,) throughput against the fastest of the fleet; 0 where unknown."""
    units = [flavor.compute_units or 0.0 for flavor in fleet.flavors]
    fastest = max(units, default=0.0)
    return tuple(unit / fastest if fastest > 0 else 0.0 for unit in units)
