"""Fair share: how a capacity is divided among tenants, level by level down the tree.

Three phases: everybody gets what it deserves and asks for; the surplus goes by priority bucket and,
inside a bucket, by weight bent by past use; what rounding left goes one unit each by largest
remainder.

Source: KAI scheduler resource_division.go and docs time-based-fairshare:
`P_i = max(0, W'_i + k (W'_i - U'_i))`, use normalised by capacity.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduler.core.plan import FairShareRow
from scheduler.core.snapshot import TenantNode
from scheduler.decide.quota import Charge

FAIR_UNIT_MILLI = 1000
"""Surplus is divided in whole devices and whole cores, as people think of them."""

USAGE_WEIGHT_K = 1.0
"""k: how strongly past use bends the weights (KAI's default kValue)."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What one party brings to a division.

    Attributes:
        name: unique; the last key of every order.
        deserved: what it owns, >= 0.
        requested: what it holds and waits for, >= 0.
        weight: >= 0; a party of weight 0 gets nothing of the surplus.
        usage: decayed use as a fraction of capacity, >= 0.
        priority: bucket, higher first.
    """

    name: str
    deserved: int
    requested: int
    weight: float = 1.0
    usage: float = 0.0
    priority: int = 0


@dataclass(frozen=True, slots=True)
class _Division:
    """What a division has given so far, in multiples of `unit` beyond what is deserved."""

    fair: dict[str, int]
    unit: int


def divide(total: int, claims: Sequence[Claim], *, unit: int = 1) -> dict[str, int]:
    """Return the fair share of each claim.

    What is deserved and asked for is a promise and is given even where it passes `total`; only the
    surplus is divided. Nobody gets more than it asks for.

    Args:
        total: amount to divide, >= 0.
        claims: the parties; their order does not matter.
        unit: parts of the surplus are rounded down to whole multiples of this.
    """
    ordered = sorted(claims, key=lambda claim: claim.name)
    fair = {claim.name: min(claim.deserved, claim.requested) for claim in ordered}
    division = _Division(fair, unit)
    left = max(0, total - sum(fair.values()))
    for priority in sorted({claim.priority for claim in ordered}, reverse=True):
        bucket = [claim for claim in ordered if claim.priority == priority]
        left = _divide_bucket(left, bucket, division)
    return fair


def _divide_bucket(left: int, bucket: Sequence[Claim], division: _Division) -> int:
    """Divide one bucket's surplus and return what is left for the next."""
    while left > 0:
        hungry = [claim for claim in bucket if division.fair[claim.name] < claim.requested]
        parts = _parts(hungry)
        if not parts:
            return left
        given, satisfied = _round(left, parts, hungry, division)
        if not satisfied:
            return _hand_out_rest(left, left - given, parts, hungry, division)
        left -= given
    return left


def _parts(hungry: Sequence[Claim]) -> dict[str, float]:
    """Return each party's part of the surplus; they sum to 1, {} if nobody has any."""
    weights = sum(claim.weight for claim in hungry)
    if weights <= 0:
        return {}
    bent = {}
    for claim in hungry:
        w = claim.weight / weights
        bent[claim.name] = max(0.0, w + USAGE_WEIGHT_K * (w - claim.usage)) if w else 0.0
    whole = math.fsum(bent.values())
    if whole <= 0:  # everybody used more than its part: fall back to the weights alone
        return {claim.name: claim.weight / weights for claim in hungry}
    return {name: part / whole for name, part in bent.items() if part > 0}


def _round(
    left: int, parts: Mapping[str, float], hungry: Sequence[Claim], division: _Division
) -> tuple[int, bool]:
    """Give everyone its part, rounded down; return the sum and whether somebody asked for less."""
    given, satisfied, unit = 0, False, division.unit
    for claim in hungry:
        part = math.floor(left * parts.get(claim.name, 0.0) / unit) * unit
        missing = claim.requested - division.fair[claim.name]
        satisfied = satisfied or part >= missing
        share = min(part, missing)
        division.fair[claim.name] += share
        given += share
    return given, satisfied


def _hand_out_rest(
    whole: int, left: int, parts: Mapping[str, float], hungry: Sequence[Claim], division: _Division
) -> int:
    """Give one unit each by largest remainder, then by name; return what is left."""
    unit, fair = division.unit, division.fair
    remainder = {name: math.fmod(whole * part / unit, 1.0) for name, part in parts.items()}
    asking = [claim for claim in hungry if claim.name in parts]
    for claim in sorted(asking, key=lambda c: (-remainder[c.name], c.name)):
        share = min(unit, left, claim.requested - fair[claim.name])
        fair[claim.name] += share
        left -= share
    return left


class FairShares:
    """Standing of every tenant for every flavor, kept up to date as work starts.

    Args:
        tenants: the tree, parents before children.
        capacity: flavor -> milli-units that the cluster can hold.
        allocated: (tenant, flavor) -> milli-units held.
        requested: (tenant, flavor) -> milli-units held and waited for.
        usage: tenant -> decayed use as a fraction of capacity.
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
        self._allocated = dict(allocated)
        self._requested = requested
        self._usage = usage
        self._children: dict[str | None, list[TenantNode]] = {}
        for tenant in tenants:
            self._children.setdefault(tenant.parent, []).append(tenant)
        self._fair: dict[tuple[str, str], int] = {}
        for flavor, total in sorted(capacity.items()):
            sums = self._subtree_sums(tenants, flavor)
            self._divide_level(None, total, flavor, sums)

    def _subtree_sums(
        self, tenants: Sequence[TenantNode], flavor: str
    ) -> dict[str, tuple[int, int]]:
        """Return tenant -> (deserved, requested) of it and all below it."""
        sums = {
            tenant.slug: (_nominal(tenant, flavor), self._requested.get((tenant.slug, flavor), 0))
            for tenant in tenants
        }
        for tenant in reversed(tenants):
            if tenant.parent is not None:
                own, below = sums[tenant.parent], sums[tenant.slug]
                sums[tenant.parent] = (own[0] + below[0], own[1] + below[1])
        return sums

    def _divide_level(
        self, parent: str | None, total: int, flavor: str, sums: Mapping[str, tuple[int, int]]
    ) -> None:
        children = self._children.get(parent, [])
        claims = [self._claim(child, *sums[child.slug]) for child in children]
        if parent is not None:  # what is charged to the parent itself competes with its children
            inner = self._tenants[parent]
            own = self._requested.get((parent, flavor), 0)
            claims.append(self._claim(inner, _nominal(inner, flavor), own))
        fair = divide(total, claims, unit=FAIR_UNIT_MILLI)
        if parent is not None:
            self._fair[parent, flavor] = fair[parent]
        for child in children:
            if child.slug in self._children:
                self._divide_level(child.slug, fair[child.slug], flavor, sums)
            else:
                self._fair[child.slug, flavor] = fair[child.slug]

    def _claim(self, tenant: TenantNode, deserved: int, requested: int) -> Claim:
        usage = self._usage.get(tenant.slug, 0.0)
        return Claim(tenant.slug, deserved, requested, tenant.fair_weight, usage)

    def fair(self, tenant: str, flavor: str) -> int:
        """Return the fair share, milli-units; 0 where nothing is known."""
        return self._fair.get((tenant, flavor), 0)

    def allocate(self, tenant: str, charges: Iterable[Charge]) -> None:
        """Count what a tenant has just got."""
        for charge in charges:
            key = (tenant, charge.flavor)
            self._allocated[key] = self._allocated.get(key, 0) + charge.amount

    def factor(self, tenant: str, flavors: Iterable[str]) -> float:
        """Return the fair-share factor in 0..1: 1 holds nothing, 1/2 holds its fair share.

        Args:
            tenant: slug.
            flavors: what counts; the worst standing among them decides.

        Source:
            Slurm priority_multifactor: F = 2 ** (-usage / share).
        """
        standing = 0.0
        for flavor in flavors:
            held = self._allocated.get((tenant, flavor), 0)
            if held > 0:
                fair = self.fair(tenant, flavor)
                standing = max(standing, held / fair if fair else math.inf)
        return float(2.0 ** -min(standing, 1000.0))

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
            )
            if row.entitled or row.allocated or row.requested:
                rows.append(row)
        return tuple(rows)


def _nominal(tenant: TenantNode, flavor: str) -> int:
    line = tenant.quotas.get(flavor)
    return line.nominal if line else 0
