"""Who may have what: the tree of tenants, who is in them, and what they own."""

from typing import cast

from auditlog.registry import auditlog
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _
from tree_queries.models import TreeNode
from tree_queries.query import TreeQuerySet

from telemetry.models import Cluster
from tenants.choices import Role

Viewer = AbstractBaseUser | AnonymousUser
"""Whoever looks, signed in or not."""


class TenantQuerySet(TreeQuerySet["Tenant"]):
    """Tenants, scoped by who looks."""

    def visible_to(self, viewer: "Viewer") -> "TenantQuerySet":
        """Return the tenants that the viewer is in, and all below them; all for an admin."""
        return self.where_role(viewer, tuple(Role))

    def where_role(self, viewer: "Viewer", roles: tuple[Role, ...]) -> "TenantQuerySet":
        """Return the tenants in which the viewer has one of the roles, inherited downwards."""
        if not viewer.is_authenticated or not viewer.is_active:
            return cast("TenantQuerySet", self.none())
        if getattr(viewer, "is_superuser", False):
            return self
        return cast("TenantQuerySet", self.filter(pk__in=_ids_below(viewer.pk, roles)))


def _ids_below(user_id: int, roles: tuple[Role, ...]) -> list[int]:
    rows = Tenant.objects.raw(
        """
        WITH RECURSIVE mine(id) AS (
            SELECT tenant_id FROM tenants_membership WHERE user_id = %s AND role = ANY(%s)
            UNION
            SELECT child.id FROM tenants_tenant child JOIN mine ON child.parent_id = mine.id
        )
        SELECT id FROM mine
        """,
        [user_id, [str(role) for role in roles]],
    )
    return [row.pk for row in rows]


class Tenant(TreeNode):
    """A team; tenants form a tree."""

    slug = models.SlugField(_("slug"), unique=True, max_length=63)
    name = models.CharField(_("name"), max_length=200)
    fair_weight = models.FloatField(
        _("fair weight"),
        default=1.0,
        help_text=_("Weight in the division of what nobody else claims; 0 gets none of it."),
    )
    queue_priority = models.PositiveSmallIntegerField(
        _("queue priority"),
        default=0,
        db_default=0,
        help_text=_(
            "Among its siblings, who has a higher one is served first of what nobody else claims."
        ),
    )
    preemption_fence = models.BooleanField(
        _("preemption fence"),
        default=False,
        db_default=False,
        help_text=_("Jobs below evict nobody outside."),
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = TenantQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(condition=Q(fair_weight__gte=0), name="tenant_weight_gte_0"),
            models.CheckConstraint(condition=~Q(parent=F("id")), name="tenant_not_own_parent"),
        ]

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """A person's role in a tenant; it holds in all tenants below too."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(_("role"), max_length=20, choices=Role)

    class Meta:
        ordering = ["tenant_id", "user_id"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="membership_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.user} {self.role} {self.tenant}"


class Quota(models.Model):
    """What a tenant owns of a flavor in a cluster: milli-devices, or milli-cores of `cpu`.

    Source of the three amounts' meaning: Kueue, ClusterQueue resource quotas.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="quotas")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="quotas")
    flavor = models.CharField(_("flavor"), max_length=80)
    nominal = models.BigIntegerField(
        _("nominal"), help_text=_("Owned, in thousandths of a device or core.")
    )
    borrowing_limit = models.BigIntegerField(
        _("borrowing limit"),
        null=True,
        blank=True,
        help_text=_("Most above nominal, in thousandths; empty = no limit."),
    )
    lending_limit = models.BigIntegerField(
        _("lending limit"),
        null=True,
        blank=True,
        help_text=_("Most that others may use of it, in thousandths; empty = all."),
    )

    class Meta:
        ordering = ["cluster_id", "flavor", "tenant_id"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "cluster", "flavor"], name="quota_unique"),
            models.CheckConstraint(condition=Q(nominal__gte=0), name="quota_nominal_gte_0"),
            models.CheckConstraint(
                condition=Q(borrowing_limit__isnull=True) | Q(borrowing_limit__gte=0),
                name="quota_borrowing_limit_gte_0",
            ),
            models.CheckConstraint(
                condition=Q(lending_limit__isnull=True) | Q(lending_limit__gte=0),
                name="quota_lending_limit_gte_0",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant} {self.flavor} {self.nominal}"


for _model in (Tenant, Membership, Quota):
    auditlog.register(_model)
