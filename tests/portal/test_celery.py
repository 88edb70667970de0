"""Every process sends its tasks to the same broker."""

import os
import subprocess
import sys

PROBE = """
import django; django.setup()
from scheduler.tasks import run_cycle
print(run_cycle.app.main, run_cycle.app.conf.broker_url.partition(":")[0])
"""


def test_a_process_that_only_sets_django_up_sends_tasks_to_our_broker() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "portal.settings"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    name, scheme = done.stdout.split()
    assert name == "kilter"
    assert scheme.startswith("redis")
