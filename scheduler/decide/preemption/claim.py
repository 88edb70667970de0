"""What one waiting job may take, by the laws as they stand."""

from collections.abc import Sequence

import numpy as np

from scheduler.core.plan import EvictionCause
from scheduler.core.policy import PreemptionPolicy
from scheduler.core.resources import CPU_FLAVOR
from scheduler.core.snapshot import IntArray, JobSpec
from scheduler.decide.preemption.laws import Laws
from scheduler.decide.preemption.losers import Losers
from scheduler.decide.quota import Charge

NOBODY, RECLAIMED, PREEMPTED = 0, 1, 2
"""By which law somebody may lose; by none."""

CAUSES = {RECLAIMED: EvictionCause.RECLAIMED, PREEMPTED: EvictionCause.PREEMPTED}


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
        wanted = {charge.flavor for charge in charges}
        self._wanted = np.array([name in wanted for name in losers.flavors], dtype=np.bool_)
        self._limited = np.array([laws.limited(name) for name in losers.flavors], dtype=np.bool_)

    def causes(self, who: IntArray, replicas: IntArray) -> IntArray:
        """Return by which law each of some losers may lose so many of its replicas.

        Args:
            who: indices of losers.
            replicas: how many each would lose.

        Returns:
            (who,) NOBODY, RECLAIMED or PREEMPTED.
        """
        losers, cpu = self._losers, len(self._losers.flavors) - 1
        tenant, main, priority = losers.tenant[who], losers.main[who], losers.priority[who]
        meets = self._wanted[main]
        legal = self._reach[tenant] & (priority <= self._job.priority)
        legal &= self._spare(tenant, main) >= losers.amount[who] * replicas
        over_cpu = self._spare(tenant, np.full_like(main, cpu)) >= losers.cpu[who] * replicas
        legal &= meets | over_cpu
        reclaims = self._claimed[tenant] & self._limited[np.where(meets, main, cpu)]
        lower = priority < self._job.priority
        return np.select(
            [legal & reclaims & self._policy.by_reclaim, legal & lower & self._policy.by_priority],
            [RECLAIMED, PREEMPTED],
            NOBODY,
        )

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
