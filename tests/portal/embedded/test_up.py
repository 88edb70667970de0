import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from portal.embedded import addresses

pytestmark = pytest.mark.slow
START_S, STOP_S = 120.0, 60.0
NAMES = ("postgres", "valkey-server", "uvicorn", "worker", "beat")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def environ(folder: Path, **more: str) -> dict[str, str]:
    dropped = ("DATABASE_URL", "REDIS_URL", "KILTER_HOST", "KILTER_PORT")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    return {**kept, "KILTER_DATA": str(folder), **more}


def command(*arguments: str) -> list[str]:
    return [sys.executable, str(addresses.PROJECT / "manage.py"), *arguments]


class Up:
    """One `manage.py up` whose lines can be waited for."""

    def __init__(self, folder: Path, *arguments: str, **more: str) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self._fresh: queue.Queue[str] = queue.Queue()
        self.process = psutil.Popen(
            command("up", *arguments),
            env=environ(folder, **more),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._fresh.put(line.rstrip())
        self._fresh.put("(end)")

    def wait_for(self, pattern: str, timeout_s: float = START_S) -> str:
        deadline_s = time.monotonic() + timeout_s
        while True:
            line = self._fresh.get(timeout=max(0.1, deadline_s - time.monotonic()))
            self.lines.append(line)
            if re.search(pattern, line):
                return line
            assert line != "(end)", self.lines

    def family(self) -> dict[str, psutil.Process]:
        found: dict[str, psutil.Process] = {}
        for child in self.process.children():
            with suppress(psutil.NoSuchProcess):
                line = " ".join(child.cmdline())
                found.update({name: child for name in NAMES if f"{name} " in f"{line} "})
        return found

    def end(self, which: signal.Signals = signal.SIGTERM) -> int:
        with suppress(psutil.NoSuchProcess):
            self.process.send_signal(which)
        code = int(self.process.wait(timeout=STOP_S))
        self._reader.join()  # the pipe ends with the last process of the tree
        self.process.stdout.close()
        while not self._fresh.empty():
            self.lines.append(self._fresh.get())
        return code


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="kilter-up-"))
    yield made / "data"
    shutil.rmtree(made)


@pytest.fixture
def up(folder: Path) -> Iterator[Up]:
    started = Up(folder, "--no-demo", "--port", str(free_port()))
    yield started
    started.end()


def refused(folder: Path, *arguments: str, **more: str) -> str:
    done = subprocess.run(
        command("up", *arguments),
        env=environ(folder, **more),
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )
    said = done.stderr.strip()
    assert done.returncode == 1, (done.returncode, said)
    assert "Traceback" not in said
    assert len(said.splitlines()) == 1, said
    return said


def test_a_first_run_tells_the_password_once_and_then_is_ready(up: Up) -> None:
    line = up.wait_for(r"^ready ")
    assert re.fullmatch(r"ready http://127\.0\.0\.1:\d+/", line)
    assert [line for line in up.lines if "password" in line.lower()]
    assert set(up.family()) == set(NAMES)
    assert (up.folder / "static" / "pages" / "kilter.css").is_file()
    modes = {path.stat().st_mode & 0o777 for path in (up.folder / "secrets").iterdir()}
    assert modes == {0o600}
    logs = {path.stat().st_mode & 0o777 for path in (up.folder / "logs").iterdir()}
    assert logs == {0o600}


def test_the_next_run_keeps_the_data_and_says_no_password(up: Up) -> None:
    up.wait_for(r"^ready ")
    assert not [line for line in up.lines if "password" in line.lower()]
    done = subprocess.run(
        command("token", "admin"),
        env=environ(up.folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert re.fullmatch(r"[0-9a-f]{64}\n", done.stdout)


def test_a_second_up_on_the_same_folder_names_the_first(up: Up) -> None:
    up.wait_for(r"^ready ")
    said = refused(up.folder, "--port", str(free_port()))
    assert f"in use by another `up` (process {up.process.pid})" in said


def test_a_child_that_dies_is_said_and_started_again(up: Up) -> None:
    up.wait_for(r"^ready ")
    old = up.family()["uvicorn"]
    old.kill()
    line = up.wait_for("web was ended by SIGKILL", timeout_s=10)
    assert "starting it again in 1 s" in line
    assert str(up.folder / "logs" / "web.log") in line
    deadline = time.monotonic() + 30
    while "uvicorn" not in up.family() or up.family()["uvicorn"] == old:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_everything_comes_back_after_the_database_was_killed(up: Up) -> None:
    up.wait_for(r"^ready ")
    up.family()["postgres"].kill()
    up.wait_for("postgres was ended by SIGKILL", timeout_s=10)
    deadline = time.monotonic() + 40
    while "postgres" not in up.family() or not _healthy(up):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _healthy(up: Up) -> bool:
    done = subprocess.run(
        command("token", "admin"), env=environ(up.folder), capture_output=True, check=False
    )
    return done.returncode == 0


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_children_and_ends_well(up: Up, which: signal.Signals) -> None:
    up.wait_for(r"^ready ")
    family = list(up.family().values())
    assert up.end(which) == 0
    assert up.lines[-2:] == ["stopped", "(end)"]
    assert not [child for child in family if child.is_running()]
    assert not [line for line in up.lines if "killed" in line]


def test_a_killed_up_leaves_no_orphans_and_the_next_one_starts(up: Up) -> None:
    up.wait_for(r"^ready ")
    family = up.process.children(recursive=True)
    assert len(family) > len(NAMES)
    up.end(signal.SIGKILL)
    again = Up(up.folder, "--no-demo", "--port", str(free_port()))
    try:
        again.wait_for(r"^ready ")
        _gone, left = psutil.wait_procs(family, timeout=20)
        assert not left
    finally:
        assert again.end() == 0


def test_a_port_in_use_is_refused_by_name(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = refused(tmp_path / "data", "--port", str(port))
    assert f"Port {port} on 127.0.0.1 is in use by" in said
    assert not (tmp_path / "data" / "postgres").exists()


WRONG = {
    "a port that is a word": (["--port", "abc"], {}, "'abc' is no port"),
    "a port too large": (["--port", "65536"], {}, "'65536' is no port"),
    "a port that is a word, by variable": ([], {"KILTER_PORT": "abc"}, "KILTER_PORT='abc'"),
    "a host of another machine": (["--host", "192.0.2.1"], {}, "'192.0.2.1' is no address"),
    "a wrong flag": ([], {"KILTER_DEBUG": "maybe"}, "KILTER_DEBUG='maybe'"),
    "a wrong amount": ([], {"KILTER_SAMPLE_S": "-5"}, "KILTER_SAMPLE_S='-5'"),
    "another database": ([], {"DATABASE_URL": "mysql://a:hunter2@b/c"}, "mysql://a:***@b/c"),
    "no such database": (
        [],
        {"DATABASE_URL": "postgresql://a:hunter2@127.0.0.1:1/c"},
        "DATABASE_URL=postgresql://a:***@127.0.0.1:1/c cannot be reached",
    ),
    "no such broker": (
        [],
        {"REDIS_URL": "redis://:hunter2@127.0.0.1:1/0"},
        "REDIS_URL=redis://:***@127.0.0.1:1/0 cannot be reached",
    ),
    "another broker": ([], {"REDIS_URL": "amqp://a:hunter2@b"}, "REDIS_URL=amqp://a:***@b"),
    "a folder that is a file": ([], {"KILTER_DATA": "/etc/passwd"}, "/etc/passwd"),
}


@pytest.mark.parametrize(
    ("arguments", "more", "expected"),
    [pytest.param(*case, id=name) for name, case in WRONG.items()],
)
def test_what_is_wrong_is_said_in_one_line(
    tmp_path: Path, arguments: list[str], more: dict[str, str], expected: str
) -> None:
    given = {"KILTER_PORT": str(free_port()), **more}
    given.setdefault("KILTER_DATA", str(tmp_path / "data"))
    folder = Path(given.pop("KILTER_DATA"))
    said = refused(folder, *arguments, **given)
    assert expected in said
    assert ":hunter2" not in said


def test_a_command_without_a_running_database_says_so_in_one_line(tmp_path: Path) -> None:
    done, _ = alone(tmp_path, "token", "admin")
    assert done.returncode == 1
    assert "Is `make run` running?" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_command_without_a_running_database_does_not_wait_for_one(tmp_path: Path) -> None:
    _, start_s = alone(tmp_path, "help")
    _, all_s = alone(tmp_path, "token", "admin")
    assert all_s - start_s < 5  # the pool of web and worker goes on trying for 10 s


def alone(folder: Path, *arguments: str) -> tuple["subprocess.CompletedProcess[str]", float]:
    """Run a command beside no servers; return how it ended and after how many seconds."""
    begun_s = time.monotonic()
    done = subprocess.run(
        command(*arguments),
        env=environ(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done, time.monotonic() - begun_s


def test_unknown_options_are_bad_usage(tmp_path: Path) -> None:
    done = subprocess.run(
        command("up", "--nonsense"),
        env=environ(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (tmp_path / "precious").write_text("kept")
    (folder / "up.lock").symlink_to(tmp_path / "precious")
    said = refused(folder, "--port", str(free_port()))
    assert str(folder / "up.lock") in said
    assert (tmp_path / "precious").read_text() == "kept"


@pytest.fixture
def full_disk() -> Iterator[Path]:
    """Yield a folder on a disk of 4 MiB, too small for a database."""
    where = Path(tempfile.mkdtemp(prefix="kilter-full-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(where)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        where.rmdir()
        pytest.skip("only root can mount a small disk")
    yield where
    subprocess.run(["umount", str(where)], check=True)
    where.rmdir()


def test_a_full_disk_is_said_in_one_line(full_disk: Path) -> None:
    said = refused(full_disk / "data", "--port", str(free_port()))
    assert "No space left on device" in said
    assert "KILTER_DATA" in said
    assert not (full_disk / "data" / "postgres").exists()


def test_a_disk_that_is_full_from_the_start_is_said_in_one_line(full_disk: Path) -> None:
    with suppress(OSError), (full_disk / "filling").open("wb") as filling:
        while True:
            filling.write(b"x" * 4096)
    said = refused(full_disk / "data", "--port", str(free_port()))
    assert "No space left on device" in said
    assert "KILTER_DATA" in said
