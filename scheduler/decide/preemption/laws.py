"""The laws of preemption on a tree of any depth: who may take what from whom, in exact integers.

A tenant's guarantee for a flavor is what it and those below it own and lend each other (Kueue's
SubtreeQuota). Two tenants are judged at their closest common ancestor, as the children of it that
they belong to (Kueue's almost lowest common ancestors); trees apart meet above their roots. A
tenant that has others below it and runs jobs itself counts, towards those, as one more child with
its own nominal quota.

1. Everything else here is a wish; these are not. Nobody is evicted against one of them.
2. Nobody is pushed below its guarantee: every tenant from the victim's up to the one judged holds
   at least its guarantee without the victim.
3. Not within one application. An application is one job: its replicas live and die together, and
   take no place from each other.
4. To reclaim, the taker's side must hold no more than its guarantee with the job, in every flavor
   that the job is charged to and that has quotas. To rebalance, it may hold more, but no more above
   it with the job, for its weight, than the victim's side does without the victim; and the job
   must be preemptible itself: surplus is lent, not given.
5. Only who holds more than its guarantee may lose by either. That follows from 2.
6. A victim's priority is not above the taker's, and below it where priority is the cause.
7. A job below a fence (`TenantNode.preemption_fence`) evicts nobody outside the fence's subtree.

Within one tenant only 3, 6 and 7 apply: what it loses it gets. So a job that has more replicas than
its smallest gang shares them with waiting jobs of its tenant of the same priority or above: it is
shrunk for their smallest gangs, never evicted, and not before it has run for
`PreemptionPolicy.min_runtime_s` since it began or was last resized, as each time it begins anew
from its last checkpoint. That comes to rest, too: it has less each time, and grows again only where
nobody waits who could use it, after the same time.

A victim is judged in its main flavor: its accelerator's, or `cpu` if it has none. Where the taker
is not charged to that flavor they meet over CPU, and the victim is judged in both. A flavor without
quotas guarantees nobody anything: it can't be reclaimed, and bars no one.

Why no two jobs evict each other in turn. Say A evicted B. The taker's priority is never the lower
one, so B evicts A only if both are equal, and then both by reclaim. The two tenants always meet at
the same ancestor, on the same sides a and b. When A took, side a held at most its guarantee with A
(law 4). For B to take A, side a must hold at least its guarantee without A (law 2): it must have
grown by A's size or more since. So something else has started in between, into room that was free;
and whatever comes, nobody is evicted more often than `PreemptionPolicy.most_evictions`.

The same for surplus, by what each side holds above its guarantee for its weight. Let b be that of
the one side with B and b' without, a that of the other with A and a' without: a <= b' (law 4), and
b' < b, a' < a. For B to take A back, b <= a' were needed, but a' < a <= b' < b. Each time the
larger of the two numbers falls, so that taking comes to rest.

Source: YuniKorn design/preemption.md (laws, fence); Kueue concepts/preemption.md and fair_sharing
(almost LCA; LessThanOrEqualToFinalShare for surplus, and its proof); KAI docs/fairness,
GuaranteeDeservedQuota (reclaimer within deserved in all resources, victim above in one) and
MaintainFairShare.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from scheduler.core.snapshot import BoolArray, TenantNode
from scheduler.decide.quota import UNLIMITED, Charge, QuotaLedger, QuotaTree


class Surplus(NamedTuple):
    """What a side holds of a flavor above its guarantee, in milli-units, and its fair weight."""

    above: int
    weight: float


class Laws:
    """What every tenant holds and is guaranteed, kept up to date as jobs start and are evicted.

    Tenants and flavors are those of the tree, by index.

    Attributes:
        own: (flavors, tenants) milli-units that each tenant holds itself.
        ledger: what each holds with those below it, as Kueue's Usage.

    Args:
        tree: the compiled quota tree.
        tenants: the same tree, parents before children.
    """

    def __init__(self, tree: QuotaTree, tenants: Sequence[TenantNode]) -> None:
        self._tree = tree
        self.ledger = QuotaLedger(tree)
        self.own = np.zeros((len(tree.flavors), len(tree.slugs)), dtype=np.int64)
        self._nominal = np.zeros_like(self.own)
        for n, tenant in enumerate(tenants):
            for name, line in tenant.quotas.items():
                self._nominal[tree.flavors[name], n] = line.nominal
        self._fence = [tenant.preemption_fence for tenant in tenants]
        self._weight = [tenant.fair_weight for tenant in tenants]

    def copy(self) -> "Laws":
        """Return the laws as they stand, to try something on."""
        other = copy(self)
        other.own, other.ledger = self.own.copy(), QuotaLedger(self._tree)
        other.ledger.usage = self.ledger.usage.copy()
        return other

    def book(self, tenant: str, charges: Iterable[Charge], sign: int = 1) -> None:
        """Count what a tenant gets, or loses with a sign of -1."""
        n = self._tree.index.get(tenant, -1)
        for flavor, amount in charges:
            f = self._tree.flavors.get(flavor, -1)
            if n >= 0 and f >= 0:
                self.own[f, n] += sign * amount
                self.ledger.add(tenant, Charge(flavor, sign * amount))

    def limited(self, flavor: str) -> bool:
        """Return whether any tenant names the flavor, so that there is something to reclaim."""
        return flavor in self._tree.flavors

    def reach(self, taker: int) -> BoolArray:
        """Return (tenants,) whose jobs a tenant's jobs may evict at all (law 7)."""
        fence = next((n for n in reversed(self._tree.path(taker)) if self._fence[n]), -1)
        inside = np.zeros(len(self._fence), dtype=np.bool_)
        for n, parent in enumerate(self._tree.parent):  # parents come first
            inside[n] = fence < 0 or n == fence or (parent >= 0 and inside[parent])
        return inside

    def spare(self, taker: int, loser: int, flavor: str) -> int:
        """Return how much of a flavor one tenant may lose to another (laws 2 and 5).

        Everything where it has no guarantee against the taker; negative where it holds less than
        its guarantee.
        """
        f = self._tree.flavors.get(flavor, -1)
        if f < 0 or taker == loser:
            return UNLIMITED
        return min(self._above(f, loser, taker))

    def claims(self, taker: int, charges: Sequence[Charge], losers: Sequence[int]) -> list[bool]:
        """Return from which tenants a tenant may reclaim what it is charged for (law 4)."""
        limited = [self._tree.flavors[c.flavor] for c in charges if self.limited(c.flavor)]
        after = self.copy()
        after.book(self._tree.slugs[taker], charges)
        return [
            bool(limited)
            and taker != loser
            and all(after._above(f, taker, loser)[-1] <= 0 for f in limited)  # noqa: SLF001
            for loser in losers
        ]

    def surplus(self, one: int, other: int, flavor: str) -> Surplus:
        """Return what one's side holds of a flavor above its guarantee against another (law 4)."""
        theirs = set(self._tree.path(other))
        side = [n for n in self._tree.path(one) if n not in theirs]
        above = self._above(self._tree.flavors[flavor], one, other)[-1]
        return Surplus(above, self._weight[side[0] if side else one])

    def _above(self, f: int, one: int, other: int) -> list[int]:
        """Return what the tenants on one's side hold above their guarantees, from it upwards."""
        theirs = set(self._tree.path(other))
        side = [n for n in reversed(self._tree.path(one)) if n not in theirs]
        if not side:  # the other is below it
            return [int(self.own[f, one] - self._nominal[f, one])]
        guaranteed, used = self._tree.trees[f].subtree, self.ledger.usage[0, f]
        return [int(used[n]) - guaranteed[n] for n in side]
