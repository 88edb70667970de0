"""A person's API tokens: made and revoked by themselves. Only hashes are kept."""

from datetime import timedelta

from django.contrib.auth.models import AbstractUser
from django.utils.translation import gettext as _
from knox.models import AuthToken

from tenants.errors import InvalidValueError

LONGEST_DAYS = 3650


def token_create(*, user: AbstractUser, days: int) -> tuple[AuthToken, str]:
    """Return the row of a new token, and the token itself, the only time that it is known.

    Raises:
        InvalidValueError: it would live less than a day or more than ten years.
    """
    if not 1 <= days <= LONGEST_DAYS:
        raise InvalidValueError.of(
            "days",
            _("%(days)d is not a number of days from 1 to %(most)d.")
            % {"days": days, "most": LONGEST_DAYS},
        )
    kept, token = AuthToken.objects.create(user, expiry=timedelta(days=days))
    return kept, str(token)


def token_revoke(*, user: AbstractUser, key: str) -> bool:
    """Delete one of the person's own tokens; return whether there was one.

    Args:
        user: whose.
        key: its first characters, as lists show them.
    """
    gone, _rows = AuthToken.objects.filter(user=user, token_key=key).delete()
    return bool(gone)
