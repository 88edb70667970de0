"""What a tenant owns, holds and asks for, beside the bar that draws it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from portal.flavor_names import flavor_label
from portal.pages.bars import Bar
from scheduler.core.snapshot import Snapshot
from scheduler.decide.quota import charges_of
from scheduler.decide.standing import QuotaStanding, quota_ledger, standing


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """One tenant and flavor.

    Attributes:
        row: the numbers, in milli-units.
        label: the flavor's name for people.
        bar: the same, to be drawn.
        over: whether what is asked for is more than may be taken now.
    """

    row: QuotaStanding
    label: str
    bar: Bar
    over: bool


def quota_line(row: QuotaStanding, *, owned: int | None = None) -> QuotaLine:
    """Return what a page shows of a standing.

    Args:
        row: the standing.
        owned: what the tenant and those below it own together; None = what it owns itself.
    """
    label = flavor_label(row.flavor)
    return QuotaLine(
        row=row,
        label=label,
        bar=Bar(
            held=row.used,
            nominal=row.nominal if owned is None else owned,
            limit=row.potential if row.limited else None,
            asked=row.asked,
            label=f"{row.tenant}, {label}",
        ),
        over=row.limited and row.asked > row.available,
    )


def tenant_lines(snapshot: Snapshot, slugs: Iterable[str]) -> list[QuotaLine]:
    """Return the lines of some tenants: of every flavor that they, or those below them, have."""
    ledger = quota_ledger(snapshot)
    nodes = {node.slug: node for node in snapshot.tenants}
    owned = owned_with_below(snapshot)
    lines = []
    for slug in slugs:
        for flavor in sorted(ledger.tree.flavors):
            quota = nodes[slug].quotas.get(flavor)
            nominal = quota.nominal if quota else 0
            row = standing(ledger, tenant=slug, flavor=flavor, nominal=nominal)
            if owned[slug].get(flavor) or row.used:
                lines.append(quota_line(row, owned=owned[slug].get(flavor, 0)))
    return lines


def owned_with_below(snapshot: Snapshot) -> Mapping[str, Mapping[str, int]]:
    """Return tenant -> flavor -> what it and all below it own together."""
    total: dict[str, dict[str, int]] = {node.slug: {} for node in snapshot.tenants}
    for node in reversed(snapshot.tenants):  # children stand after their parents
        mine = total[node.slug]
        for flavor, line in node.quotas.items():
            mine[flavor] = mine.get(flavor, 0) + line.nominal
        if node.parent is not None:
            above = total[node.parent]
            for flavor, milli in mine.items():
                above[flavor] = above.get(flavor, 0) + milli
    return total


def own_use(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    """Return (tenant, flavor) -> thousandths that the tenant's own jobs hold."""
    names = [flavor.name for flavor in snapshot.fleet.flavors]
    found: dict[tuple[str, str], int] = {}
    for job in snapshot.running:
        devices = [device for replica in job.replicas for device in replica.devices]
        flavor = names[int(snapshot.fleet.device_flavor[devices[0]])] if devices else ""
        for charge in charges_of(job.spec, len(job.replicas), flavor):
            key = (job.spec.tenant, charge.flavor)
            found[key] = found.get(key, 0) + charge.amount
    return found
