"""Where the embedded servers listen and which passwords open them, from the data folder alone.

Every process of the portal derives the same answer, so `manage.py` commands work beside `up`.
Standard library only: the settings import this module.
"""

import hashlib
import os
import pwd
import re
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

PROJECT = Path(__file__).resolve().parents[2]
SERVICE_USER = "kilter-db"  # owns the servers' files where the portal runs as root
DATABASE = "kilter"
SOCKET_LIMIT_BYTES = 107  # sockaddr_un.sun_path holds 108, one of them the final zero
LONGEST_SOCKET = ".s.PGSQL.5432"
PLAIN_PATH = re.compile(r"[A-Za-z0-9_./ +-]+")


class FolderError(Exception):
    """The data folder cannot be used; the message names it and the remedy."""


def data_folder(environ: Mapping[str, str]) -> Path:
    """Return the absolute data folder: KILTER_DATA, or `data` in the project."""
    chosen = environ.get("KILTER_DATA", "").strip()
    if "\n" in chosen:
        raise FolderError(f"KILTER_DATA={chosen!r} holds a line break; choose another folder.")
    return Path(chosen).expanduser().absolute() if chosen else PROJECT / "data"


def compiled_folder(folder: Path) -> Path:
    """Return where compiled scores are kept: another place after any change of their sources.

    numba looks at the file of a function, not at those of the functions that it calls.
    """
    digest = hashlib.sha256()
    for source in sorted((PROJECT / "scheduler/decide/scores").glob("*.py")):
        digest.update(source.read_bytes())
    return folder / "compiled" / digest.hexdigest()[:12]


def private_folder(folder: Path) -> Path:
    """Make `folder` with mode 700 if it is missing, and return it.

    Raises:
        FolderError: it cannot be made, or is no folder.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as wrong:
        raise unusable(folder, wrong) from wrong
    return folder


def unusable(folder: Path, wrong: OSError) -> FolderError:
    """Return the error that says why `folder` cannot be used and what would help."""
    return FolderError(
        f"The data folder cannot be used: {wrong.filename or folder}: {wrong.strerror}. "
        "Free some space or correct its owner, or name another folder with KILTER_DATA."
    )


def secret(folder: Path, name: str) -> str:
    """Return the secret called `name`, made on first use; its file has mode 600.

    The file appears whole: it is written aside, then linked, so that of two processes that
    start together one wins and both read the same.

    Raises:
        FolderError: the file cannot be written or read, or is empty.
    """
    path = private_folder(private_folder(folder) / "secrets") / name
    try:
        if not path.exists():
            _create(path, secrets.token_urlsafe(48))
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            path.chmod(0o600)
        value = path.read_text(encoding="ascii").strip()
    except OSError as wrong:
        raise unusable(path, wrong) from wrong
    if not value:
        raise FolderError(f"{path} is empty: restore it from a backup, or delete it for a new one.")
    return value


def _create(path: Path, value: str) -> None:
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(value + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, path)
    except FileExistsError:
        return  # another process was first: its secret holds
    finally:
        aside.unlink()


def run_folder(folder: Path) -> Path:
    """Return the folder of the sockets: `run` in the data folder, or a short one if need be.

    A socket's path is limited to 107 bytes, and libpq takes a comma in it for the next host's. The
    short folder lies in /run for root, else in /tmp
    under a name with the owner's number; found in other hands, it is refused.

    Raises:
        FolderError: somebody else owns the short folder.
    """
    inside = folder / "run"
    fits = len(os.fsencode(inside / LONGEST_SOCKET)) <= SOCKET_LIMIT_BYTES
    if fits and PLAIN_PATH.fullmatch(str(inside)):
        return inside
    owner = folder.stat().st_uid if folder.exists() else os.geteuid()
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    short = Path("/run" if owner == 0 else "/tmp") / f"kilter-{owner}-{digest}"  # noqa: S108 - owner checked below
    if os.path.lexists(short):
        _refuse_stranger(short, {0, owner, os.geteuid(), service_uid()})
    return short


def _refuse_stranger(short: Path, trusted: set[int | None]) -> None:
    found = short.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in trusted or found.st_mode & 0o077:
        raise FolderError(
            f"{short} belongs to another user or is open to others: "
            "remove it, or name a data folder with a shorter path with KILTER_DATA."
        )


def service_uid() -> int | None:
    """Return the number of the OS user of the servers under root, None if it is missing."""
    try:
        return pwd.getpwnam(SERVICE_USER).pw_uid
    except KeyError:
        return None


def database_settings(folder: Path) -> dict[str, Any]:
    """Return Django's settings of the embedded PostgreSQL."""
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": DATABASE,
        "USER": DATABASE,
        "PASSWORD": secret(folder, "postgres"),
        "HOST": str(run_folder(folder)),
        "PORT": "5432",
    }


def database_url(folder: Path) -> str:
    """Return the same as a URL, in django-environ's form `postgresql://…@//socket/folder/name`."""
    run = quote(str(run_folder(folder)))
    return f"postgresql://{DATABASE}:{secret(folder, 'postgres')}@/{run}/{DATABASE}"


def valkey_socket(folder: Path) -> Path:
    """Return the socket of the embedded Valkey."""
    return run_folder(folder) / "valkey.sock"


def redis_url(folder: Path) -> str:
    """Return the embedded Valkey's URL, as redis-py, Django and channels-redis read it."""
    return f"unix://:{secret(folder, 'valkey')}@{quote(str(valkey_socket(folder)))}?db=0"


def celery_url(url: str) -> str:
    """Return a Redis URL as Celery reads it: kombu has its own name for Unix sockets."""
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    query = parse_qs(parts.query)
    password = parts.password or quote(query.get("password", [""])[0], safe="")
    database = query.get("db", ["0"])[0]
    return f"redis+socket://:{password}@{parts.path}?virtual_host={database}"
