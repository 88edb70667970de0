"""Keep a few programs running: start them in order, restart what dies, stop them in reverse.

One thread looks after all of them, for the kernel ties a child's life to the thread that made it.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from portal.embedded import logs
from portal.embedded.processes import Account, ServerError, last_lines, start

LOOK_S = 0.1
CAP_LOGS_S = 5.0
ONE_PRESS_S = 0.5  # make passes its signal on: what comes so close together is one
HURRY_S = 1.0
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 30.0
STEADY_S = 60.0  # a child that lived as long is counted as healthy again

Say = Callable[[str], None]


class Stopped(Exception):  # noqa: N818 - not an error: somebody asked us to end
    """A signal asked us to stop."""


def nothing() -> None:
    """Do nothing: the default preparation of a program."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run and how to end it."""

    name: str
    command: Sequence[str | Path]
    environ: Mapping[str, str] = field(repr=False)
    account: Account | None = None
    folder: Path | None = None
    feed: bytes | None = field(default=None, repr=False)
    prepare: Callable[[], object] = nothing
    stop_signal: signal.Signals = signal.SIGTERM
    orphan_signal: signal.Signals = signal.SIGTERM
    stop_s: float = 10.0


class Child:
    """One program with its process, log and restarts."""

    def __init__(self, program: Program, log: Path) -> None:
        self.program = program
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.restart_at_s: float | None = None
        self._started_s = 0.0
        self._failures = 0

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self, now_s: float) -> None:
        """Start the program; its output is appended to the log."""
        self.program.prepare()
        with logs.open_log(self.log) as output:
            self.process = launch(self.program, output)
        self.restart_at_s = None
        self._started_s = now_s

    def look(self, now_s: float) -> str | None:
        """Restart the program when it is time; return a line when there is news."""
        if self.restart_at_s is not None:
            return self._restart(now_s) if now_s >= self.restart_at_s else None
        if self.process is None or self.process.poll() is None:
            return None
        said = last_lines(logs.tail(self.log), count=1)
        return self._plan_restart(f"{how_it_ended(self.process.returncode)} ({said})", now_s)

    def _restart(self, now_s: float) -> str | None:
        try:
            self.start(now_s)
        except (OSError, ServerError) as wrong:
            return self._plan_restart(f"cannot be started ({wrong})", now_s)
        return None

    def _plan_restart(self, what: str, now_s: float) -> str:
        self.kill_rest()
        if now_s - self._started_s >= STEADY_S:
            self._failures = 0
        wait_s = min(FIRST_WAIT_S * 2**self._failures, LONGEST_WAIT_S)
        self._failures += 1
        self._started_s = now_s
        self.restart_at_s = now_s + wait_s
        return f"{self.program.name} {what}; starting it again in {wait_s:.0f} s, see {self.log}"

    def ask_to_stop(self) -> None:
        """Send the stop signal to the program itself, which ends its own children."""
        self.restart_at_s = None
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(self.program.stop_signal)

    def kill_rest(self) -> None:
        """Kill what is left of the program's session."""
        if self.process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = None


def launch(
    program: Program, output: IO[bytes] | None, errors: int | IO[bytes] = subprocess.STDOUT
) -> subprocess.Popen[bytes]:
    """Start a program's process; without `output` it writes to ours."""
    return start(
        program.command,
        environ=program.environ,
        output=output,
        errors=errors,
        account=program.account,
        folder=program.folder,
        on_parent_death=program.orphan_signal,
        feed=program.feed,
    )


def how_it_ended(code: int) -> str:
    """Return how a process ended, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


class Supervisor:
    """All children of one `up`."""

    def __init__(self, log_folder: Path, say: Say) -> None:
        self.log_folder = log_folder
        self.say = say
        self.children: list[Child] = []
        self._signals = 0
        self._last_signal_s = -ONE_PRESS_S

    def listen(self) -> None:
        """Take the signals that end us; a second one hurries. nohup(1) keeps its word."""
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if which != signal.SIGHUP or signal.getsignal(which) != signal.SIG_IGN:
                signal.signal(which, self._note)

    def _note(self, _signal: int, _frame: object) -> None:
        now_s = time.monotonic()
        if now_s - self._last_signal_s >= ONE_PRESS_S:
            self._signals += 1
        self._last_signal_s = now_s

    def pause(self) -> None:
        """Sleep a moment.

        Raises:
            Stopped: a signal came.
        """
        if self._signals:
            raise Stopped
        time.sleep(LOOK_S)

    def add(self, program: Program) -> Child:
        """Start a program and keep it running from now on."""
        child = Child(program, self.log_folder / f"{program.name}.log")
        child.start(time.monotonic())
        self.children.append(child)
        return child

    def wait_for(self, child: Child, is_ready: Callable[[], bool], timeout_s: float) -> None:
        """Wait until a fresh child is ready.

        Raises:
            ServerError: it ended, or was not ready in time.
            Stopped: a signal came.
        """
        deadline_s = time.monotonic() + timeout_s
        while not is_ready():
            if not child.is_running:
                raise ServerError(self._first_failure(child))
            if time.monotonic() > deadline_s:
                raise ServerError(
                    f"{child.program.name} does not answer after {timeout_s:.0f} s; see {child.log}"
                )
            self.pause()

    def _first_failure(self, child: Child) -> str:
        code = child.process.returncode if child.process else 0
        said = last_lines(logs.tail(child.log))
        return f"{child.program.name} {how_it_ended(code)}: {said}; see {child.log}"

    def run_to_end(self, program: Program, *, quiet: bool = True) -> None:
        """Run a program that ends by itself; unless quiet, its output goes to ours.

        Raises:
            ServerError: it failed; the message holds the last it said.
            Stopped: a signal came.
        """
        log = self.log_folder / f"{program.name}.log"
        with logs.open_log(log) as file:
            begin = log.stat().st_size
            process = launch(program, file if quiet else None, file)
        code = self._wait(process)
        if code:
            said = last_lines(logs.tail(log, log.stat().st_size - begin))
            raise ServerError(f"{program.name} {how_it_ended(code)}: {said}; see {log}")

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        try:
            while process.poll() is None:
                self.pause()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        return process.returncode

    def look(self) -> None:
        """Look after all children once."""
        for child in self.children:
            news = child.look(time.monotonic())
            if news:
                self.say(news)

    def watch(self, each: Callable[[], None] = nothing) -> None:
        """Look after the children, and call `each` every time, until a signal comes."""
        next_cap_s = 0.0
        with suppress(Stopped):
            while True:
                self.look()
                each()
                if time.monotonic() >= next_cap_s:
                    self._cap_logs()
                    next_cap_s = time.monotonic() + CAP_LOGS_S
                self.pause()

    def _cap_logs(self) -> None:
        for child in self.children:
            try:
                logs.cap(child.log)
            except OSError as wrong:
                self.say(f"{child.log} cannot be shortened: {wrong.strerror}")

    def stop(self, order: Sequence[str]) -> None:
        """Stop all children in the order of names; bounded, and a further signal hurries."""
        before = self._signals
        for child in sorted(self.children, key=lambda child: order.index(child.program.name)):
            child.ask_to_stop()
            self._wait_for_end(child, hurried=lambda: self._signals > before)
            if child.is_running:
                self.say(f"{child.program.name} did not stop in time and is killed")
            child.kill_rest()
        self.children.clear()

    @staticmethod
    def _wait_for_end(child: Child, hurried: Callable[[], bool]) -> None:
        begun_s = time.monotonic()
        while child.is_running:
            allowed_s = min(HURRY_S, child.program.stop_s) if hurried() else child.program.stop_s
            if time.monotonic() - begun_s >= allowed_s:
                return
            time.sleep(LOOK_S / 5)
