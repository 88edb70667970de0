"""What one waiting job may take, by the laws as they stand."""

from collections.abc import Sequence

import numpy as np

from scheduler.core.plan import EvictionCause
from scheduler.core.policy import PreemptionPolicy
from scheduler.core.resources import CPU_FLAVOR
from scheduler.core.snapshot import BoolArray, IntArray, JobSpec
from scheduler.decide.preemption.laws import Laws
from scheduler.decide.preemption.losers import Losers
from scheduler.decide.quota import Charge
from scheduler.decide.scoring import FloatArray

NOBODY, RECLAIMED, PREEMPTED, REBALANCED, SHARED = 0, 1, 2, 3, 4
"""By which law somebody may lose; by none. Within a tenant replicas beyond the smallest gang are
shared with those who wait, by a job that is rested; by that nobody is evicted."""

CAUSES = {
    RECLAIMED: EvictionCause.RECLAIMED,
    PREEMPTED: EvictionCause.PREEMPTED,
    REBALANCED: EvictionCause.REBALANCED,
    SHARED: EvictionCause.SHARED,
}


class Claim:
    """One job's claim on what others hold.

    Args:
        laws: as they stand; the claim books what is taken on them.
        losers: who may lose at all.
        policy: what is allowed.
        job: that waits.
        taker: index of its tenant.
        charges: of its smallest gang.
    """

    def __init__(
        self,
        laws: Laws,
        losers: Losers,
        policy: PreemptionPolicy,
        job: JobSpec,
        *,
        taker: int,
        charges: Sequence[Charge],
    ) -> None:
        self._laws, self._losers, self._policy, self._job = laws, losers, policy, job
        self._taker, self._charges = taker, charges
        self._reach = laws.reach(taker)
        tenants = sorted(set(losers.tenant.tolist()))
        claims = laws.claims(taker, charges, tenants)
        self._claimed = np.zeros(len(self._reach), dtype=np.bool_)
        self._claimed[[n for n, may in zip(tenants, claims, strict=True) if may]] = True
        self._after = laws.copy()
        self._after.book(job.tenant, charges)
        self._contested = [charge.flavor for charge in charges if laws.limited(charge.flavor)]
        wanted = {charge.flavor for charge in charges}
        self._wanted = np.array([name in wanted for name in losers.flavors], dtype=np.bool_)
        self._limited = np.array([laws.limited(name) for name in losers.flavors], dtype=np.bool_)

    def causes(self, who: IntArray, replicas: IntArray, *, shrinks: bool = False) -> IntArray:
        """Return by which law each of some losers may lose so many of its replicas.

        Args:
            who: indices of losers.
            replicas: how many each would lose.
            shrinks: each keeps its smallest gang.

        Returns:
            (who,) NOBODY, RECLAIMED, PREEMPTED, REBALANCED or SHARED; the first of these after
            NOBODY that allows it.
        """
        losers, cpu = self._losers, len(self._losers.flavors) - 1
        tenant, main, priority = losers.tenant[who], losers.main[who], losers.priority[who]
        meets = self._wanted[main]
        legal = self._reach[tenant] & (priority <= self._job.priority)
        legal &= self._spare(tenant, main) >= losers.amount[who] * replicas
        over_cpu = self._spare(tenant, np.full_like(main, cpu)) >= losers.cpu[who] * replicas
        legal &= meets | over_cpu
        limited = self._limited[np.where(meets, main, cpu)]
        reclaims = self._claimed[tenant] & limited
        lower = priority < self._job.priority
        evens = legal & limited & self._policy.by_fair_share & self._job.preemptible
        if evens.any():
            evens[evens] = self._evens(who[evens], replicas[evens])
        return np.select(
            [
                legal & reclaims & self._policy.by_reclaim,
                legal & lower & self._policy.by_priority,
                evens,
                legal & (tenant == self._taker) & losers.rested[who] & shrinks,
            ],
            [RECLAIMED, PREEMPTED, REBALANCED, SHARED],
            NOBODY,
        )

    def _evens(self, who: IntArray, replicas: IntArray) -> BoolArray:
        """Return (who,) whether the taker would have no more surplus than each loser keeps."""
        losers = self._losers
        tenants, back = np.unique(losers.tenant[who], return_inverse=True)
        even: BoolArray = losers.tenant[who] != self._taker
        for flavor in self._contested:
            takes, weight = self._surplus(self._after, tenants, flavor, of_taker=True)
            has, others_weight = self._surplus(self._laws, tenants, flavor, of_taker=False)
            main = losers.main == losers.flavors.index(flavor)
            lost = losers.cpu if flavor == CPU_FLAVOR else losers.amount * main
            keeps = has[back] - lost[who] * replicas
            fair = takes[back] * others_weight[back] <= keeps * weight[back]
            even &= (takes[back] <= 0) | (weight[back] > 0) & (keeps > 0) & fair
        return even

    def _surplus(
        self, laws: Laws, tenants: IntArray, flavor: str, *, of_taker: bool
    ) -> tuple[IntArray, FloatArray]:
        """Return (tenants,) surplus and weight, of the taker against each or of each against it."""
        pairs = ((self._taker, n) if of_taker else (n, self._taker) for n in tenants.tolist())
        above, weight = zip(*(laws.surplus(a, b, flavor) for a, b in pairs), strict=True)
        return np.array(above, dtype=np.int64), np.array(weight, dtype=np.float64)

    def _spare(self, tenants: IntArray, flavors: IntArray) -> IntArray:
        """Return (pairs,) how much each tenant may lose of a flavor."""
        names = self._losers.flavors
        pairs, back = np.unique(tenants * len(names) + flavors, return_inverse=True)
        spare = [
            self._laws.spare(self._taker, pair // len(names), names[pair % len(names)])
            for pair in pairs.tolist()
        ]
        return np.array(spare, dtype=np.int64)[back]

    def book(self, who: int, replicas: int, sign: int = 1) -> None:
        """Take replicas from a loser on the claim's laws; give them back with a sign of -1."""
        losers = self._losers
        name, n = losers.flavors[int(losers.main[who])], replicas
        charges = {CPU_FLAVOR: int(losers.cpu[who]) * n, name: int(losers.amount[who]) * n}
        tenant = losers.jobs[who].spec.tenant
        self._laws.book(tenant, [Charge(*pair) for pair in charges.items()], -sign)
