"""Accounts of people, made by who runs the portal."""

import secrets

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from tenants import policies
from tenants.errors import InvalidValueError, NotAllowedError

PASSWORD_BYTES = 12


def person_create(*, actor: User, username: str) -> tuple[User, str]:
    """Return a new account and its password, the only time that it is known.

    Raises:
        NotAllowedError: the actor does not run the portal.
        InvalidValueError: the name can't be taken, or is in use.
    """
    if not policies.is_platform_admin(actor):
        raise NotAllowedError(_("Only who runs the portal may create accounts."))
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    person = get_user_model()(username=username)
    person.set_password(password)
    try:
        person.full_clean()
        with transaction.atomic():
            person.save(force_insert=True)
    except ValidationError as wrong:
        raise InvalidValueError({"username": wrong.messages}) from wrong
    except IntegrityError as exc:
        raise InvalidValueError.of("username", _("There is such a person already.")) from exc
    return person, password
