"""A pytest plugin: private PostgreSQL and Valkey servers, unless the environment names some.

Loaded by `-p tests.stack` before Django's settings. The workers of pytest-xdist are children of
the process that started the servers, and find its data folder in their environment.
`python -m tests.stack COMMAND` runs one command of manage.py beside such servers.
"""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from django.core.management import execute_from_command_line

from portal.embedded import addresses, postgres, processes, valkey

OWNER = "KILTER_TEST_STACK"
PREFIX = "kilter-test-"
START_S = 60.0


def _start() -> None:
    _remove_left_over()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    (folder / "static").mkdir()  # whitenoise warns where it is missing
    os.environ["KILTER_DATA"] = str(folder)
    os.environ[OWNER] = str(os.getpid())
    servers: list[subprocess.Popen[bytes]] = []
    atexit.register(_stop, folder, servers, os.getpid())
    if not os.environ.get("REDIS_URL"):
        servers.append(_start_valkey(folder))
    if not os.environ.get("DATABASE_URL"):
        servers.append(_start_postgres(folder))


def _remove_left_over() -> None:
    """Remove what runs left that were killed; their servers died with them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        owner = folder.name.removeprefix(PREFIX).split("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _start_valkey(folder: Path) -> subprocess.Popen[bytes]:
    account = processes.service_account()
    valkey.prepare(folder, account)
    return processes.start(
        valkey.command(),
        environ=processes.plain_environ(),
        output=subprocess.DEVNULL,
        account=account,
        folder=addresses.run_folder(folder),
        feed=valkey.config(folder),
    )


def _start_postgres(folder: Path) -> subprocess.Popen[bytes]:
    account = processes.service_account()
    postgres.prepare(folder, account, throwaway=True)
    with (folder / "postgres.log").open("ab") as log:
        server = processes.start(
            postgres.command(folder, throwaway=True),
            environ=processes.plain_environ(),
            output=log,
            account=account,
            folder=postgres.cluster_folder(folder),
            on_parent_death=signal.SIGQUIT,
        )
    deadline = time.monotonic() + START_S
    while not postgres.answers(folder):
        if server.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError((folder / "postgres.log").read_text())
        time.sleep(0.02)
    return server


def _stop(folder: Path, servers: list[subprocess.Popen[bytes]], owner: int) -> None:
    if os.getpid() != owner:  # a forked child leaves by the same door
        return
    for server in servers:
        server.send_signal(signal.SIGQUIT if server is servers[-1] else signal.SIGTERM)
    for server in servers:
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
    shutil.rmtree(folder, ignore_errors=True)


if OWNER not in os.environ:
    _start()

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    execute_from_command_line(sys.argv)
