"""`manage.py up`: the whole portal in one process tree, until Ctrl-C."""

import os
import resource
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import ERROR, run_checks
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from portal.embedded import addresses, postgres, preflight, programs, readiness, valkey
from portal.embedded.processes import ServerError, service_account
from portal.embedded.programs import Setup
from portal.embedded.supervisor import Program, Stopped, Supervisor
from scheduler.execute.local.hiding import can_hide

START_S = 60.0
PATIENCE_S = 60.0
ASK_EVERY_S = 0.5
OPEN_FILES = 65536


class Command(BaseCommand):
    """Starts PostgreSQL, Valkey, web, worker and beat, and keeps them running."""

    help = "Runs the whole portal: embedded PostgreSQL and Valkey, web, worker and beat."
    requires_system_checks: list[str] = []  # run below, where a failure becomes one line

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="", help="address to listen on (KILTER_HOST)")
        parser.add_argument("--port", default="", help="port to listen on (KILTER_PORT)")
        parser.add_argument(
            "--no-demo", action="store_true", help="no demo tenants and no simulated fleet"
        )

    def handle(self, *_args: object, **options: Any) -> None:
        """Check, start in order, watch, stop in order."""
        try:
            self._run(_setup(options), demo=not options["no_demo"])
        except (preflight.Refused, ServerError, addresses.FolderError) as wrong:
            raise CommandError(str(wrong)) from wrong
        except OSError as wrong:
            raise CommandError(_system_error(wrong)) from wrong

    def _run(self, setup: Setup, *, demo: bool) -> None:
        lock = preflight.take_folder(setup.folder)
        preflight.check_address(setup.host, setup.port)
        supervisor = Supervisor(addresses.private_folder(setup.folder / "logs"), self._say)
        supervisor.listen()
        _allow_many_connections()
        try:
            self._start(supervisor, setup, demo=demo)
            supervisor.watch(self._ready_line(setup))
        except Stopped:
            self._say("stopping before everything had started")
        finally:
            supervisor.stop(programs.STOP_ORDER)
            os.close(lock)
        self._say("stopped")

    def _start(self, supervisor: Supervisor, setup: Setup, *, demo: bool) -> None:
        _start_servers(supervisor, setup.folder, self._say)
        _check_settings()
        call_command("collectstatic", interactive=False, verbosity=0)
        supervisor.run_to_end(programs.manage_program(setup, "migrate", "--no-input"))
        first = programs.manage_program(setup, "bootstrap", *([] if demo else ["--no-demo"]))
        supervisor.run_to_end(first, quiet=False)
        self._say_who_runs_jobs()
        for program in _portal_programs(setup):
            supervisor.add(program)

    def _say_who_runs_jobs(self) -> None:
        alone = os.geteuid() != 0 and settings.LOCAL_EXECUTOR
        if alone and not can_hide(settings.PRIVATE_FOLDERS):
            self._say(
                "jobs on this machine run as you, and this kernel lets nobody hide folders from "
                f"them: they can read {settings.DATA} too. See KILTER_LOCAL_EXECUTOR in the README."
            )

    def _ready_line(self, setup: Setup) -> Callable[[], None]:
        """Return what prints `ready`, once, and before that says when it takes long."""
        begun_s, said = time.monotonic(), set[str]()
        next_ask_s = begun_s

        def look() -> None:
            nonlocal next_ask_s
            if "ready" in said or time.monotonic() < next_ask_s:
                return
            next_ask_s = time.monotonic() + ASK_EVERY_S
            if readiness.is_ready(setup.host, setup.port, name=_host_name()):
                said.add("ready")
                self._say(f"ready {setup.url}")
            elif time.monotonic() - begun_s > PATIENCE_S and "slow" not in said:
                said.add("slow")
                self._say(
                    f"{setup.url}readyz is not content after {PATIENCE_S:.0f} s; "
                    f"still trying, see {setup.folder / 'logs'}"
                )

        return look

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def _setup(options: dict[str, Any]) -> Setup:
    host = options["host"].strip() or settings.HOST
    port = preflight.port_number(options["port"].strip() or str(settings.PORT))
    return Setup(host, port, Path(settings.DATA), behind_proxy=bool(settings.SESSION_COOKIE_SECURE))


def _allow_many_connections() -> None:
    """Let the web server hold more than the usual 1024 files: every open page is one or two."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, OPEN_FILES)), hard))


def _start_servers(supervisor: Supervisor, folder: Path, say: Callable[[str], None]) -> None:
    """Start the embedded servers, or look whether the ones that are named let us in."""
    database, broker = os.environ.get("DATABASE_URL", ""), os.environ.get("REDIS_URL", "")
    if database:
        preflight.check_database(settings.DATABASES["default"], database)
    if broker:
        preflight.check_broker(broker)
    if database and broker:
        return
    account, opened = service_account(), list[Path]()
    if not broker:
        opened += valkey.prepare(folder, account)
        _add(supervisor, programs.valkey_program(folder, account), lambda: valkey.answers(folder))
    if not database:
        opened += postgres.prepare(folder, account)
        program = programs.postgres_program(folder, account)
        _add(supervisor, program, lambda: postgres.answers(folder))
    if opened:
        names = ", ".join(map(str, opened))
        say(f"the user {addresses.SERVICE_USER} may now pass through (not list) {names}")


def _add(supervisor: Supervisor, program: Program, answers: Callable[[], bool]) -> None:
    supervisor.wait_for(supervisor.add(program), answers, START_S)


def _host_name() -> str:
    """Return a name under which the portal lets itself be asked."""
    plain = [name for name in settings.ALLOWED_HOSTS if name.strip("*.") == name and name]
    return plain[0] if plain else "localhost"


def _portal_programs(setup: Setup) -> list[Program]:
    return [
        programs.web_program(setup),
        programs.worker_program(setup),
        programs.beat_program(setup),
    ]


def _check_settings() -> None:
    """Run Django's and our own checks of the settings.

    Raises:
        Refused: one of them failed.
    """
    wrong = [found for found in run_checks() if found.level >= ERROR]
    if wrong:
        lines = [" ".join(filter(None, (str(found.msg), found.hint))) for found in wrong]
        raise preflight.Refused("; ".join(lines))


def _system_error(wrong: OSError) -> str:
    where = f"{wrong.filename}: " if wrong.filename else ""
    return f"{where}{wrong.strerror or wrong}. Check the data folder (KILTER_DATA) and its disk."
