"""Quota admission on the tenant tree: exact integer arithmetic, per flavor.

Usage is a table over time rows, so that the same arithmetic answers *now* (row 0) and *later*
(when running jobs have ended and planned ones have started).

Source: Kueue pkg/cache/scheduler/resource_node.go (localQuota, SubtreeQuota, Usage, available,
potentialAvailable); a tenant may borrow only flavors that it names (concepts/cohort.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scheduler.core.resources import CPU_FLAVOR
from scheduler.core.snapshot import IntArray, JobSpec, QuotaLine, TenantNode

UNLIMITED = 1 << 60
"""Stands for "no limit" in integer answers; far above any fleet, far below an overflow."""


class Charge(NamedTuple):
    """An amount of one flavor, in its milli-units."""

    flavor: str
    amount: int


def charges_of(job: JobSpec, replicas: int, flavor: str) -> tuple[Charge, ...]:
    """Return what a job is charged: cores on `cpu`, and its devices on their flavor, "" = none."""
    cpu = Charge(CPU_FLAVOR, job.shape.cpu_milli * replicas)
    if not (flavor and job.shape.devices):
        return (cpu,)
    return (cpu, Charge(flavor, job.shape.device_milli * replicas))


@dataclass(frozen=True, slots=True)
class FlavorTree:
    """The quota of one flavor at every tenant, in the order of `QuotaTree.slugs`.

    Attributes:
        named: whether the tenant names the flavor.
        subtree: SubtreeQuota, what the tenant and its children own and lend upwards.
        local: localQuota, the part that its parent never sees.
        borrowing: borrowing limit, None = no limit.
    """

    named: tuple[bool, ...]
    subtree: tuple[int, ...]
    local: tuple[int, ...]
    borrowing: tuple[int | None, ...]


class QuotaTree:
    """The compiled tree: who is whose parent, and what each owns of each flavor.

    Args:
        tenants: parents before children.
    """

    def __init__(self, tenants: Sequence[TenantNode]) -> None:
        self.slugs = tuple(tenant.slug for tenant in tenants)
        self.index: Mapping[str, int] = {slug: i for i, slug in enumerate(self.slugs)}
        self.parent = tuple(
            -1 if tenant.parent is None else self.index[tenant.parent] for tenant in tenants
        )
        names = sorted({flavor for tenant in tenants for flavor in tenant.quotas})
        self.flavors: Mapping[str, int] = {name: i for i, name in enumerate(names)}
        self.trees = tuple(self._compile(name, tenants) for name in names)
        below: list[list[int]] = [[] for _ in self.slugs]
        for n, parent in enumerate(self.parent):
            if parent >= 0:
                below[parent].append(n)
        self.children = tuple(tuple(found) for found in below)
        self._paths: dict[int, tuple[int, ...]] = {}

    def path(self, n: int) -> tuple[int, ...]:
        """Return the way down to a tenant, by index: its root, ..., its parent, itself."""
        known = self._paths.get(n)
        if known is None:
            way = [n]
            while (at := self.parent[way[-1]]) >= 0:
                way.append(at)
            known = self._paths[n] = tuple(reversed(way))
        return known

    def _compile(self, flavor: str, tenants: Sequence[TenantNode]) -> FlavorTree:
        lines = [tenant.quotas.get(flavor) for tenant in tenants]
        subtree = [line.nominal if line else 0 for line in lines]
        local = [0] * len(lines)
        for i in range(len(lines) - 1, -1, -1):  # children come after their parents
            local[i] = _local_quota(subtree[i], lines[i])
            if self.parent[i] >= 0:
                subtree[self.parent[i]] += subtree[i] - local[i]
        return FlavorTree(
            named=tuple(line is not None for line in lines),
            subtree=tuple(subtree),
            local=tuple(local),
            borrowing=tuple(line.borrowing_limit if line else None for line in lines),
        )

    def may_use(self, tenant: str, flavor: str) -> bool:
        """Return whether the flavor is this tenant's to ask for at all."""
        f = self.flavors.get(flavor)
        return f is None or self.trees[f].named[self.index[tenant]]

    def potential(self, tenant: str, flavor: str) -> int:
        """Return the most that the tenant could ever hold: potentialAvailable."""
        f = self.flavors.get(flavor)
        if f is None:
            return UNLIMITED
        tree, n = self.trees[f], self.index[tenant]
        if not tree.named[n]:
            return 0
        return self.potential_at(tree, n)

    def subtree_potential(self, tenant: str, flavor: str) -> int:
        """Return the most that the tenant and those below it could hold, whoever names it."""
        f = self.flavors.get(flavor)
        return UNLIMITED if f is None else self.potential_at(self.trees[f], self.index[tenant])

    def potential_at(self, tree: FlavorTree, n: int) -> int:
        """Return potentialAvailable of a tenant by its index, whether it names the flavor or not.

        min(localQuota + potentialAvailable(parent), SubtreeQuota + borrowingLimit); a root has its
        SubtreeQuota.
        """
        root, *below = self.path(n)
        most = tree.subtree[root]
        for m in below:
            most += tree.local[m]
            limit = tree.borrowing[m]
            most = most if limit is None else min(most, tree.subtree[m] + limit)
        return most


def _local_quota(subtree: int, line: QuotaLine | None) -> int:
    """Return max(0, subtree - lending limit); 0 where everything may be lent."""
    if line is None or line.lending_limit is None:
        return 0
    return max(0, subtree - line.lending_limit)


class QuotaLedger:
    """Usage of every tenant in every time row.

    Attributes:
        usage: (rows, flavors, tenants) milli-units, kept as Kueue's Usage: what a tenant holds
            itself plus what its children take beyond their local quota.
    """

    def __init__(self, tree: QuotaTree, rows: int = 1) -> None:
        self.tree = tree
        self.usage: IntArray = np.zeros((rows, len(tree.flavors), len(tree.slugs)), dtype=np.int64)

    def load(self, held: IntArray) -> None:
        """Set the usage of the first rows at once.

        Args:
            held: (rows, flavors, tenants) milli-units that each tenant holds itself.
        """
        usage = self.usage[: len(held)]
        usage[:] = held
        local = np.array([tree.local for tree in self.tree.trees], dtype=np.int64)
        local = local.reshape(usage.shape[1:])  # two axes also where nobody names a flavor
        for n in range(len(self.tree.slugs) - 1, -1, -1):  # children come after their parents
            parent = self.tree.parent[n]
            if parent >= 0:
                usage[:, :, parent] += np.maximum(usage[:, :, n] - local[:, n], 0)

    def add(self, tenant: str, charge: Charge, rows: slice | IntArray = slice(None)) -> None:
        """Charge a tenant in the given rows; a negative amount gives back."""
        f = self.tree.flavors.get(charge.flavor)
        n = self.tree.index.get(tenant, -1)
        if f is None:
            return
        delta: IntArray | int = charge.amount
        while n >= 0:
            local = self.tree.trees[f].local[n]
            if local:
                before = self.usage[rows, f, n].copy()  # a slice gives a view
                after = before + delta
                self.usage[rows, f, n] = after
                delta = np.maximum(after - local, 0) - np.maximum(before - local, 0)
            else:  # the parent sees all of it
                self.usage[rows, f, n] += delta
            n = self.tree.parent[n]

    def available(self, tenant: str, flavor: str, rows: slice | IntArray = slice(None)) -> int:
        """Return what the tenant may still take in all of the given rows; may be negative."""
        f = self.tree.flavors.get(flavor)
        if f is None:
            return UNLIMITED
        n = self.tree.index[tenant]
        if not self.tree.trees[f].named[n]:
            return 0
        return int(self._available(self.usage[:, f], rows, self.tree.trees[f], n).min())

    def _available(
        self, usage: IntArray, rows: slice | IntArray, tree: FlavorTree, n: int
    ) -> IntArray:
        """Return (rows,) available of a tenant by its index.

        max(0, localQuota - Usage) + min(parentAvailable, what it stores above - what it uses of
        that + borrowingLimit); a root has SubtreeQuota - Usage.
        """
        root, *below = self.tree.path(n)
        left: IntArray = tree.subtree[root] - usage[rows, root]
        for m in below:
            local, limit = tree.local[m], tree.borrowing[m]
            if limit is None and not local:
                continue  # it keeps nothing from its parent: 0 + parentAvailable
            used = usage[rows, m]
            if limit is not None:
                stored = tree.subtree[m] - local
                left = np.minimum(left, stored - np.maximum(used - local, 0) + limit)
            left = np.maximum(local - used, 0) + left
        return left

    def used(self, tenant: str, flavor: str) -> int:
        """Return Usage in row 0."""
        f = self.tree.flavors.get(flavor)
        return 0 if f is None else int(self.usage[0, f, self.tree.index[tenant]])

    def own(self, tenant: str, flavor: str) -> int:
        """Return what the tenant holds itself in row 0: Usage without what its children added."""
        f = self.tree.flavors.get(flavor)
        if f is None:
            return 0
        n, used, local = self.tree.index[tenant], self.usage.item, self.tree.trees[f].local
        below = (max(0, used(0, f, m) - local[m]) for m in self.tree.children[n])
        return used(0, f, n) - sum(below)
