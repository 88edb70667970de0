"""How fast classes of jobs run on flavors, said by who runs the portal."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from scheduler import events
from scheduler.models import Throughput
from scheduler.models.throughputs import THROUGHPUT_MOST
from scheduler.services.validation import checked_job_class
from telemetry.models import Cluster
from tenants import policies
from tenants.audit import acting
from tenants.errors import InvalidValueError, NotAllowedError
from tenants.values import checked_flavor, shown

NOTE_LIMIT = 200


def throughput_set(
    *, actor: User, job_class: object, flavor: object, throughput: object, note: object = ""
) -> Throughput:
    """Say how fast a class runs on a flavor, in place of what was said before.

    Args:
        actor: who.
        job_class: of jobs; a kind of jobs stands for those that have no class.
        flavor: one of the catalogue or of the fleet.
        throughput: against the flavor that the class is fastest on, in 0..1, not 0.
        note: where the number comes from.

    Raises:
        NotAllowedError: the actor does not run the portal.
        InvalidValueError: a value can't be taken, or there are too many rows.
    """
    _require_admin(actor)
    key: dict[str, Any] = {
        "job_class": _checked_class(job_class),
        "flavor": checked_flavor(flavor),
    }
    said: dict[str, Any] = {
        "throughput": _checked_throughput(throughput),
        "note": _checked_note(note),
    }
    with transaction.atomic(), acting(actor):
        others = Throughput.objects.exclude(**key).count()
        if others >= THROUGHPUT_MOST:
            raise InvalidValueError.of(
                "job_class",
                _("There are %(most)s rows already; remove some first.")
                % {"most": THROUGHPUT_MOST},
            )
        row, _made = Throughput.objects.update_or_create(defaults=said, **key)
        _wake()
    return row


def throughput_delete(*, actor: User, row: Throughput) -> None:
    """Forget a row; compute units stand in for it where the class has others.

    Raises:
        NotAllowedError: the actor does not run the portal.
        Throughput.DoesNotExist: somebody else was first.
    """
    _require_admin(actor)
    with transaction.atomic(), acting(actor):
        Throughput.objects.select_for_update().get(pk=row.pk).delete()
        _wake()


def _require_admin(actor: User) -> None:
    if not policies.is_platform_admin(actor):
        raise NotAllowedError(_("Only who runs the portal may say how fast jobs run."))


def _wake() -> None:
    for slug in Cluster.objects.filter(enabled=True).values_list("slug", flat=True):
        events.changed(cluster_slug=slug)


def _checked_class(value: object) -> str:
    try:
        found = checked_job_class(value)
    except InvalidValueError as wrong:
        raise InvalidValueError({"job_class": wrong.fields[""]}) from wrong
    if not found:
        raise InvalidValueError.of("job_class", _("Name a class or a kind of jobs."))
    return found


def _checked_throughput(value: object) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and 0 < value <= 1:  # type: ignore[operator]  # a number by then
        return float(value)  # type: ignore[arg-type]
    raise InvalidValueError.of(
        "throughput",
        _("%(value)s is not a throughput: write more than 0 and at most 1, such as 0.45.")
        % {"value": shown(value)},
    )


def _checked_note(value: object) -> str:
    text = value.strip() if isinstance(value, str) else None
    if text is None or len(text) > NOTE_LIMIT or not text.isprintable():
        raise InvalidValueError.of(
            "note",
            _("Write a note of one line, %(most)s characters at most.") % {"most": NOTE_LIMIT},
        )
    return text
