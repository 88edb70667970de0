#!/usr/bin/env python
"""Runs Kilter's commands: `up`, `token`, `migrate` and Django's own."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import OperationalError

from portal.embedded.addresses import FolderError

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    try:
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, FolderError) as wrong:  # read with the settings: no traceback
        sys.exit(f"kilter: {wrong}")
    except OperationalError as wrong:
        reason = str(wrong).strip().splitlines()[0]
        sys.exit(f"kilter: the database does not answer ({reason}). Is `make run` running?")
