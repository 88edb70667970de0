"""The whole portal as its user starts it, and a real browser in front of it."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
READY_S = 90
CHROMIUM_FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Portal:
    """A running portal: where it is, and the password that it printed."""

    url: str
    password: str
    folder: Path

    def manage(self, *arguments: str) -> str:
        """Run a management command beside the portal and return its last line."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=_environ(self.folder),
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout.strip().splitlines()[-1]


def _environ(folder: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in {"DATABASE_URL", "REDIS_URL"}}
    return {**kept, "KILTER_DATA": str(folder), "PYTHONUNBUFFERED": "1"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    folder = tmp_path_factory.mktemp("portal") / "data"
    port = _free_port()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "up", "--port", str(port)],
        cwd=ROOT,
        env=_environ(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines: list[str] = []
    try:
        ready = _read_until_ready(process, lines)
        output = "".join(lines)
        assert ready, f"no ready line within {READY_S} s:\n{output}\n{_logs(folder)}"
        password = re.search(r"user admin, password (\S+)", output)
        assert password, output
        yield Portal(f"http://127.0.0.1:{port}", password[1], folder)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


def _read_until_ready(process: subprocess.Popen[str], lines: list[str]) -> bool:
    assert process.stdout is not None
    stream = process.stdout
    ready: list[bool] = []

    def read() -> None:
        for line in stream:
            lines.append(line)
            if line.startswith("ready http"):
                ready.append(True)

    reader = Thread(target=read, daemon=True)
    reader.start()
    for _ in range(READY_S * 10):
        if ready or process.poll() is not None:
            break
        reader.join(0.1)
    return bool(ready)


def _logs(folder: Path) -> str:
    return "\n".join(
        f"== {path.name}\n{path.read_text(errors='replace')[-3000:]}"
        for path in sorted((folder / "logs").glob("*.log"))
    )


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    flags = [*CHROMIUM_FLAGS, "--no-sandbox"] if os.geteuid() == 0 else CHROMIUM_FLAGS
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=os.environ.get("KILTER_CHROMIUM") or None, args=flags
        )
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser, portal: Portal) -> Iterator[Page]:
    """A signed-in admin; a script error or a refused resource on any page fails the test.

    Answers of the portal that say no (a form with errors), and the absence of a network that a test
    makes itself, are not errors of the page.
    """
    context = browser.new_context(base_url=portal.url, locale="en-GB")
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda m: wrong.append(m.text) if _is_fault(m) else None)
    sign_in(opened, "admin", portal.password)
    yield opened
    context.close()
    assert not wrong, wrong


def _is_fault(message: ConsoleMessage) -> bool:
    expected = (
        "status of 422",
        "status of 400",
        "ERR_INTERNET_DISCONNECTED",
        "WebSocket connection",
    )
    return message.type == "error" and not any(text in message.text for text in expected)


def sign_in(page: Page, user: str, password: str) -> None:
    page.goto("/accounts/login/")
    page.fill("input[name=login]", user)
    page.fill("input[name=password]", password)
    page.click("main button[type=submit]")
    page.wait_for_url(re.compile(r"/$"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:  # pytest hands every conftest the items of the whole session
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.e2e)
