"""The pure packages stay pure, and light to import."""

import json
import subprocess
import sys

PROBE = """
import importlib, json, pkgutil, sys
for name in {packages!r}:
    package = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(package, "__path__", []), name + "."):
        importlib.import_module(found.name)
print(json.dumps(sorted(sys.modules)))
"""
PURE = [
    "scheduler.core",
    "scheduler.decide",
    "scheduler.simulate",
    "telemetry.units",
    "telemetry.flavors",
]
IMPURE = ("django", "psycopg", "redis", "celery", "channels", "rest_framework", "kubernetes")


def test_pure_packages_import_neither_django_nor_a_database() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(packages=PURE)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert not loaded & set(IMPURE)
    assert "pulp" in loaded  # the walk has reached the strategies
