"""How fast classes of jobs run on flavors, said by who runs the portal."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from scheduler.models import Throughput
from scheduler.models.throughputs import THROUGHPUT_MOST
from scheduler.services.given import (
    checked_class,
    checked_fraction,
    checked_note,
    forget,
    require_admin,
    wake,
)
from tenants.audit import acting
from tenants.errors import InvalidValueError
from tenants.values import checked_flavor


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
    require_admin(actor)
    key: dict[str, Any] = {
        "job_class": checked_class("job_class", job_class),
        "flavor": checked_flavor(flavor),
    }
    said: dict[str, Any] = {
        "throughput": checked_fraction("throughput", throughput),
        "note": checked_note(note),
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
        wake()
    return row


def throughput_delete(*, actor: User, row: Throughput) -> None:
    """Forget a row; compute units stand in for it where the class has others.

    Raises:
        NotAllowedError: the actor does not run the portal.
        Throughput.DoesNotExist: somebody else was first.
    """
    forget(actor=actor, rows=Throughput.objects.filter(pk=row.pk))
