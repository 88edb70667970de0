"""People, found by name, and the API tokens that are theirs."""

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, User
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from knox.models import AuthToken

from tenants.errors import InvalidValueError


def person_list() -> QuerySet[User]:
    """Return all accounts, those that are not active too."""
    return get_user_model().objects.order_by("username")


def person_get(*, username: object, field: str = "username") -> User:
    """Return the person of that name; a refusal names the field that was asked for.

    Raises:
        InvalidValueError: there is no such active account.
    """
    found = None
    if isinstance(username, str) and "\x00" not in username:
        found = person_list().filter(username=username, is_active=True).first()
    if found is None:
        raise InvalidValueError.of(field, _("There is no such person; write a user name."))
    return found


def token_list(*, user: AbstractUser) -> QuerySet[AuthToken]:
    """Return the person's own tokens, newest first."""
    rows: QuerySet[AuthToken] = AuthToken.objects.filter(user=user).order_by("-created", "digest")
    return rows
