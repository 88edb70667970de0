"""Who changed tenants, members, quotas and policies, when, from what to what."""

from typing import Any

from auditlog.models import LogEntry
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from portal.accounts.audit import audit_list
from portal.pages.audit_words import FIELDS, KINDS, spoken
from portal.pages.signed_in import SignedInRequest, require_platform_admin

ROWS_A_PAGE = 50
VERBS = {
    LogEntry.Action.CREATE: gettext_lazy("made"),
    LogEntry.Action.UPDATE: gettext_lazy("changed"),
    LogEntry.Action.DELETE: gettext_lazy("deleted"),
    LogEntry.Action.ACCESS: gettext_lazy("looked at"),
}


@require_safe
def audit(request: SignedInRequest) -> HttpResponse:
    """Show audit rows, newest first."""
    require_platform_admin(request)
    text = request.GET.get("q", "")
    pages = Paginator(audit_list(viewer=request.user, text=text), ROWS_A_PAGE)
    page = pages.get_page(request.GET.get("page"))
    context = {"page": page, "rows": [_row(entry) for entry in page], "q": text}
    return render(request, "pages/audit.html", context)


def _row(entry: LogEntry) -> dict[str, Any]:
    return {
        "at": entry.timestamp,
        "actor": entry.actor.get_username() if entry.actor else _("Kilter"),
        "verb": VERBS.get(entry.action, ""),
        "kind": spoken(KINDS, entry.content_type.model) if entry.content_type else "",
        "name": entry.object_repr,
        "changes": changes_of(entry.changes or {}),
    }


def changes_of(changes: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return (field, before, after) of an audit row; "" = it had no value.

    Keys and the far ends of relations say nothing to people and are left out.
    """
    return [
        (spoken(FIELDS, field), _value(pair[0]), _value(pair[1]))
        for field, pair in changes.items()
        if isinstance(pair, (list, tuple))
        and len(pair) == 2  # noqa: PLR2004 - before, after
        and field != "id"
        and not str(pair[1]).endswith(".None")
    ]


def _value(value: object) -> str:
    return "" if value is None or value == "None" else str(value)
