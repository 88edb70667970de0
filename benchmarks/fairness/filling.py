"""What is fair at one moment, in fractions of devices: the yardstick, apart from the engine's own.

Everybody gets what it owns and asks for; the surplus is poured in by weight, level by level down
the tree, until nobody asks or nothing is left. What a lender keeps back and does not use is
nobody's.
"""

from collections.abc import Mapping, Sequence

from scheduler.core.snapshot import TenantNode


def fair_shares(
    tenants: Sequence[TenantNode], flavor: str, capacity: float, asked: Mapping[str, float]
) -> dict[str, float]:
    """Return leaf tenant -> fair share, in the unit of `capacity`.

    Args:
        tenants: the tree, parents before children; only leaves ask.
        flavor: whose quotas count, in thousandths of that unit.
        capacity: amount there is.
        asked: leaf -> what it holds and waits for.
    """
    owned = {t.slug: _owned(t, flavor) for t in tenants}
    wants, nobodys = {t.slug: asked.get(t.slug, 0.0) for t in tenants}, 0.0
    for tenant in reversed(tenants):
        slug, line = tenant.slug, tenant.quotas.get(flavor)
        if line and line.borrowing_limit is not None:
            wants[slug] = min(wants[slug], owned[slug] + line.borrowing_limit / 1000)
        unlent = 0.0
        if line and line.lending_limit is not None:
            unlent = max(0.0, owned[slug] - line.lending_limit / 1000 - wants[slug])
        nobodys += unlent
        if tenant.parent is not None:
            owned[tenant.parent] += owned[slug] - unlent
            wants[tenant.parent] += wants[slug]
    share: dict[str | None, float] = {None: capacity - nobodys}
    for parent in [None, *(t.slug for t in tenants)]:
        children = [t for t in tenants if t.parent == parent]
        if children:
            weights = {t.slug: t.fair_weight for t in children}
            share.update(_poured(share[parent], weights, owned, wants).items())
    inner = {t.parent for t in tenants}
    return {slug: amount for slug, amount in share.items() if slug and slug not in inner}


def _owned(tenant: TenantNode, flavor: str) -> float:
    line = tenant.quotas.get(flavor)
    return line.nominal / 1000 if line else 0.0


def _poured(
    amount: float,
    weights: Mapping[str, float],
    owned: Mapping[str, float],
    wants: Mapping[str, float],
) -> dict[str, float]:
    """Return what each sibling gets; those who want least are full first."""
    share = {slug: min(owned[slug], wants[slug]) for slug in weights}
    left = amount - sum(share.values())
    missing = {slug: wants[slug] - share[slug] for slug, w in weights.items() if w > 0}
    still = sum(weights[slug] for slug in missing)
    for slug in sorted(missing, key=lambda s: (missing[s] / weights[s], s)):
        part = max(0.0, min(missing[slug], left * weights[slug] / still))
        share[slug] += part
        left -= part
        still -= weights[slug]
    return share
