"""Who changed what: the audit rows that services leave, for those who run the portal."""

from auditlog.models import LogEntry
from django.db.models import Q, QuerySet

from tenants import policies
from tenants.models import Viewer

TEXT_LIMIT = 200


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
