"""Every tenant's standing: its fair share now, its part if all asked, and what it has had.

`fair` divides the capacity among those who ask (KAI), level by level down the tree. `part` is the
same division if everybody asked for all: it does not depend on who waits, so the order of the queue
is measured by it.

Source: KAI resource_division.go for the division; Slurm priority_multifactor for the factor,
F = 2 ** (-usage / share).
"""

import math
from collections.abc import Mapping, Sequence

from scheduler.core.plan import FairShareRow
from scheduler.core.snapshot import TenantNode
from scheduler.decide.fairness.division import Claim, divide
from scheduler.decide.fairness.dominant import DominantShares, Path
from scheduler.decide.quota import Charge, QuotaTree

FAIR_UNIT_MILLI = 1000
"""Surplus is divided in whole devices and whole cores, as people think of them."""

LEAST_FACTOR_AT = 1000.0
"""2 to the power of minus this is the least factor there is."""


class FairShares:
    """Standing of every tenant for every flavor, kept up to date as work starts.

    Attributes:
        dominant: who borrows how much, for the order of those who must borrow.

    Args:
        tenants: the tree, parents before children.
        capacity: flavor -> milli-units that the cluster can hold.
        allocated: (tenant, flavor) -> milli-units held.
        requested: (tenant, flavor) -> milli-units held and waited for.
        usage: tenant -> decayed use of its own jobs as a fraction of capacity.
    """

    def __init__(
        self,
        tenants: Sequence[TenantNode],
        capacity: Mapping[str, int],
        allocated: Mapping[tuple[str, str], int],
        requested: Mapping[tuple[str, str], int],
        usage: Mapping[str, float],
    ) -> None:
        self._tenants = {tenant.slug: tenant for tenant in tenants}
        self._tree = QuotaTree(tenants)
        self._allocated = dict(allocated)
        self._requested = requested
        self._usage = usage
        self._children: dict[str | None, list[TenantNode]] = {}
        for tenant in tenants:
            self._children.setdefault(tenant.parent, []).append(tenant)
        self.dominant = DominantShares(tenants, self._tree, allocated)
        self._fair: dict[tuple[str, str], int] = {}
        self._part: dict[tuple[str, str], int] = {}
        self._part_frac = dict.fromkeys(self._tenants, 0.0)
        self._factors: dict[str, dict[tuple[str, ...], float]] = {}  # until the tenant gets more
        whole = _subtree_usage(tenants, usage)
        for flavor, total in sorted(capacity.items()):
            asked = {t.slug: requested.get((t.slug, flavor), 0) for t in tenants}
            self._fair |= self._divide(tenants, flavor, total, asked, whole)
            everything = {t.slug: self._everything(t, flavor, total) for t in tenants}
            self._part |= self._divide(tenants, flavor, total, everything, {})
            for slug, frac in self._part_frac.items():
                self._part_frac[slug] = max(frac, self._part[slug, flavor] / max(total, 1))

    def _everything(self, tenant: TenantNode, flavor: str, total: int) -> int:
        """Return what a tenant asks for if all ask for all that is there.

        An inner tenant that runs no job itself leaves its quota to its children.
        """
        held = self._allocated.get((tenant.slug, flavor), 0)
        if tenant.slug in self._children and not held and not self._usage.get(tenant.slug):
            return 0
        return _nominal(tenant, flavor) + total

    def _divide(
        self,
        tenants: Sequence[TenantNode],
        flavor: str,
        total: int,
        asked: Mapping[str, int],
        usage: Mapping[str, float],
    ) -> dict[tuple[str, str], int]:
        """Divide a flavor down the tree and return (tenant, flavor) -> what its own jobs get.

        `usage` is past use of each tenant and all below it; {} bends no weight.
        """
        asked = {slug: min(n, self._tree.potential(slug, flavor)) for slug, n in asked.items()}
        sums = self._subtree_sums(tenants, flavor, asked)
        divided: dict[tuple[str, str], int] = {}
        levels: list[tuple[str | None, int]] = [(None, total)]
        while levels:
            parent, here = levels.pop()
            children = self._children.get(parent, [])
            claims = [_claim(child, sums[child.slug], usage) for child in children]
            if (
                parent is not None
            ):  # what is charged to the parent itself competes with its children
                inner = self._tenants[parent]
                own = (_nominal(inner, flavor), asked[parent])
                claims.append(_claim(inner, own, self._usage if usage else {}))
            fair = divide(here, claims, unit=FAIR_UNIT_MILLI)
            if parent is not None:
                divided[parent, flavor] = fair[parent]
            for child in children:
                if child.slug in self._children:
                    levels.append((child.slug, fair[child.slug]))
                else:
                    divided[child.slug, flavor] = fair[child.slug]
        return divided

    def _subtree_sums(
        self, tenants: Sequence[TenantNode], flavor: str, asked: Mapping[str, int]
    ) -> dict[str, tuple[int, int]]:
        """Return tenant -> (deserved, requested) of it and all below it."""
        deserved = {tenant.slug: _nominal(tenant, flavor) for tenant in tenants}
        requested = dict(asked)
        for tenant in reversed(tenants):
            slug, parent = tenant.slug, tenant.parent
            requested[slug] = min(requested[slug], self._tree.subtree_potential(slug, flavor))
            if parent is not None:
                deserved[parent] += deserved[slug]
                requested[parent] += requested[slug]
        return {slug: (deserved[slug], requested[slug]) for slug in deserved}

    def fair(self, tenant: str, flavor: str) -> int:
        """Return the fair share now, milli-units; 0 where nothing is known."""
        return self._fair.get((tenant, flavor), 0)

    def part(self, tenant: str, flavor: str) -> int:
        """Return the fair share if everybody asked for everything, milli-units."""
        return self._part.get((tenant, flavor), 0)

    def past(self, tenant: str) -> float:
        """Return the decayed past use against the largest part; 1 = it has had just its part."""
        used = self._usage.get(tenant, 0.0)
        if used <= 0:
            return 0.0
        part = self._part_frac.get(tenant, 0.0)
        return used / part if part > 0 else math.inf

    def allocate(self, tenant: str, charges: Sequence[Charge]) -> None:
        """Count what a tenant has just got."""
        for charge in charges:
            key = (tenant, charge.flavor)
            self._allocated[key] = self._allocated.get(key, 0) + charge.amount
        self._factors.pop(tenant, None)
        self.dominant.allocate(tenant, charges)

    def path(self, tenant: str, flavors: tuple[str, ...]) -> Path:
        """Return the tenant's standing as a borrower; see `DominantShares.path`."""
        return self.dominant.path(tenant, flavors)

    def factor(self, tenant: str, flavors: tuple[str, ...]) -> float:
        """Return the fair-share factor in 0..1.

        1 holds and held nothing, 1/2 holds its part and has had it all along. Present and past
        count half each, as in KAI's weight plus use (k = 1).

        Args:
            tenant: slug.
            flavors: what counts; the worst standing among them decides.
        """
        known = self._factors.setdefault(tenant, {})
        if flavors not in known:
            now = max((self._held_frac(tenant, flavor) for flavor in flavors), default=0.0)
            known[flavors] = 2.0 ** -min((now + self.past(tenant)) / 2, LEAST_FACTOR_AT)
        return known[flavors]

    def _held_frac(self, tenant: str, flavor: str) -> float:
        """Return what a tenant holds against its part; infinite where it has none."""
        held = self._allocated.get((tenant, flavor), 0)
        part = self.part(tenant, flavor)
        return 0.0 if held <= 0 else held / part if part else math.inf

    def rows(self) -> tuple[FairShareRow, ...]:
        """Return one row per tenant and flavor that it owns, holds or asks for."""
        rows = []
        for tenant, flavor in sorted(self._fair):
            row = FairShareRow(
                tenant=tenant,
                flavor=flavor,
                entitled=_nominal(self._tenants[tenant], flavor),
                fair=self.fair(tenant, flavor),
                allocated=self._allocated.get((tenant, flavor), 0),
                # a job of several flavors waits under one of them, and may start on another
                requested=max(
                    self._requested.get((tenant, flavor), 0),
                    self._allocated.get((tenant, flavor), 0),
                ),
                part=self.part(tenant, flavor),
                past_frac=self._usage.get(tenant, 0.0),
            )
            if row.entitled or row.allocated or row.requested:
                rows.append(row)
        return tuple(rows)


def _claim(
    tenant: TenantNode, owned_and_asked: tuple[int, int], usage: Mapping[str, float]
) -> Claim:
    return Claim(
        tenant.slug,
        *owned_and_asked,
        weight=tenant.fair_weight,
        usage=usage.get(tenant.slug, 0.0),
        priority=tenant.queue_priority,
        created_s=tenant.created_s,
    )


def _subtree_usage(tenants: Sequence[TenantNode], usage: Mapping[str, float]) -> dict[str, float]:
    """Return tenant -> past use of it and all below it."""
    sums = {tenant.slug: usage.get(tenant.slug, 0.0) for tenant in tenants}
    for tenant in reversed(tenants):
        if tenant.parent is not None:
            sums[tenant.parent] += sums[tenant.slug]
    return sums


def _nominal(tenant: TenantNode, flavor: str) -> int:
    line = tenant.quotas.get(flavor)
    return line.nominal if line else 0
