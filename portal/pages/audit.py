"""Who changed tenants, members, quotas and policies, when, from what to what."""

from typing import Any

from auditlog.models import LogEntry
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from portal.flavor_names import flavor_label
from portal.pages.amounts import devices_text
from portal.pages.audit_words import FIELDS, KINDS, VALUES, spoken
from portal.pages.signed_in import SignedInRequest, require_platform_admin
from portal.pages.weight_words import weights_text
from tenants.selectors import Names, audit_list, names_of

ROWS_A_PAGE = 50
VERBS = {
    LogEntry.Action.CREATE: gettext_lazy("made"),
    LogEntry.Action.UPDATE: gettext_lazy("changed"),
    LogEntry.Action.DELETE: gettext_lazy("deleted"),
    LogEntry.Action.ACCESS: gettext_lazy("looked at"),
}

UNSAID = frozenset({"id", "created_at"})
NOTHING = frozenset({"", "None", "{}"})
AMOUNTS = frozenset({"nominal", "borrowing_limit", "lending_limit"})
"""Fields in thousandths of a device or core."""


@require_safe
def audit(request: SignedInRequest) -> HttpResponse:
    """Show audit rows, newest first."""
    require_platform_admin(request)
    text = request.GET.get("q", "")
    pages = Paginator(audit_list(viewer=request.user, text=text), ROWS_A_PAGE)
    page = pages.get_page(request.GET.get("page"))
    names = names_of(page)
    context = {"page": page, "rows": [_row(entry, names) for entry in page], "q": text}
    return render(request, "pages/audit.html", context)


def _row(entry: LogEntry, names: Names) -> dict[str, Any]:
    kind = entry.content_type.model if entry.content_type else ""
    return {
        "at": entry.timestamp,
        "actor": entry.actor.get_username() if entry.actor else _("Kilter"),
        "verb": VERBS.get(entry.action, ""),
        "kind": spoken(KINDS, kind),
        "name": _name(kind, entry.object_repr),
        "changes": changes_of(entry.changes or {}, names),
    }


def _name(kind: str, text: str) -> str:
    """Return what an object is called; the amount in a quota's name is a change, not a name."""
    return text.rpartition(" ")[0] or text if kind == "quota" else text


def changes_of(changes: dict[str, Any], names: Names) -> list[tuple[str, str, str]]:
    """Return (field, before, after) of an audit row; "" = it had no value.

    Keys, the far ends of relations and moments of making say nothing to people and are left out.
    """
    return [
        (spoken(FIELDS, field), _value(field, pair[0], names), _value(field, pair[1], names))
        for field, pair in changes.items()
        if isinstance(pair, (list, tuple))
        and len(pair) == 2  # noqa: PLR2004 - before, after
        and field not in UNSAID
        and not str(pair[1]).endswith(".None")
    ]


def _value(field: str, value: object, names: Names) -> str:
    text = "" if value is None else str(value)
    if text in NOTHING:
        return ""
    if field in AMOUNTS and text.isdecimal():
        return devices_text(int(text))
    if field == "flavor":
        return flavor_label(text)
    if field == "weights":
        return weights_text(text)
    return names.get(field, {}).get(text) or spoken(VALUES, text)
