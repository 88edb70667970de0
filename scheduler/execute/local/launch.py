"""Starts supervisors so that they outlive whoever starts them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
ERRORS = "supervisor.log"
"""What the supervisor itself complains of; empty unless it crashed."""
MODULE = "scheduler.execute.local.supervisor"


def launch_supervisor(folder: Path, lock: int) -> None:
    """Start the supervisor of the attempt in `folder`, which inherits the attempt's lock.

    It leads a session of its own and is nobody's child for long: the shell between us and it ends
    at once, so that init takes it over and no portal process has to reap it.

    Raises:
        OSError: it could not be started.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    errors = os.open(folder / ERRORS, flags, 0o600)
    try:
        _detach(folder, lock, errors)
    finally:
        os.close(errors)


def _detach(folder: Path, lock: int, errors: int) -> None:
    python = [sys.executable, "-S", "-s", "-E", "-m", MODULE, str(folder)]
    subprocess.run(
        ["/bin/sh", "-c", '"$@" & exit 0', "sh", *python],
        cwd=ROOT,
        env={"PATH": os.defpath, "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,
        pass_fds=[lock],
        timeout=10.0,
        check=True,
    )
