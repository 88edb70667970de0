"""May this person do this: the one place that says so.

| may                                 | superuser | admin | lead  | member | viewer |
|-------------------------------------|-----------|-------|-------|--------|--------|
| see the tenant and all below it     | yes       | yes   | yes   | yes    | yes    |
| submit jobs                         | yes       | yes   | yes   | yes    |        |
| cancel one's own jobs               | yes       | yes   | yes   | yes    | yes    |
| cancel the jobs of others           | yes       | yes   | yes   |        |        |
| set and remove members              | yes       | yes   | yes ¹ |        |        |
| rename; create tenants below        | yes       | yes   |       |        |        |
| quota, weight, place in the tree    | yes       | yes ² |       |        |        |
| operate nodes, change clusters      | yes       |       |       |        |        |

¹ A lead neither makes, changes nor removes an admin.
² Of a strict ancestor only: nobody raises what their own tenant gets.

A role in a tenant holds in all tenants below it. Somebody who is not active may do nothing.
"""

from tenants.choices import Role
from tenants.models import Tenant, TenantQuerySet, Viewer

SUBMITTERS = (Role.ADMIN, Role.LEAD, Role.MEMBER)
LEADERS = (Role.ADMIN, Role.LEAD)
ADMINS = (Role.ADMIN,)


def is_platform_admin(viewer: Viewer) -> bool:
    """Return whether the viewer runs the whole portal."""
    return viewer.is_authenticated and viewer.is_active and _is_superuser(viewer)


def may_see_tenant(viewer: Viewer, tenant: Tenant) -> bool:
    """Return whether the viewer has any role in the tenant or above it."""
    return _has_role(viewer, tenant.pk, tuple(Role))


def may_submit(viewer: Viewer, tenant: Tenant) -> bool:
    """Return whether the viewer may submit jobs to the tenant."""
    return _has_role(viewer, tenant.pk, SUBMITTERS)


def may_cancel(viewer: Viewer, tenant: Tenant, owner_id: int) -> bool:
    """Return whether the viewer may cancel a job of the tenant that `owner_id` submitted."""
    if viewer.is_authenticated and viewer.is_active and viewer.pk == owner_id:
        return True
    return _has_role(viewer, tenant.pk, LEADERS)


def may_manage_tenant(viewer: Viewer, tenant: Tenant) -> bool:
    """Return whether the viewer may rename the tenant and manage all tenants below it."""
    return _has_role(viewer, tenant.pk, ADMINS)


def may_manage_parent(viewer: Viewer, tenant: Tenant) -> bool:
    """Return whether the viewer may weigh, move or delete the tenant: an admin above it."""
    if tenant.parent_id is None:
        return is_platform_admin(viewer)
    return _has_role(viewer, tenant.parent_id, ADMINS)


def may_set_quota(viewer: Viewer, tenant: Tenant) -> bool:
    """Return whether the viewer may say what the tenant owns: an admin above it."""
    return bool(quota_tenants(viewer).filter(pk=tenant.pk).exists())


def quota_tenants(viewer: Viewer) -> TenantQuerySet:
    """Return the tenants of which the viewer may say what they own."""
    managed: TenantQuerySet = Tenant.objects.where_role(viewer, ADMINS)
    if is_platform_admin(viewer):
        return managed
    below: TenantQuerySet = Tenant.objects.filter(parent__in=managed)
    return below


def may_create_tenant(viewer: Viewer, parent: Tenant | None) -> bool:
    """Return whether the viewer may make a tenant below `parent`, or at the top of the tree."""
    return is_platform_admin(viewer) if parent is None else may_manage_tenant(viewer, parent)


def may_manage_members(viewer: Viewer, tenant: Tenant) -> bool:
    """Return whether the viewer may set and remove members other than admins."""
    return _has_role(viewer, tenant.pk, LEADERS)


def may_manage_admins(viewer: Viewer, tenant: Tenant) -> bool:
    """Return whether the viewer may also make and remove admins of the tenant."""
    return may_manage_tenant(viewer, tenant)


def may_operate_nodes(viewer: Viewer) -> bool:
    """Return whether the viewer may cordon, drain and open nodes."""
    return is_platform_admin(viewer)


def _is_superuser(viewer: Viewer) -> bool:
    return bool(getattr(viewer, "is_superuser", False))


def _has_role(viewer: Viewer, tenant_id: int, roles: tuple[Role, ...]) -> bool:
    return bool(Tenant.objects.where_role(viewer, roles).filter(pk=tenant_id).exists())
