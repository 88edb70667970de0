"""Who may borrow next: the weighted dominant share of what each tenant has borrowed.

Tenants are compared as siblings: of two tenants the children of their closest common ancestor
decide, seen from the root; where those are even, one looks a level deeper. The share is taken
*before* the next job, as in progressive filling, so that the order of two tenants never depends on
which of their jobs wait: taking a waiting job away delays nobody.

Source: Kueue KEP-1714 and pkg/cache/scheduler/fair_sharing.go (dominantResourceShare, CompareDRS,
FairSharingPrioritizeNonBorrowing); Ghodsi et al., Dominant Resource Fairness, NSDI 2011, algorithm
1 (lowest share first, without the task). Kueue adds the candidate to the share.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from scheduler.core.resources import CPU_FLAVOR
from scheduler.core.snapshot import TenantNode
from scheduler.decide.quota import Charge, QuotaLedger, QuotaTree

PER_MILLE = 1000.0
ACCELERATORS = "accelerators"
"""The resource that all accelerator flavors are amounts of, as nvidia.com/gpu is in Kueue."""


class Level(NamedTuple):
    """A tenant's standing among its siblings; lower goes first.

    Attributes:
        rank: 0 = has room within its quota, 1 = borrows, 2 = borrows and has weight 0.
        share: weighted dominant share in thousandths; unweighted at rank 2.
    """

    rank: int
    share: float


EVEN = Level(0, 0.0)
"""Of all who have room within their quota."""

Path: TypeAlias = tuple[Level, ...]
"""A tenant's standing from below its root downwards, as far as it is not even."""


def weighted_share(
    borrowed: Mapping[str, int], lendable: Mapping[str, int], weight: float
) -> float:
    """Return max over resources of 1000 * borrowed / lendable / weight; +inf for weight 0.

    Args:
        borrowed: resource -> milli-units above quota; only what is borrowed, > 0.
        lendable: resource -> milli-units that the parent could lend.
        weight: fair weight, >= 0.
    """
    if not borrowed:
        return 0.0
    return math.inf if weight == 0 else _ratio(borrowed, lendable) / weight


def _ratio(borrowed: Mapping[str, int], lendable: Mapping[str, int]) -> float:
    ratios = [
        PER_MILLE * amount / lendable[resource]
        for resource, amount in borrowed.items()
        if lendable.get(resource, 0) > 0
    ]
    return max(ratios, default=0.0)


class DominantShares:
    """Every tenant's standing as a borrower, kept up to date as work starts.

    An inner tenant that runs jobs itself counts as one more child of its own, with its own nominal
    quota.

    Args:
        tenants: the tree, parents before children.
        tree: the same tree, compiled.
        allocated: (tenant, flavor) -> milli-units held by the tenant itself.
    """

    def __init__(
        self,
        tenants: Sequence[TenantNode],
        tree: QuotaTree,
        allocated: Mapping[tuple[str, str], int],
    ) -> None:
        self._tree = tree
        self._weights = [tenant.fair_weight for tenant in tenants]
        self._inner = {tree.index[t.parent] for t in tenants if t.parent is not None}
        self._nominal = {
            (n, f): tenant.quotas[flavor].nominal
            for n, tenant in enumerate(tenants)
            for flavor, f in tree.flavors.items()
            if flavor in tenant.quotas
        }
        self._lendable: dict[int, dict[str, int]] = {}
        self._resources = [
            flavor if flavor == CPU_FLAVOR else ACCELERATORS for flavor in tree.flavors
        ]
        self._own: dict[tuple[int, int], int] = {}
        self._changes: dict[int, int] = {}  # branch below the root -> how often it got something
        self._paths: dict[tuple[str, tuple[str, ...]], tuple[int, Path]] = {}
        self._owned = [[one.subtree[n] for one in tree.trees] for n in range(len(tenants))]
        self._ledger = QuotaLedger(tree)
        for (tenant, flavor), amount in sorted(allocated.items()):
            self.allocate(tenant, [Charge(flavor, amount)])

    def allocate(self, tenant: str, charges: Iterable[Charge]) -> None:
        """Count what a tenant has just got."""
        n = self._tree.index.get(tenant, -1)
        for charge in charges:
            f = self._tree.flavors.get(charge.flavor, -1)
            if n >= 0 and f >= 0:
                self._ledger.add(tenant, charge)
                self._own[n, f] = self._own.get((n, f), 0) + charge.amount
        if n >= 0:
            branch = self._tree.path(n)[:2][-1]
            self._changes[branch] = self._changes.get(branch, 0) + 1

    def path(self, tenant: str, flavors: tuple[str, ...]) -> Path:
        """Return the standing of a tenant's jobs that may use some flavors, root first.

        Args:
            tenant: slug.
            flavors: accelerators that the jobs may use, () for jobs without; CPU counts always.
        """
        way = self._tree.path(self._tree.index[tenant])
        changes = self._changes.get(way[:2][-1], 0)  # what other branches get changes nothing here
        known = self._paths.get((tenant, flavors))
        if known is None or known[0] != changes:
            known = (changes, self._path(way, flavors))
            self._paths[tenant, flavors] = known
        return known[1]

    def _path(self, way: Sequence[int], flavors: Sequence[str]) -> Path:
        wanted = [self._tree.flavors[name] for name in flavors if name in self._tree.flavors]
        levels = [self._level(n, wanted, limited=len(wanted) == len(flavors)) for n in way[1:]]
        if way[-1] in self._inner:
            levels.append(self._own_level(way[-1], wanted, limited=len(wanted) == len(flavors)))
        while levels and levels[-1] == EVEN:
            levels.pop()  # a tenant less deep in the tree is even with whoever is even below it
        return tuple(levels)

    def share(self, tenant: str) -> float:
        """Return the weighted dominant share of a tenant among its siblings, thousandths."""
        n = self._tree.index[tenant]
        if self._tree.parent[n] < 0:
            return 0.0
        lendable = self._lendable_by(self._tree.parent[n])
        return weighted_share(self._borrowed(n), lendable, self._weights[n])

    def _level(self, n: int, wanted: Sequence[int], *, limited: bool) -> Level:
        """Return a tenant's level below its parent."""
        quota, used = self._owned[n], self._ledger.usage[0, :, n].tolist()
        full = self._is_full(used, quota, wanted, limited=limited)
        return self._at(n, self._tree.parent[n], used, quota, full=full)

    def _own_level(self, n: int, wanted: Sequence[int], *, limited: bool) -> Level:
        """Return the level of an inner tenant's own jobs among its children."""
        flavors = range(len(self._tree.trees))
        quota = [self._nominal.get((n, f), 0) for f in flavors]
        used = [self._own.get((n, f), 0) for f in flavors]
        full = self._is_full(used, quota, wanted, limited=limited)
        return self._at(n, n, used, quota, full=full)

    def _is_full(
        self, used: Sequence[int], quota: Sequence[int], wanted: Sequence[int], *, limited: bool
    ) -> bool:
        """Return whether the next job would borrow whatever its size."""
        cpu = self._tree.flavors.get(CPU_FLAVOR, -1)
        if cpu >= 0 and used[cpu] >= quota[cpu]:
            return True
        return limited and bool(wanted) and all(used[f] >= quota[f] for f in wanted)

    def _at(
        self, n: int, lender: int, used: Sequence[int], quota: Sequence[int], *, full: bool
    ) -> Level:
        if not full:
            return EVEN
        ratio = _ratio(self._above(used, quota), self._lendable_by(lender))
        weight = self._weights[n]
        return Level(2, ratio) if weight == 0 else Level(1, ratio / weight)

    def _borrowed(self, n: int) -> dict[str, int]:
        return self._above(self._ledger.usage[0, :, n].tolist(), self._owned[n])

    def _above(self, used: Sequence[int], quota: Sequence[int]) -> dict[str, int]:
        """Return resource -> what is held above quota, summed over its flavors."""
        above: dict[str, int] = {}
        for resource, amount, owned in zip(self._resources, used, quota, strict=True):
            if amount > owned:
                above[resource] = above.get(resource, 0) + amount - owned
        return above

    def _lendable_by(self, n: int) -> dict[str, int]:
        """Return resource -> potentialAvailable of a lender, summed over its flavors."""
        if n not in self._lendable:
            sums: dict[str, int] = {}
            for resource, tree in zip(self._resources, self._tree.trees, strict=True):
                sums[resource] = sums.get(resource, 0) + self._tree.potential_at(tree, n)
            self._lendable[n] = sums
        return self._lendable[n]
