"""What a tenant has of a flavor: for quota bars beside a request and on pages."""

from dataclasses import dataclass

from scheduler.core.snapshot import Snapshot
from scheduler.decide.quota import UNLIMITED, QuotaLedger, QuotaTree, charges_of


@dataclass(frozen=True, slots=True)
class QuotaStanding:
    """One tenant's quota of one flavor, in milli-units.

    Attributes:
        tenant, flavor: whose, of what.
        limited: False = no tenant names the flavor, nothing below bounds it.
        nominal: what the tenant owns.
        used: what it and the tenants below it hold.
        borrowed: what of `used` is above what they own together.
        available: what it may take now; negative after a cut below use.
        potential: the most that it could ever hold.
        asked: what a request would add.
    """

    tenant: str
    flavor: str
    limited: bool
    nominal: int
    used: int
    borrowed: int
    available: int
    potential: int
    asked: int = 0


def quota_ledger(snapshot: Snapshot) -> QuotaLedger:
    """Return the ledger of what runs in a snapshot."""
    ledger = QuotaLedger(QuotaTree(snapshot.tenants))
    for job in snapshot.running:
        flavor = snapshot.fleet.flavor_held(job.replicas)
        for charge in charges_of(job.spec, len(job.replicas), flavor):
            ledger.add(job.spec.tenant, charge)
    return ledger


def standing(
    ledger: QuotaLedger, *, tenant: str, flavor: str, nominal: int, asked: int = 0
) -> QuotaStanding:
    """Return a tenant's standing for a flavor.

    Args:
        ledger: of what runs.
        tenant: slug, known to the ledger's tree.
        flavor: name.
        nominal: the tenant's own, milli-units.
        asked: what a request would add, milli-units.
    """
    limited = flavor in ledger.tree.flavors
    used = ledger.used(tenant, flavor)
    available = ledger.available(tenant, flavor)
    potential = ledger.tree.potential(tenant, flavor)
    subtree = (
        ledger.tree.trees[ledger.tree.flavors[flavor]].subtree[ledger.tree.index[tenant]]
        if limited
        else used
    )
    return QuotaStanding(
        tenant=tenant,
        flavor=flavor,
        limited=limited,
        nominal=nominal,
        used=used,
        borrowed=max(0, used - subtree),
        available=available if limited else UNLIMITED,
        potential=potential,
        asked=asked,
    )


def above_quota(ledger: QuotaLedger, tenant: str, flavor: str) -> int:
    """Return what a tenant holds above the most that its quota could ever give it, milli-units.

    More than 0 only after a cut, or where it was moved in the tree: nothing is admitted so far.
    """
    most = ledger.tree.subtree_potential(tenant, flavor)
    return max(0, ledger.used(tenant, flavor) - most)
