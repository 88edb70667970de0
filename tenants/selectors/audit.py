"""Who changed what: the audit rows that services leave, for those who run the portal."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from auditlog.models import LogEntry
from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet

from telemetry.models import Cluster
from tenants import policies
from tenants.models import Tenant, Viewer

TEXT_LIMIT = 200

Names: TypeAlias = Mapping[str, Mapping[str, str]]
RELATIONS: dict[str, Any] = {
    "tenant": Tenant,
    "parent": Tenant,
    "user": get_user_model(),
    "cluster": Cluster,
}


def audit_list(*, viewer: Viewer, text: str = "") -> QuerySet[LogEntry]:
    """Return audit rows, newest first; none for anybody who does not run the portal.

    Args:
        viewer: who looks.
        text: part of the actor's name or of the object's; "" = all.
    """
    rows: QuerySet[LogEntry] = LogEntry.objects.none()
    if policies.is_platform_admin(viewer):
        rows = LogEntry.objects.select_related("actor", "content_type").order_by(
            "-timestamp", "-pk"
        )
    wanted = text.replace("\x00", "")[:TEXT_LIMIT]
    if wanted:
        rows = rows.filter(Q(actor__username__icontains=wanted) | Q(object_repr__icontains=wanted))
    return rows


def names_of(entries: Iterable[LogEntry]) -> Names:
    """Return field -> key -> name of every tenant, person and cluster that the rows refer to."""
    found: dict[str, set[int]] = {field: set() for field in RELATIONS}
    for entry in entries:
        for field, pair in (entry.changes or {}).items():
            if field in found and isinstance(pair, (list, tuple)):
                found[field] |= {int(key) for key in pair if str(key).isdecimal()}
    return {
        field: {str(row.pk): str(row) for row in RELATIONS[field].objects.filter(pk__in=keys)}
        for field, keys in found.items()
        if keys
    }
