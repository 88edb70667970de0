"""What a viewer may read of tenants, members and quotas."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from telemetry.models import Cluster
from tenants import policies
from tenants.models import Membership, Quota, Tenant, TenantQuerySet, Viewer


@dataclass(frozen=True, slots=True)
class TenantRow:
    """A tenant in the order of the tree.

    Attributes:
        tenant: the row.
        depth: 0 for the topmost ones that the viewer sees.
        member_count: people with a role in this very tenant.
    """

    tenant: Tenant
    depth: int
    member_count: int


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """What a tenant owns and uses of one flavor, in thousandths of a device or core.

    Attributes:
        tenant_slug, tenant_name: of the tenant.
        parent_slug: "" for the topmost ones that the viewer sees.
        depth: in the tree, 0 = topmost.
        quota_id: None where it owns nothing of the flavor; `nominal` is 0 then.
        nominal, borrowing_limit, lending_limit: as in `Quota`.
        usage: allocated by its own jobs.
        borrowed: the part of `usage` above `nominal`.
        nominal_below, usage_below: sums over all tenants below it.
    """

    tenant_slug: str
    tenant_name: str
    parent_slug: str
    depth: int
    quota_id: int | None
    nominal: int
    borrowing_limit: int | None
    lending_limit: int | None
    usage: int
    borrowed: int
    nominal_below: int
    usage_below: int


@dataclass(frozen=True, slots=True)
class QuotaTree:
    """One flavor of a cluster: every tenant that the viewer sees, depth first."""

    flavor: str
    rows: tuple[QuotaRow, ...]


def tenant_list(*, viewer: Viewer) -> TenantQuerySet:
    """Return the tenants that the viewer sees, by slug."""
    rows: TenantQuerySet = Tenant.objects.visible_to(viewer).select_related("parent")
    return rows


def tenant_get(*, viewer: Viewer, slug: str) -> Tenant:
    """Return one tenant.

    Raises:
        Tenant.DoesNotExist: there is none, or the viewer may not know of it.
    """
    if "\x00" in slug:
        raise Tenant.DoesNotExist
    tenant: Tenant = tenant_list(viewer=viewer).get(slug=slug)
    return tenant


def tenant_ids_visible(*, viewer: Viewer) -> frozenset[int]:
    """Return the keys of the tenants that the viewer sees."""
    return frozenset(Tenant.objects.visible_to(viewer).values_list("pk", flat=True))


def tenant_tree(*, viewer: Viewer) -> list[TenantRow]:
    """Return the tenants that the viewer sees, depth first, siblings by slug."""
    counted = Tenant.objects.visible_to(viewer).annotate(member_count=Count("memberships"))
    return [
        TenantRow(tenant=tenant, depth=depth, member_count=tenant.member_count)
        for tenant, depth in _depth_first(counted)
    ]


def tenants_submittable(*, viewer: Viewer) -> TenantQuerySet:
    """Return the tenants to which the viewer may submit jobs."""
    rows: TenantQuerySet = Tenant.objects.where_role(viewer, policies.SUBMITTERS)
    return rows


def roles_of(*, viewer: Viewer) -> frozenset[str]:
    """Return the roles that the viewer has in any tenant."""
    if not viewer.is_authenticated:
        return frozenset()
    rows = Membership.objects.filter(user_id=int(viewer.pk))
    return frozenset(rows.values_list("role", flat=True))


def membership_list(*, viewer: Viewer, tenant: Tenant) -> QuerySet[Membership]:
    """Return who has a role in this very tenant; nobody where the viewer does not see it."""
    return (
        Membership.objects.filter(tenant__in=Tenant.objects.visible_to(viewer).filter(pk=tenant.pk))
        .select_related("user", "tenant")
        .order_by("user__username")
    )


def quota_list(
    *, viewer: Viewer, cluster: Cluster | None = None, tenant: Tenant | None = None
) -> QuerySet[Quota]:
    """Return the quotas of the tenants that the viewer sees, of one cluster or tenant if named."""
    wanted = Q(tenant__in=Tenant.objects.visible_to(viewer))
    if cluster is not None:
        wanted &= Q(cluster=cluster)
    if tenant is not None:
        wanted &= Q(tenant=tenant)
    return (
        Quota.objects.filter(wanted)
        .select_related("tenant", "cluster")
        .order_by("cluster__slug", "flavor", "tenant__slug")
    )


def quota_tree(
    *, viewer: Viewer, cluster: Cluster, usage: Mapping[tuple[str, str], int]
) -> list[QuotaTree]:
    """Return, for each flavor that anybody owns or uses, the tenants with what they own and use.

    Args:
        viewer: sees their own tenants and all below those.
        cluster: whose quotas.
        usage: (tenant slug, flavor) -> thousandths allocated now; tenants that the viewer does not
            see are left out.
    """
    ordered = _depth_first(Tenant.objects.visible_to(viewer))
    slugs = {tenant.slug for tenant, _ in ordered}
    quotas = {(q.tenant_id, q.flavor): q for q in quota_list(viewer=viewer, cluster=cluster)}
    flavors = {flavor for _, flavor in quotas} | {
        flavor for (slug, flavor), milli in usage.items() if slug in slugs and milli
    }
    return [
        QuotaTree(
            flavor=flavor,
            rows=_quota_rows(
                ordered,
                {tenant: quota for (tenant, own), quota in quotas.items() if own == flavor},
                {slug: milli for (slug, own), milli in usage.items() if own == flavor},
            ),
        )
        for flavor in sorted(flavors)
    ]


def _quota_rows(
    ordered: list[tuple[Tenant, int]], quotas: Mapping[int, Quota], usage: Mapping[str, int]
) -> tuple[QuotaRow, ...]:
    owned = {t.pk: quotas[t.pk].nominal if t.pk in quotas else 0 for t, _ in ordered}
    used = {t.pk: usage.get(t.slug, 0) for t, _ in ordered}
    slugs = {t.pk: t.slug for t, _ in ordered}
    owned_below, used_below = _sums_below(ordered, owned), _sums_below(ordered, used)
    rows = []
    for tenant, depth in ordered:
        quota = quotas.get(tenant.pk)
        rows.append(
            QuotaRow(
                tenant_slug=tenant.slug,
                tenant_name=tenant.name,
                parent_slug=slugs.get(tenant.parent_id or 0, ""),
                depth=depth,
                quota_id=None if quota is None else quota.pk,
                nominal=owned[tenant.pk],
                borrowing_limit=None if quota is None else quota.borrowing_limit,
                lending_limit=None if quota is None else quota.lending_limit,
                usage=used[tenant.pk],
                borrowed=max(0, used[tenant.pk] - owned[tenant.pk]),
                nominal_below=owned_below[tenant.pk],
                usage_below=used_below[tenant.pk],
            )
        )
    return tuple(rows)


def _sums_below(ordered: list[tuple[Tenant, int]], own: Mapping[int, int]) -> dict[int, int]:
    """Return, for each tenant, the sum over all below it: children stand after their parent."""
    below = dict.fromkeys(own, 0)
    for tenant, _ in reversed(ordered):
        if tenant.parent_id in below:
            below[tenant.parent_id] += own[tenant.pk] + below[tenant.pk]
    return below


def _depth_first(tenants: Iterable[Tenant]) -> list[tuple[Tenant, int]]:
    """Return tenants with their depth, parents before children, siblings by slug."""
    rows = sorted(tenants, key=lambda tenant: tenant.slug)
    keys = {tenant.pk for tenant in rows}
    children: defaultdict[int | None, list[Tenant]] = defaultdict(list)
    for tenant in rows:
        children[tenant.parent_id if tenant.parent_id in keys else None].append(tenant)
    ordered: list[tuple[Tenant, int]] = []
    stack = [(tenant, 0) for tenant in reversed(children[None])]
    while stack:
        tenant, depth = stack.pop()
        ordered.append((tenant, depth))
        stack.extend((child, depth + 1) for child in reversed(children[tenant.pk]))
    return ordered
