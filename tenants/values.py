"""What tenants and quotas take: checked values or a refusal that names value and remedy."""

import re
import unicodedata
from typing import Final

from django.utils.translation import gettext as _

from telemetry.flavors import BY_SLUG
from telemetry.models import Device
from tenants.choices import Role
from tenants.errors import InvalidValueError

NAME_LIMIT: Final = 200
SHOWN_LIMIT: Final = 60
PRIORITY_MOST = 1000
WEIGHT_MOST: Final = 1_000_000.0
MILLI_MOST: Final = 1_000_000_000
"""A million devices or cores; sums over any tree of tenants stay within 64 bits."""

_SLUG: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def checked_slug(value: object) -> str:
    """Return a slug that fits an address, a channel group and a Kubernetes name."""
    if not isinstance(value, str) or not _SLUG.fullmatch(value):
        raise InvalidValueError.of(
            "slug",
            _("%(value)s is not a short name: write 1 to 63 of a-z, 0-9 and -, such as team-a.")
            % {"value": shown(value)},
        )
    return value


def checked_name(value: object) -> str:
    """Return a name without blanks around it, and without control characters."""
    text = value.strip() if isinstance(value, str) else ""
    if not text or len(text) > NAME_LIMIT:
        raise InvalidValueError.of(
            "name", _("Write a name of 1 to %(most)s characters.") % {"most": NAME_LIMIT}
        )
    if any(unicodedata.category(c) in _HIDDEN for c in text):
        raise InvalidValueError.of(
            "name", _("The name holds characters that can't be seen; type it anew.")
        )
    return text


def checked_fence(value: object) -> bool:
    """Return whether jobs of a tenant are to evict nobody outside it."""
    if not isinstance(value, bool):
        raise InvalidValueError.of("preemption_fence", _("Write true or false."))
    return value


def checked_weight(value: object) -> float:
    """Return a finite weight from 0 to a million."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 <= value <= WEIGHT_MOST
    ):
        raise InvalidValueError.of(
            "fair_weight",
            _("%(value)s is not a weight: write a number from 0 to 1000000, such as 1.5.")
            % {"value": shown(value)},
        )
    return float(value)


def checked_queue_priority(value: object) -> int:
    """Return an integer from 0 to a thousand."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= PRIORITY_MOST:
        raise InvalidValueError.of(
            "queue_priority",
            _("%(value)s is not a priority: write an integer from 0 to %(most)s.")
            % {"value": shown(value), "most": PRIORITY_MOST},
        )
    return value


def checked_role(value: object) -> Role:
    """Return the role of that name."""
    if not isinstance(value, str) or value not in Role.values:
        raise InvalidValueError.of(
            "role",
            _("%(value)s is not a role; choose one of %(roles)s.")
            % {"value": shown(value), "roles": ", ".join(Role.values)},
        )
    return Role(value)


def checked_amounts(
    nominal: object, borrowing_limit: object, lending_limit: object
) -> dict[str, int | None]:
    """Return the three amounts of a quota by name, in thousandths; None = no limit.

    Source:
        Kueue requires lendingLimit <= nominalQuota, or a tenant could lend what it has not.
    """
    amounts = {
        "nominal": nominal,
        "borrowing_limit": borrowing_limit,
        "lending_limit": lending_limit,
    }
    wrong = {
        name: [
            _("%(value)s is not an amount: write an integer of thousandths, 0 to %(most)s.")
            % {"value": shown(value), "most": MILLI_MOST}
        ]
        for name, value in amounts.items()
        if not _is_milli(value) and (value is not None or name == "nominal")
    }
    if wrong:
        raise InvalidValueError(wrong)
    taken = {name: value if isinstance(value, int) else None for name, value in amounts.items()}
    lending, owned = taken["lending_limit"], taken["nominal"] or 0
    if lending is not None and lending > owned:
        raise InvalidValueError.of(
            "lending_limit",
            _("A tenant can't lend %(lending)s of the %(owned)s that it owns; write at most that.")
            % {"lending": lending, "owned": owned},
        )
    return taken


def checked_flavor(value: object) -> str:
    """Return a flavor of the catalogue, or one that some device has."""
    if isinstance(value, str) and (value in BY_SLUG or _some_device_has(value)):
        return value
    raise InvalidValueError.of(
        "flavor",
        _("There is no flavor %(value)s; choose one of the fleet or of the catalogue.")
        % {"value": shown(value)},
    )


def shown(value: object) -> str:
    """Return a value fit for a message: printable, short, quoted."""
    text = value if isinstance(value, str) else _written(value)
    printable = "".join(
        c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: SHOWN_LIMIT + 1]
    )
    return f"“{printable[:SHOWN_LIMIT]}…”" if len(printable) > SHOWN_LIMIT else f"“{printable}”"


def _written(value: object) -> str:
    try:
        return repr(value)
    except (ValueError, RecursionError):  # more digits or more levels than Python writes
        return "…"


def _is_milli(value: object) -> bool:
    return type(value) is int and 0 <= value <= MILLI_MOST


def _some_device_has(flavor: str) -> bool:
    return "\x00" not in flavor and Device.objects.filter(flavor=flavor).exists()
