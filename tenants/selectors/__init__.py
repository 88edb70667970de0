"""Reads: who is where and owns what, as far as the viewer may see; people; and who changed what."""

from tenants.selectors.audit import Names, audit_list, names_of
from tenants.selectors.people import person_get, person_list, token_list
from tenants.selectors.tree import (
    QuotaRow,
    QuotaTree,
    TenantRow,
    membership_list,
    quota_list,
    quota_tree,
    roles_of,
    tenant_get,
    tenant_ids_visible,
    tenant_list,
    tenant_tree,
    tenants_submittable,
)

__all__ = [
    "Names",
    "QuotaRow",
    "QuotaTree",
    "TenantRow",
    "audit_list",
    "membership_list",
    "names_of",
    "person_get",
    "person_list",
    "quota_list",
    "quota_tree",
    "roles_of",
    "tenant_get",
    "tenant_ids_visible",
    "tenant_list",
    "tenant_tree",
    "tenants_submittable",
    "token_list",
]
