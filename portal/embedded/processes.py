"""Start children that cannot outlive us, in sessions of their own, perhaps as another user."""

import ctypes
import importlib.util
import os
import pwd
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from portal.embedded import addresses

PR_SET_PDEATHSIG = 1  # linux/prctl.h
_libc = ctypes.CDLL(None, use_errno=True)


class ServerError(Exception):
    """A server cannot be started; the message says why and what would help."""


def package_folder(name: str) -> Path:
    """Return the folder of an installed package without running its code.

    Raises:
        ServerError: it is not installed.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ServerError(f"The package {name} is missing: pip install -r requirements.txt.")
    return Path(spec.submodule_search_locations[0])


@dataclass(frozen=True, slots=True)
class Account:
    """The OS user that a server runs as: ourselves, or the service user where we are root."""

    uid: int
    gid: int

    @property
    def is_ours(self) -> bool:
        return self.uid == os.geteuid()

    def own(self, path: Path) -> None:
        """Hand `path` over to this user."""
        if not self.is_ours:
            os.chown(path, self.uid, self.gid)


def service_account() -> Account:
    """Return the user for the servers; as root make it on first use, for PostgreSQL refuses root.

    Raises:
        ServerError: it is missing and cannot be made.
    """
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    if addresses.service_uid() is None:
        _add_user(addresses.SERVICE_USER)
    entry = pwd.getpwnam(addresses.SERVICE_USER)
    return Account(entry.pw_uid, entry.pw_gid)


def _add_user(name: str) -> None:
    line = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    line += ["--shell", "/usr/sbin/nologin", name]
    try:
        made = subprocess.run(line, capture_output=True, text=True, check=False, timeout=30)
        why = made.stderr.strip() if made.returncode and addresses.service_uid() is None else ""
    except OSError as wrong:
        why = str(wrong)
    if why:
        raise ServerError(
            f"PostgreSQL does not run as root and the user {name} cannot be made ({why}). "
            f"Make it by hand ({' '.join(line)}), or set DATABASE_URL and REDIS_URL."
        )


def dies_with_us(how: signal.Signals, parent: int) -> Callable[[], None]:
    """Return what a fresh child runs so that the kernel sends it `how` once `parent` is gone.

    The kernel forgets the wish when the user changes, so it is set after that, and it does not
    see a parent that died before, so the child looks once.
    """

    def ask_kernel() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, int(how), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return ask_kernel


def start(
    command: Sequence[str | Path],
    *,
    environ: Mapping[str, str],
    output: int | IO[bytes] | None,
    errors: int | IO[bytes] = subprocess.STDOUT,
    account: Account | None = None,
    folder: Path | None = None,
    on_parent_death: signal.Signals = signal.SIGTERM,
    feed: bytes | None = None,
) -> subprocess.Popen[bytes]:
    """Start `command` in its own session; call it from the main thread, which the kernel watches.

    Args:
        command: program and arguments.
        environ: the whole environment of the child.
        output: where its standard output goes; None for where ours goes.
        errors: where its standard error goes.
        account: the user to become, None for ours.
        folder: working directory.
        on_parent_death: the signal it gets when we die without stopping it.
        feed: what it reads from standard input; None for nothing.
    """
    other = account is not None and not account.is_ours
    child = subprocess.Popen(
        [os.fspath(part) for part in command],
        stdin=subprocess.DEVNULL if feed is None else subprocess.PIPE,
        stdout=output,
        stderr=errors,
        cwd=folder,
        env=dict(environ),
        start_new_session=True,
        user=account.uid if account and other else None,
        group=account.gid if account and other else None,
        extra_groups=[] if other else None,
        umask=0o077,
        preexec_fn=dies_with_us(on_parent_death, os.getpid()),  # noqa: PLW1509 - takes no lock
    )
    if child.stdin is not None:
        _feed(child.stdin, feed or b"")
    return child


def _feed(stdin: IO[bytes], text: bytes) -> None:
    try:
        with stdin:
            stdin.write(text)
    except BrokenPipeError:
        return  # it died at once: whoever waits for it sees that and shows its log


def run_as(
    account: Account, command: Sequence[str | Path], *, feed: bytes = b"", timeout_s: float = 120
) -> str:
    """Run `command` to its end as `account` and return its output.

    Raises:
        ServerError: it failed; the message holds the last lines of its output.
    """
    other = not account.is_ours
    done = subprocess.run(
        [os.fspath(part) for part in command],
        input=feed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        env=plain_environ(),
        user=account.uid if other else None,
        group=account.gid if other else None,
        extra_groups=[] if other else None,
        umask=0o077,
        timeout=timeout_s,
        check=False,
    )
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        raise ServerError(f"{Path(command[0]).name} failed: {last_lines(text)}")
    return text


def plain_environ() -> dict[str, str]:
    """Return the environment of a server: nothing of ours leaks in."""
    return {"PATH": os.defpath, "LANG": "C.UTF-8", "TZ": "UTC"}


def last_lines(text: str, count: int = 3) -> str:
    """Return the last few lines of an output as one; of a traceback only the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "Traceback (most recent call last):" in lines[-100:]:
        count = 1
    return " / ".join(lines[-count:]) or "no output"
