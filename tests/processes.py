"""Python processes that share the test's database."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection

ROOT = Path(__file__).resolve().parent.parent

PREFIX = """
import os, sys
from django.conf import settings
settings.DATABASES["default"]["NAME"] = os.environ["KILTER_TEST_DATABASE"]
"""


@contextmanager
def django_process(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run Python code with Django's settings on the present test database; killed at the end."""
    environ = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "KILTER_TEST_DATABASE": str(connection.settings_dict["NAME"]),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", PREFIX + code, *arguments],
        cwd=ROOT,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)
