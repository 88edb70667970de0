"""`manage.py token USER`: a new API token, printed once."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tenants.selectors import person_list
from tenants.services import LONGEST_DAYS, token_create


def days(text: str) -> int:
    """Return a lifetime in days.

    Raises:
        ArgumentTypeError: it is no whole number from 1 to 3650.
    """
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:5]) <= LONGEST_DAYS):
        raise ArgumentTypeError(f"{text!r} is not a number of days from 1 to {LONGEST_DAYS}")
    return int(text)


class Command(BaseCommand):
    """Prints a new API token; only its hash is kept."""

    help = "Prints a new API token of a user, to be sent as `Authorization: Token …`."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="user name")
        parser.add_argument("--days", type=days, default=settings.TOKEN_DAYS, help="lifetime")

    def handle(self, *_args: object, **options: Any) -> None:
        """Make the token and print it alone on a line."""
        user = person_list().filter(username=options["user"]).first()
        if user is None:
            raise CommandError(
                f"There is no user {options['user']!r}: the first one is admin; make others with "
                "manage.py createsuperuser or on the members page."
            )
        if not user.is_active:
            raise CommandError(f"The user {options['user']!r} is not active: activate it first.")
        _kept, token = token_create(user=user, days=options["days"])
        self.stdout.write(token)
