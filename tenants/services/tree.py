"""What people do with tenants, members and quotas.

Every function checks the policy, changes, leaves audit rows with the actor's name, and tells the
news on commit; all in one transaction. The row of the tenant is locked first, so that two changes
of the same tenant come one after the other.
"""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError
from django.utils.translation import gettext as _

from telemetry.models import Cluster
from tenants import events, policies, values
from tenants.audit import acting
from tenants.choices import Role
from tenants.errors import ConflictError, InvalidValueError, NotAllowedError
from tenants.models import Membership, Quota, Tenant


def tenant_create(
    *,
    actor: User,
    slug: str,
    name: str,
    parent: Tenant | None = None,
    fair_weight: float = 1.0,
) -> Tenant:
    """Make a tenant.

    Raises:
        NotAllowedError: the actor is not an admin of the parent, or of the platform for a root.
        InvalidValueError: a value can't be taken, or the slug is in use.
    """
    with transaction.atomic(), acting(actor):
        _require(policies.may_create_tenant(actor, parent), _("You may not create a tenant here."))
        tenant = Tenant(
            slug=values.checked_slug(slug),
            name=values.checked_name(name),
            fair_weight=values.checked_weight(fair_weight),
            parent=None if parent is None else _locked(parent),
        )
        try:
            with transaction.atomic():
                tenant.save(force_insert=True)
        except IntegrityError as exc:
            raise InvalidValueError.of(
                "slug",
                _("%(value)s is in use; choose another short name.")
                % {"value": values.shown(slug)},
            ) from exc
        events.tenant_changed.publish(events.TenantChanged(tenant.slug))
    return tenant


def tenant_update(
    *,
    actor: User,
    tenant: Tenant,
    name: str | None = None,
    fair_weight: float | None = None,
    queue_priority: int | None = None,
    preemption_fence: bool | None = None,
) -> Tenant:
    """Rename, weigh or fence a tenant; None leaves a value as it is.

    Raises:
        NotAllowedError: not an admin of the tenant, or, but for the name, of a tenant above it.
        InvalidValueError: a value can't be taken.
    """
    with transaction.atomic(), acting(actor):
        _require(policies.may_manage_tenant(actor, tenant), _("You may not change this tenant."))
        locked = _locked(tenant)
        if name is not None:
            locked.name = values.checked_name(name)
        if fair_weight is not None and fair_weight != locked.fair_weight:
            _require(policies.may_manage_parent(actor, locked), _("You may not change its weight."))
            locked.fair_weight = values.checked_weight(fair_weight)
            _tell_quotas(_clusters_with_quotas())
        if queue_priority is not None and queue_priority != locked.queue_priority:
            may = policies.may_manage_parent(actor, locked)
            _require(may, _("You may not change its priority."))
            locked.queue_priority = values.checked_queue_priority(queue_priority)
            _tell_quotas(_clusters_with_quotas())
        if preemption_fence is not None and preemption_fence != locked.preemption_fence:
            _require(policies.may_manage_parent(actor, locked), _("You may not change its fence."))
            locked.preemption_fence = values.checked_fence(preemption_fence)
            _tell_quotas(_clusters_with_quotas())
        names = ["name", "fair_weight", "queue_priority", "preemption_fence"]
        locked.save(update_fields=names)
        events.tenant_changed.publish(events.TenantChanged(locked.slug))
    return locked


def tenant_move(*, actor: User, tenant: Tenant, parent: Tenant | None) -> Tenant:
    """Hang a tenant, with all below it, under another one, or at the top of the tree.

    Raises:
        NotAllowedError: not an admin of both its old and its new parent.
        InvalidValueError: the new parent is the tenant itself or lies below it.
    """
    with transaction.atomic(), acting(actor):
        rows = {row.pk: row for row in Tenant.objects.select_for_update().order_by("pk")}
        locked = _found(rows, tenant)
        target = None if parent is None else _found(rows, parent)
        _require(policies.may_manage_parent(actor, locked), _("You may not move this tenant."))
        _require(policies.may_create_tenant(actor, target), _("You may not move a tenant there."))
        if target is not None and locked.pk in _path(rows, target):
            raise InvalidValueError.of(
                "parent",
                _("%(parent)s lies below %(tenant)s; choose a tenant that does not.")
                % {"parent": target.slug, "tenant": locked.slug},
            )
        locked.parent = target
        locked.save(update_fields=["parent"])
        events.tenant_changed.publish(events.TenantChanged(locked.slug))
        _tell_quotas(_clusters_with_quotas())
    return locked


def tenant_delete(*, actor: User, tenant: Tenant) -> None:
    """Delete a tenant that has no tenants below it and never had a job; quotas go with it.

    Raises:
        NotAllowedError: not an admin of a tenant above it.
        ConflictError: there are tenants below it, or jobs.
    """
    with transaction.atomic(), acting(actor):
        _require(policies.may_manage_parent(actor, tenant), _("You may not delete this tenant."))
        locked = _locked(tenant)
        if Tenant.objects.filter(parent=locked).exists():
            raise ConflictError(
                _("%(tenant)s has tenants below it; move or delete them first.")
                % {"tenant": locked.slug}
            )
        clusters = list(Cluster.objects.filter(quotas__tenant=locked).distinct())
        try:
            with transaction.atomic():
                locked.delete()
        except ProtectedError as exc:
            raise ConflictError(
                _("%(tenant)s has jobs, and what they used stays booked; it can't be deleted.")
                % {"tenant": locked.slug}
            ) from exc
        events.tenant_changed.publish(events.TenantChanged(tenant.slug))
        _tell_quotas(clusters)


def membership_set(*, actor: User, tenant: Tenant, user: User, role: Role | str) -> Membership:
    """Give a person a role in a tenant, in place of the one they have there.

    Raises:
        NotAllowedError: the actor is no lead or admin; or a lead, and an admin's role is at stake.
        InvalidValueError: there is no such role.
    """
    with transaction.atomic(), acting(actor):
        _require(policies.may_manage_members(actor, tenant), _("You may not change members here."))
        wanted = values.checked_role(role)
        locked = _locked(tenant)
        row = Membership.objects.filter(tenant=locked, user=user).first()
        if Role.ADMIN in {wanted, None if row is None else row.role}:
            _require(
                policies.may_manage_admins(actor, locked), _("You may not make or change admins.")
            )
        if row is None:
            row = Membership.objects.create(tenant=locked, user=user, role=wanted)
        elif row.role != wanted:
            row.role = wanted
            row.save(update_fields=["role"])
        events.membership_changed.publish(events.MembershipChanged(user.pk, locked.slug))
    return row


def membership_remove(*, actor: User, tenant: Tenant, user: User) -> None:
    """Take a person's role in a tenant away; roles in tenants above it stay.

    Raises:
        NotAllowedError: as for `membership_set`.
        Membership.DoesNotExist: the person has none.
    """
    with transaction.atomic(), acting(actor):
        _require(policies.may_manage_members(actor, tenant), _("You may not change members here."))
        locked = _locked(tenant)
        row = Membership.objects.get(tenant=locked, user=user)
        if row.role == Role.ADMIN:
            _require(policies.may_manage_admins(actor, locked), _("You may not remove admins."))
        row.delete()
        events.membership_changed.publish(events.MembershipChanged(user.pk, locked.slug))


def quota_set(
    *,
    actor: User,
    tenant: Tenant,
    cluster: Cluster,
    flavor: str,
    nominal: int,
    borrowing_limit: int | None = None,
    lending_limit: int | None = None,
) -> Quota:
    """Say what a tenant owns of a flavor in a cluster, in place of what was said before.

    Raises:
        NotAllowedError: not an admin of a tenant above it.
        InvalidValueError: an amount or the flavor can't be taken.
    """
    with transaction.atomic(), acting(actor):
        _require(
            policies.may_set_quota(actor, tenant), _("You may not change what this tenant owns.")
        )
        amounts = values.checked_amounts(nominal, borrowing_limit, lending_limit)
        known = values.checked_flavor(flavor)
        locked = _locked(tenant)
        row = Quota.objects.filter(tenant=locked, cluster=cluster, flavor=known).first()
        if row is None:
            row = Quota.objects.create(tenant=locked, cluster=cluster, flavor=known, **amounts)
        else:
            for name, value in amounts.items():
                setattr(row, name, value)
            row.save(update_fields=list(amounts))
        _tell_quotas([cluster])
    return row


def quota_delete(*, actor: User, quota: Quota) -> None:
    """Take from a tenant what it owns of a flavor; it may still borrow.

    Raises:
        NotAllowedError: not an admin of a tenant above it.
        Quota.DoesNotExist: somebody else was first.
    """
    with transaction.atomic(), acting(actor):
        _require(
            policies.may_set_quota(actor, quota.tenant),
            _("You may not change what this tenant owns."),
        )
        _locked(quota.tenant)
        row = Quota.objects.select_related("cluster").get(pk=quota.pk)
        row.delete()
        _tell_quotas([row.cluster])


def _require(allowed: bool, refusal: str) -> None:
    if not allowed:
        raise NotAllowedError(refusal)


def _locked(tenant: Tenant) -> Tenant:
    row: Tenant = Tenant.objects.select_for_update().get(pk=tenant.pk)
    return row


def _found(rows: dict[int, Tenant], tenant: Tenant) -> Tenant:
    if tenant.pk not in rows:
        raise Tenant.DoesNotExist
    return rows[tenant.pk]


def _path(rows: dict[int, Tenant], tenant: Tenant) -> set[int]:
    """Return the ids from the tenant up to its root."""
    path: set[int] = set()
    step: int | None = tenant.pk
    while step is not None and step not in path:
        path.add(step)
        step = rows[step].parent_id
    return path


def _clusters_with_quotas() -> list[Cluster]:
    """Return where a change of the tree or of a weight changes what tenants may take."""
    return list(Cluster.objects.filter(quotas__isnull=False).distinct())


def _tell_quotas(clusters: Iterable[Cluster]) -> None:
    for cluster in clusters:
        events.quota_changed.publish(events.QuotaChanged(cluster.pk, cluster.slug))
