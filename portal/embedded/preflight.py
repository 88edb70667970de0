"""What `up` checks before it starts anything; each refusal names the value and the remedy."""

import errno
import fcntl
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import psutil
import psycopg
import redis

from portal.embedded import addresses, valkey
from portal.environment import masked

CONNECT_S = 5
OLDEST_POSTGRES = 14  # as Django 5.2 wants it
NOT_LIBPQ = {"pool", "assume_role", "isolation_level", "server_side_binding"}  # Django's own


class Refused(Exception):  # noqa: N818 - the user's values are refused; nothing has failed
    """Something given to `up` cannot work; the message names it and the remedy."""


def port_number(text: str) -> int:
    """Return the port that `text` names.

    Raises:
        Refused: it is no number from 1 to 65535.
    """
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:  # noqa: PLR2004
        raise Refused(
            f"{text!r} is no port: give a number from 1 to 65535 with --port or KILTER_PORT."
        )
    return int(text)


def check_address(host: str, port: int) -> None:
    """Try whether the web server could listen there.

    Raises:
        Refused: the host is unknown or not ours, or the port is taken or reserved.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError) as wrong:
        raise Refused(_no_host(host)) from wrong
    for family, kind, protocol, _name, address in found:  # the web server listens on all of them
        try:
            with socket.socket(family, kind, protocol) as trial:
                _listen_once(trial, address)
        except OSError as wrong:
            raise Refused(_why_not(wrong, host, port)) from wrong


def _listen_once(trial: socket.socket, address: Any) -> None:
    trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if trial.family == socket.AF_INET6:
        trial.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    trial.bind(address)
    trial.listen(1)


def _no_host(host: str) -> str:
    return (
        f"{host!r} is no address of this machine: "
        "give one, such as 127.0.0.1 or 0.0.0.0, with --host or KILTER_HOST."
    )


def _why_not(wrong: OSError, host: str, port: int) -> str:
    if wrong.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is in use{_listener(port)}: "
            "stop that, or choose another with --port or KILTER_PORT."
        )
    if wrong.errno == errno.EACCES:
        return f"Port {port} is reserved for root: choose one from 1024 with --port or KILTER_PORT."
    if wrong.errno == errno.EADDRNOTAVAIL:
        return _no_host(host)
    return f"Cannot listen on {host} port {port}: {wrong.strerror}. Check --host and --port."


def _listener(port: int) -> str:
    try:
        for found in psutil.net_connections(kind="tcp"):
            if found.status == psutil.CONN_LISTEN and found.pid and found.laddr[1:] == (port,):
                return f" by {psutil.Process(found.pid).name()} (process {found.pid})"
    except psutil.Error:
        return ""
    return ""


def take_folder(folder: Path) -> int:
    """Make the data folder and hold its lock as long as the returned descriptor is open.

    Raises:
        Refused: another `up` holds it.
        FolderError: it cannot be made or written.
    """
    addresses.private_folder(folder)
    path = folder / "up.lock"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as wrong:
        holder = path.read_text(encoding="ascii").strip() or "unknown"
        raise Refused(
            f"The data folder {folder} is in use by another `up` (process {holder}): "
            "stop that one, or choose another folder with KILTER_DATA."
        ) from wrong
    except OSError as wrong:
        raise addresses.unusable(path, wrong) from wrong
    try:
        os.truncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
    except OSError as wrong:
        raise addresses.unusable(path, wrong) from wrong
    return lock


def check_database(settings: Mapping[str, object], url: str) -> None:
    """Sign in to the database that DATABASE_URL names.

    Raises:
        Refused: it does not let us in; the message does not hold the password.
    """
    options = cast("Mapping[str, Any]", settings.get("OPTIONS") or {})
    options = {"connect_timeout": CONNECT_S, **options}
    try:
        with psycopg.connect(
            **{key: value for key, value in options.items() if key not in NOT_LIBPQ},
            host=str(settings.get("HOST") or ""),
            port=str(settings.get("PORT") or ""),
            user=str(settings.get("USER") or ""),
            password=str(settings.get("PASSWORD") or ""),
            dbname=str(settings.get("NAME") or ""),
        ) as connection:
            version = connection.info.server_version // 10000
    except psycopg.Error as wrong:
        raise Refused(
            f"DATABASE_URL={masked(url)} cannot be reached ({_first_line(wrong)}): start that "
            "server or correct the URL, or unset it for the embedded PostgreSQL."
        ) from wrong
    if version < OLDEST_POSTGRES:
        raise Refused(
            f"DATABASE_URL={masked(url)} is PostgreSQL {version}: Kilter needs {OLDEST_POSTGRES} "
            "or later. Upgrade that server, or unset it for the embedded PostgreSQL."
        )


def check_broker(url: str) -> None:
    """Sign in to the Redis or Valkey that REDIS_URL names.

    Raises:
        Refused: it does not let us in; the message does not hold the password.
    """
    try:
        client = redis.Redis.from_url(
            url, socket_connect_timeout=CONNECT_S, socket_timeout=CONNECT_S, retry=valkey.ONCE
        )
        with client:
            client.ping()
    except (redis.RedisError, ValueError, OSError) as wrong:
        raise Refused(
            f"REDIS_URL={masked(url)} cannot be reached ({_first_line(wrong)}): start that "
            "server or correct the URL, or unset it for the embedded Valkey."
        ) from wrong


def _first_line(wrong: Exception) -> str:
    return (str(wrong).strip().splitlines() or [type(wrong).__name__])[0]
