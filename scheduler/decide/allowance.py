"""What quota and the power cap let jobs hold: ever, and in a window of a profile."""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from scheduler.core.snapshot import IntArray, JobSpec, TenantNode
from scheduler.decide.backfill import Hold, Profile
from scheduler.decide.power import PowerCap
from scheduler.decide.quota import UNLIMITED, Charge, QuotaTree
from scheduler.decide.scoring import FloatArray

Charges: TypeAlias = Callable[[JobSpec, int, int], tuple[Charge, ...]]
"""(job, index of the flavor, replicas) -> what its tenant is charged."""


class _Firm:
    """What is held of a flavor over time by jobs of one tenant that may not be evicted.

    A step function: noted as changes, which are sorted when it is asked for next.
    """

    def __init__(self) -> None:
        self._times: FloatArray = np.zeros(0)
        self._changes: IntArray = np.zeros(0, dtype=np.int64)
        self._levels: IntArray = np.zeros(1, dtype=np.int64)
        self._noted: list[tuple[float, int]] = []

    def note(self, amount: int, start_s: float, end_s: float) -> None:
        """Note an amount that is held in [start_s, end_s)."""
        self._noted += ((start_s, amount), (end_s, -amount))

    def most(self, begin_s: float, end_s: float) -> int:
        """Return the most that is held at one time in [begin_s, end_s)."""
        if self._noted:
            self._settle()
        first = int(np.searchsorted(self._times, begin_s, side="right"))
        last = max(first, int(np.searchsorted(self._times, end_s)))
        return int(self._levels[first : last + 1].max())

    def _settle(self) -> None:
        times, changes = zip(*self._noted, strict=True)
        self._times = np.concatenate((self._times, times))
        self._changes = np.concatenate((self._changes, changes))
        order = np.lexsort((self._changes, self._times))  # who ends goes before who begins
        self._times, self._changes = self._times[order], self._changes[order]
        self._levels = np.concatenate(([0], np.cumsum(self._changes)))
        self._noted.clear()


class Allowance:
    """What tenants may still take on one profile.

    Args:
        tenants: the tree, parents before children.
        tree: the same tree, compiled.
        charges: says what jobs are charged.
        power: the cap on board power.
        profile: capacity and quota over time.
    """

    def __init__(
        self,
        tenants: Sequence[TenantNode],
        tree: QuotaTree,
        charges: Charges,
        power: PowerCap,
        profile: Profile,
    ) -> None:
        self._quotas = {tenant.slug: tenant.quotas for tenant in tenants}
        self._tree, self._charges, self._power, self._profile = tree, charges, power, profile
        self._firm: dict[tuple[str, str], _Firm] = {}

    def note(self, job: JobSpec, hold: Hold, start_s: float, end_s: float) -> None:
        """Note what a job holds, and when, that may not be evicted."""
        if not job.preemptible:
            for flavor, amount in hold.charges:
                firm = self._firm.setdefault((hold.tenant, flavor), _Firm())
                firm.note(amount, start_s, end_s)

    # -- ever ---------------------------------------------------------------------------------

    def nominal(self, tenant: str, flavor: str) -> int:
        """Return the tenant's own nominal quota, 0 where it names none."""
        line = self._quotas[tenant].get(flavor)
        return line.nominal if line else 0

    def replicas_ever(self, job: JobSpec, flavor: int) -> int:
        """Return how many replicas the tenant's quota could ever allow."""
        charges = self._charges(job, flavor, 1)
        return min(self.most(job, charge.flavor) // charge.amount for charge in charges)

    def most(self, job: JobSpec, flavor: str) -> int:
        """Return the most of a flavor that the tenant's quota could ever give to such a job."""
        most = self._tree.potential(job.tenant, flavor)
        return most if job.preemptible else min(most, self._firm_quota(job.tenant, flavor))

    def _firm_quota(self, tenant: str, flavor: str) -> int:
        return self.nominal(tenant, flavor) if flavor in self._tree.flavors else UNLIMITED

    # -- in a window --------------------------------------------------------------------------

    def left(self, job: JobSpec, flavor: str, first: int, last: int) -> int:
        """Return what the tenant's quota leaves to such a job in all of rows first..last-1."""
        left = self._profile.quota_left(job.tenant, flavor, first, last)
        return left if job.preemptible else min(left, self._firm_left(job, flavor, first, last))

    def _firm_left(self, job: JobSpec, flavor: str, first: int, last: int) -> int:
        """Return what is left to jobs that may not be evicted in rows first..last-1.

        They live within what their tenant owns itself, whatever its other jobs borrow: what they
        held beyond, its lender could never have back. What they hold together at one time counts:
        who begins when another has ended takes the place of that one.

        Source: KAI docs/priority (non-preemptible jobs in quota), allocatedNonPreemptible.
        """
        quota, firm = self._firm_quota(job.tenant, flavor), self._firm.get((job.tenant, flavor))
        if firm is None:
            return quota
        times = self._profile.times
        end_s = times[last] if last < len(times) else math.inf
        return quota - firm.most(times[first], end_s)

    def by_quota(self, job: JobSpec, flavor: int, first: int, last: int) -> int:
        """Return how many replicas the tenant's quota allows in rows first..last-1."""
        most = job.replicas_max
        for charge in self._charges(job, flavor, 1):
            most = min(most, self.left(job, charge.flavor, first, last) // charge.amount)
        return most

    def power_left_uw(self, first: int, last: int) -> int | None:
        """Return what the power cap leaves in all of the rows first..last-1; None = no cap."""
        if self._power.cap_uw is None:
            return None
        return self._power.left_uw(self._profile.power_uw(first, last))

    def by_power(self, job: JobSpec, flavor: int, first: int, last: int) -> int:
        """Return how many replicas the power cap allows in rows first..last-1."""
        left = self.power_left_uw(first, last)
        each = 0 if left is None else self._power.needs_uw(job, flavor, 1)
        if left is None or each == 0:
            return job.replicas_max
        return max(0, min(job.replicas_max, left // each))

    def replicas(self, job: JobSpec, flavor: int, first: int, last: int) -> int:
        """Return how many replicas quota and power cap allow in rows first..last-1."""
        return min(self.by_quota(job, flavor, first, last), self.by_power(job, flavor, first, last))

    # -- whose is it --------------------------------------------------------------------------

    def owns(self, job: JobSpec, flavors: Sequence[int]) -> bool:
        """Return whether the tenant owns what it would hold with the job, in a limited flavor."""
        return any(self._owns(job, flavor) for flavor in flavors)

    def _owns(self, job: JobSpec, flavor: int) -> bool:
        charges = self._charges(job, flavor, job.replicas_min)
        return charges[-1].flavor in self._tree.flavors and not self._borrows(job.tenant, charges)

    def own_replicas(self, job: JobSpec, flavor: int) -> int:
        """Return how many replicas the tenant would own, those below it left aside.

        All that the job may have where no quota limits the flavor.
        """
        ledger, most = self._profile.ledger, job.replicas_max
        for name, amount in self._charges(job, flavor, 1):
            if name in self._tree.flavors and amount:
                left = self.nominal(job.tenant, name) - ledger.own(job.tenant, name)
                most = min(most, left // amount)
        return max(0, most)

    def own_first(self, job: JobSpec, flavors: Sequence[int]) -> Sequence[int]:
        """Return the flavors that a job may use, those first of which its tenant owns enough.

        Who names flavors gets them in that order, borrowed or not, as in Kueue by default.

        Source: Kueue concepts, flavorFungibility, whenCanBorrow.
        """
        if job.flavors or len(flavors) == 1:
            return flavors
        least = job.replicas_min
        return sorted(
            flavors, key=lambda flavor: self._borrows(job.tenant, self._charges(job, flavor, least))
        )

    def _borrows(self, tenant: str, charges: Sequence[Charge]) -> bool:
        """Return whether the tenant would hold more than it owns, those below it left aside."""
        ledger, limited = self._profile.ledger, self._tree.flavors
        return any(
            ledger.own(tenant, name) + amount > self.nominal(tenant, name)
            for name, amount in charges
            if name in limited
        )

    def may_own(self, job: JobSpec, flavor: int, first: int, last: int) -> bool:
        """Return whether room that others give on a flavor is the job's to take in first..last-1.

        All but firm jobs may. What firm jobs of its tenant hold then nobody can be made to give, so
        that there is no use in looking for who could give the rest.
        """
        return job.preemptible or all(
            self._firm_left(job, charge.flavor, first, last) >= charge.amount
            for charge in self._charges(job, flavor, job.replicas_min)
        )
