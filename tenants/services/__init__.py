"""Every change to tenants, members, quotas, people and their tokens."""

from tenants.services.people import person_create
from tenants.services.tokens import LONGEST_DAYS, token_create, token_revoke
from tenants.services.tree import (
    membership_remove,
    membership_set,
    quota_delete,
    quota_set,
    tenant_create,
    tenant_delete,
    tenant_move,
    tenant_update,
)

__all__ = [
    "LONGEST_DAYS",
    "membership_remove",
    "membership_set",
    "person_create",
    "quota_delete",
    "quota_set",
    "tenant_create",
    "tenant_delete",
    "tenant_move",
    "tenant_update",
    "token_create",
    "token_revoke",
]
