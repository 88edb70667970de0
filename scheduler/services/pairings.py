"""How fast classes of jobs run beside each other on one device, said by who runs the portal."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from scheduler.models import Pairing
from scheduler.models.pairings import PAIRED_CLASSES_MOST
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


def pairing_set(
    *,
    actor: User,
    class_a: object,
    class_b: object,
    throughput_a: object,
    throughput_b: object,
    note: object = "",
) -> Pairing:
    """Say how fast two classes run beside each other, in place of what was said before.

    Args:
        actor: who.
        class_a: interference class of jobs.
        class_b: another, or the same; either order is the same pair.
        throughput_a: of `class_a` beside `class_b`, against having the device alone, in 0..1.
        throughput_b: of `class_b` beside `class_a`.
        note: where the numbers come from.

    Raises:
        NotAllowedError: the actor does not run the portal.
        InvalidValueError: a value can't be taken, or there are too many classes.
    """
    require_admin(actor)
    sides = sorted(
        [
            (
                checked_class("class_a", class_a),
                checked_fraction("throughput_a", throughput_a, zero=True),
            ),
            (
                checked_class("class_b", class_b),
                checked_fraction("throughput_b", throughput_b, zero=True),
            ),
        ]
    )
    (first, of_first), (second, of_second) = sides
    if first == second and of_first != of_second:
        raise InvalidValueError.of(
            "throughput_b", _("Two of one class run equally fast; give the same number twice.")
        )
    said = {"throughput_a": of_first, "throughput_b": of_second, "note": checked_note(note)}
    with transaction.atomic(), acting(actor):
        _check_count((first, second))
        row, _made = Pairing.objects.update_or_create(defaults=said, class_a=first, class_b=second)
        wake()
    return row


def pairing_delete(*, actor: User, row: Pairing) -> None:
    """Forget a row; the two may share a device then.

    Raises:
        NotAllowedError: the actor does not run the portal.
        Pairing.DoesNotExist: somebody else was first.
    """
    forget(actor=actor, rows=Pairing.objects.filter(pk=row.pk))


def _check_count(more: Iterable[str]) -> None:
    rows = Pairing.objects.values_list("class_a", "class_b")
    if len({name for pair in rows for name in pair}.union(more)) > PAIRED_CLASSES_MOST:
        raise InvalidValueError.of(
            "class_a",
            _("There are %(most)s classes already; remove some first.")
            % {"most": PAIRED_CLASSES_MOST},
        )
