"""What rows have in common that who runs the portal gives: who may, and what a value may be."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from scheduler import events
from scheduler.services.texts import checked_job_class
from telemetry.models import Cluster
from tenants import policies
from tenants.audit import acting
from tenants.errors import InvalidValueError, NotAllowedError
from tenants.values import shown

NOTE_LIMIT = 200


def require_admin(actor: User) -> None:
    """Refuse whoever does not run the portal.

    Raises:
        NotAllowedError: the actor does not.
    """
    if not policies.is_platform_admin(actor):
        raise NotAllowedError(_("Only who runs the portal may say how fast jobs run."))


def wake() -> None:
    """Have every cluster decide anew, as what was said is of all of them."""
    for slug in Cluster.objects.filter(enabled=True).values_list("slug", flat=True):
        events.changed(cluster_slug=slug)


def forget(*, actor: User, rows: QuerySet[Any]) -> None:
    """Delete the one row of `rows`.

    Raises:
        NotAllowedError: the actor does not run the portal.
        ObjectDoesNotExist: somebody else was first.
    """
    require_admin(actor)
    with transaction.atomic(), acting(actor):
        rows.select_for_update().get().delete()
        wake()


def checked_class(name: str, value: object) -> str:
    """Return the class that a field names.

    Raises:
        InvalidValueError: it names none, or is no text that could.
    """
    try:
        found = checked_job_class(value)
    except InvalidValueError as wrong:
        raise InvalidValueError({name: wrong.fields[""]}) from wrong
    if not found:
        raise InvalidValueError.of(name, _("Name a class or a kind of jobs."))
    return found


def checked_fraction(name: str, value: object, *, zero: bool = False) -> float:
    """Return a throughput in 0..1.

    Raises:
        InvalidValueError: it is none, or 0 where `zero` is not allowed.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and 0 <= value <= 1 and (zero or value > 0):  # type: ignore[operator]
        return float(value)  # type: ignore[arg-type]  # a number by then
    if zero:
        text = _("%(value)s is not a throughput: write 0 to 1, such as 0.45.")
    else:
        text = _("%(value)s is not a throughput: write more than 0 and at most 1, such as 0.45.")
    raise InvalidValueError.of(name, text % {"value": shown(value)})


def checked_note(value: object) -> str:
    """Return a note of one line.

    Raises:
        InvalidValueError: it is none.
    """
    text = value.strip() if isinstance(value, str) else None
    if text is None or len(text) > NOTE_LIMIT or not text.isprintable():
        raise InvalidValueError.of(
            "note",
            _("Write a note of one line, %(most)s characters at most.") % {"most": NOTE_LIMIT},
        )
    return text
