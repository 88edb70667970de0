"""News of tenants; see `telemetry.events` for how it travels."""

from dataclasses import dataclass

from telemetry.events import Topic


@dataclass(frozen=True, slots=True)
class QuotaChanged:
    """What some tenant owns of a cluster is no longer the same."""

    cluster_id: int
    cluster_slug: str


@dataclass(frozen=True, slots=True)
class TenantChanged:
    """A tenant was made, changed, moved or deleted; weights and the tree may differ."""

    tenant_slug: str


@dataclass(frozen=True, slots=True)
class MembershipChanged:
    """What a person may see or do has changed; open connections of theirs are to be checked."""

    user_id: int
    tenant_slug: str


quota_changed: Topic[QuotaChanged] = Topic()
tenant_changed: Topic[TenantChanged] = Topic()
membership_changed: Topic[MembershipChanged] = Topic()
