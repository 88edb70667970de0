"""The five programs of the process tree, and how each is started and stopped."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from portal.embedded import addresses, postgres, valkey
from portal.embedded.processes import Account, plain_environ
from portal.embedded.supervisor import Program

STOP_ORDER = ("web", "beat", "worker", "valkey", "postgres")
QUEUES = "cycle,default"
WORKERS = 2
LARGEST_MESSAGE_BYTES = 65536  # browsers send us next to nothing


@dataclass(frozen=True, slots=True)
class Setup:
    """What one `up` was asked for."""

    host: str
    port: int
    folder: Path
    behind_proxy: bool = False

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/"

    def environ(self) -> dict[str, str]:
        """Return the environment of the portal's own processes."""
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "KILTER_HOST": self.host,
            "KILTER_PORT": str(self.port),
            "KILTER_DATA": str(self.folder),
            "PYTHONUNBUFFERED": "1",
        }


def postgres_program(folder: Path, account: Account) -> Program:
    """Return the embedded PostgreSQL; both ends of it are by SIGINT, a fast shutdown."""
    return Program(
        "postgres",
        postgres.command(folder),
        plain_environ(),
        account=account,
        folder=postgres.cluster_folder(folder),
        prepare=lambda: postgres.prepare(folder, account),
        stop_signal=signal.SIGINT,
        orphan_signal=signal.SIGINT,
        stop_s=postgres.STOP_S,
    )


def valkey_program(folder: Path, account: Account) -> Program:
    """Return the embedded Valkey."""
    return Program(
        "valkey",
        valkey.command(),
        plain_environ(),
        account=account,
        folder=addresses.run_folder(folder),
        feed=valkey.config(folder),
        prepare=lambda: valkey.prepare(folder, account),
    )


def manage_program(setup: Setup, name: str, *arguments: str) -> Program:
    """Return a command of manage.py that ends by itself."""
    line: list[str | Path] = [sys.executable, addresses.PROJECT / "manage.py", name, *arguments]
    return Program(name, line, setup.environ(), folder=addresses.PROJECT)


def web_program(setup: Setup) -> Program:
    """Return the web server: one process, for its consumers share a channel layer anyway."""
    options = ["--host", setup.host, "--port", str(setup.port), "--no-access-log"]
    # h11 bounds a request's head at 64 KiB; httptools, taken where it is installed, does not.
    options += ["--http", "h11", "--ws", "websockets-sansio", "--lifespan", "off"]
    options += ["--no-server-header"]
    options += ["--ws-max-size", str(LARGEST_MESSAGE_BYTES), "--timeout-graceful-shutdown", "3"]
    options += ["--proxy-headers" if setup.behind_proxy else "--no-proxy-headers"]
    return _python(setup, "web", ["uvicorn", "portal.asgi:application", *options], stop_s=8)


def worker_program(setup: Setup) -> Program:
    """Return the worker; it finishes its tasks when told to stop and drops them when orphaned."""
    options = ["-Q", QUEUES, "-c", str(WORKERS), "-l", "WARNING"]
    options += ["--without-gossip", "--without-mingle"]
    line = ["celery", "-A", "portal.celery", "worker", *options]
    return _python(setup, "worker", line, stop_s=20, orphan_signal=signal.SIGQUIT)


def beat_program(setup: Setup) -> Program:
    """Return the clock of the schedules."""
    schedule = addresses.private_folder(setup.folder / "beat") / "schedule"
    options = ["-s", str(schedule), "--pidfile=", "-l", "WARNING"]
    return _python(setup, "beat", ["celery", "-A", "portal.celery", "beat", *options], stop_s=5)


def _python(
    setup: Setup,
    name: str,
    module: Sequence[str],
    *,
    stop_s: float,
    orphan_signal: signal.Signals = signal.SIGTERM,
) -> Program:
    environ: Mapping[str, str] = setup.environ()
    line = [sys.executable, "-m", *module]
    return Program(
        name,
        line,
        environ,
        folder=addresses.PROJECT,
        orphan_signal=orphan_signal,
        stop_s=stop_s,
    )
