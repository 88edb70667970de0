"""`manage.py bootstrap`: what a new installation starts with; again, it changes nothing."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from scheduler.bootstrap import bootstrap


class Command(BaseCommand):
    """Creates what is missing: the first admin, this machine, the demo."""

    help = "Creates the first admin, this machine as a cluster, and the demo. Safe to repeat."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take --no-demo."""
        parser.add_argument("--no-demo", action="store_true", help="no demo tenants and fleet")

    def handle(self, *_args: object, **options: Any) -> None:
        """Make what is missing, and say the admin's password the only time that it is known."""
        now = timezone.now()  # noqa: TID251 - a command is the outermost layer
        password = bootstrap(demo=not options["no_demo"], now=now)
        if password is not None:
            self.stdout.write(f"first admin: user admin, password {password}")
            self.stdout.write("It is shown this once; change it after signing in.")
