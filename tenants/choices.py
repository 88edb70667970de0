"""Roles, with their labels in one place."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Role(TextChoices):
    """What a person may do in a tenant and all tenants below it; see `tenants.policies`."""

    ADMIN = "admin", _("admin")
    LEAD = "lead", _("lead")
    MEMBER = "member", _("member")
    VIEWER = "viewer", _("viewer")
