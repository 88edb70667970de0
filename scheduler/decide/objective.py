"""What a plan is worth: `a log U + b log P + c sum_t w_t log(share_t) - d energy`.

U is the utilisation weighted by compute units. P is the mean, over all jobs that run or could, of
the throughput on the flavor that they get against their best one; a job that waits has none.
share_t is what tenant t holds of its fair share, in compute units, w_t its part of all weights.
energy is the watts of held devices against those of the whole fleet.

Every logarithm is `log(LOG_FLOOR + x)`, so that nothing is infinitely bad.

Source: sum_t w_t log(share_t) is weighted proportional fairness: Kelly, "Charging and rate control
for elastic traffic", European Transactions on Telecommunications 8 (1997). Throughput against that
of the best flavor: Gavel, "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning
Workloads", OSDI 2020, section 4.2. a log U + b log P is the logarithm of
U^a P^b, utilisation times performance. That and the sum are our own, derived in
docs/guides/scheduling.md, "What `optimising` maximises".
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.core.plan import Start
from scheduler.core.resources import CPU_FLAVOR, WHOLE_MILLI
from scheduler.core.snapshot import JobSpec
from scheduler.decide.feasibility import ANY
from scheduler.decide.turns import Turns, capacity_milli

LOG_FLOOR = 0.01
"""Added inside every logarithm."""

CPU_CORE_CU = 0.05
"""CU counted for one core, so that fleets without accelerators have a utilisation, too."""


class Gain(NamedTuple):
    """What one replica of a job on one flavor adds to each part; parts are linear in replicas."""

    utilisation: float
    performance: float
    share: float
    energy: float


@dataclass(frozen=True, slots=True)
class Standing:
    """The parts of the objective, before or after a plan.

    Attributes:
        utilisation, performance, energy: in 0..1.
        shares: tenant -> what it holds of its fair share, >= 0.
    """

    utilisation: float
    performance: float
    energy: float
    shares: Mapping[str, float]


class Objective:
    """The objective of one cycle: linear parts, and the value made of them."""

    def __init__(self, turns: Turns) -> None:
        session = turns.session
        self._session, self.weights = session, turns.policy.objective
        fleet = session.snapshot.fleet
        self.units = _filled([flavor.compute_units for flavor in fleet.flavors])
        self._watts = _filled([flavor.power_w for flavor in fleet.flavors])
        capacity = capacity_milli(session)
        self._total_cu = self._cu_of(capacity) or 1.0
        names = [flavor.name for flavor in fleet.flavors]
        watts = sum(
            capacity[name] / WHOLE_MILLI * w for name, w in zip(names, self._watts, strict=True)
        )
        self._total_watts = watts or 1.0
        self._jobs = max(1, len(turns.candidates) + len(session.snapshot.running))
        self.fair_cu = self._fair_cu(turns)
        self.tenant_weights = self._tenant_weights()
        self.base = self._base()

    def _cu_of(self, milli: Mapping[str, int]) -> float:
        """Return the CU of an amount of each flavor."""
        cu = milli.get(CPU_FLAVOR, 0) / 1000 * CPU_CORE_CU
        for name, f in self._session.flavor_of.items():
            cu += milli.get(name, 0) / WHOLE_MILLI * self.units[f]
        return cu

    def _fair_cu(self, turns: Turns) -> dict[str, float]:
        """Return tenant -> CU of its fair share, of those who have and ask for some."""
        fair: dict[str, dict[str, int]] = {}
        asks: set[str] = set()
        for row in turns.shares.rows():
            fair.setdefault(row.tenant, {})[row.flavor] = row.fair
            if row.requested:
                asks.add(row.tenant)
        sums = {tenant: self._cu_of(fair[tenant]) for tenant in sorted(asks)}
        return {tenant: cu for tenant, cu in sums.items() if cu > 0}

    def _tenant_weights(self) -> dict[str, float]:
        weights = {
            tenant.slug: tenant.fair_weight
            for tenant in self._session.snapshot.tenants
            if tenant.slug in self.fair_cu
        }
        whole = math.fsum(weights.values())
        return {slug: w / whole for slug, w in weights.items() if whole > 0 and w > 0}

    def gain(self, job: JobSpec, flavor: int) -> Gain:
        """Return what one replica of a job on a flavor adds."""
        cu = job.shape.cpu_milli / 1000 * CPU_CORE_CU
        watts, speed = 0.0, 1.0
        if flavor != ANY:
            held = job.shape.device_milli / WHOLE_MILLI
            cu += held * self.units[flavor]
            watts = held * self._watts[flavor]
            speed = self.speed(job, flavor)
        fair = self.fair_cu.get(job.tenant, math.inf)
        return Gain(
            utilisation=cu / self._total_cu,
            performance=speed / job.replicas_max / self._jobs,
            share=cu / fair,
            energy=watts / self._total_watts,
        )

    def speed(self, job: JobSpec, flavor: int) -> float:
        """Return the throughput on a flavor against the best that the job may use, 0..1."""
        if flavor == ANY:
            return 1.0
        kinds, speeds = self._session.kinds, self.units
        if kinds.measured_class(job):
            speeds = tuple(kinds.throughput(job, f) for f in range(len(self.units)))
        best = max((speeds[f] for f in self._session.allowed(job)), default=0.0)
        return min(1.0, speeds[flavor] / best) if best > 0 else 1.0

    def _base(self) -> Standing:
        nothing = Standing(0.0, 0.0, 0.0, dict.fromkeys(self.fair_cu, 0.0))
        held = self._session.held
        running = self._session.snapshot.running
        return self._with(
            nothing, [(job.spec, held.flavor_held(job), len(job.replicas)) for job in running]
        )

    def _with(self, standing: Standing, held: Iterable[tuple[JobSpec, int, int]]) -> Standing:
        """Return the standing after (job, flavor, replicas) were added."""
        utilisation, performance = standing.utilisation, standing.performance
        energy, shares = standing.energy, dict(standing.shares)
        for job, flavor, replicas in held:
            gain = self.gain(job, flavor)
            utilisation += replicas * gain.utilisation
            performance += replicas * gain.performance
            energy += replicas * gain.energy
            if job.tenant in shares:
                shares[job.tenant] += replicas * gain.share
        return Standing(utilisation, performance, energy, shares)

    def after(self, starts: Sequence[Start]) -> Standing:
        """Return the standing once the starts hold their placements."""
        jobs = {job.uid: job for job in self._session.snapshot.pending}
        flavor_of = self._session.flavor_of
        return self._with(
            self.base,
            [(jobs[s.uid], flavor_of.get(s.flavor, ANY), len(s.replicas)) for s in starts],
        )

    def value(self, standing: Standing) -> float:
        """Return the objective; higher is better."""
        w = self.weights
        fair = math.fsum(
            weight * math.log(LOG_FLOOR + standing.shares[tenant])
            for tenant, weight in self.tenant_weights.items()
        )
        return (
            w.utilisation * math.log(LOG_FLOOR + standing.utilisation)
            + w.performance * math.log(LOG_FLOOR + standing.performance)
            + w.fairness * fair
            - w.energy * standing.energy
        )


def _filled(amounts: Sequence[float | None]) -> tuple[float, ...]:
    """Return the amounts with the mean of the known ones where one is unknown; 1 if none is."""
    known = [amount for amount in amounts if amount is not None]
    mean = math.fsum(known) / len(known) if known else 1.0
    return tuple(mean if amount is None else amount for amount in amounts)
