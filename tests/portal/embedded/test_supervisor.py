import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from portal.embedded import logs
from portal.embedded.processes import ServerError
from portal.embedded.supervisor import Child, Program, Stopped, Supervisor, how_it_ended

NOTE_AND_END = """
import pathlib, signal, sys, time
name, book = sys.argv[1], pathlib.Path(sys.argv[2])
def end(*_):
    with book.open("a") as file:
        file.write(name + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("up", flush=True)
while True:
    time.sleep(0.05)
"""
DEAF = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("up", flush=True)
time.sleep(60)
"""


def python(name: str, code: str, *arguments: str, stop_s: float = 5.0) -> Program:
    line = [sys.executable, "-c", code, *arguments]
    return Program(name, line, dict(os.environ), stop_s=stop_s)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, said: list[str]) -> Iterator[Supervisor]:
    made = Supervisor(tmp_path, said.append)
    yield made
    for child in made.children:
        child.kill_rest()


def wait_for_text(path: Path, text: str) -> None:
    deadline = time.monotonic() + 10
    while text not in logs.tail(path):
        assert time.monotonic() < deadline, f"{path} never said {text}"
        time.sleep(0.01)


def test_a_child_that_dies_is_started_again_later_and_later(tmp_path: Path) -> None:
    child = Child(python("web", "print('oh no'); raise SystemExit(3)"), tmp_path / "web.log")
    child.start(100.0)
    now_s, waits = 100.0, []
    for _ in range(7):
        assert child.process is not None
        child.process.wait()
        news = child.look(now_s)
        assert news is not None
        assert news.startswith("web ended with exit code 3 (oh no); starting it again in ")
        assert child.restart_at_s is not None
        waits.append(child.restart_at_s - now_s)
        assert child.look(child.restart_at_s - 0.01) is None
        assert child.process is None
        now_s = child.restart_at_s
        assert child.look(now_s) is None
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    child.kill_rest()


def test_a_child_that_ran_well_for_a_minute_is_started_again_at_once(tmp_path: Path) -> None:
    child = Child(python("web", "raise SystemExit(3)"), tmp_path / "web.log")
    now_s = 0.0
    for lived_s, wait_s in ((1.0, 1.0), (1.0, 2.0), (61.0, 1.0)):
        child.start(now_s)
        assert child.process is not None
        child.process.wait()
        now_s += lived_s
        child.look(now_s)
        assert child.restart_at_s == now_s + wait_s


def test_a_program_that_is_gone_is_tried_again_and_said_so(tmp_path: Path) -> None:
    child = Child(python("web", "raise SystemExit(0)"), tmp_path / "web.log")
    child.start(0.0)
    assert child.process is not None
    child.process.wait()
    child.look(0.0)
    child.program = Program("web", [tmp_path / "gone"], {})
    news = child.look(1.0)
    assert news is not None
    assert "web cannot be started" in news
    assert child.restart_at_s == 3.0


def test_children_stop_in_the_order_asked_for(supervisor: Supervisor, tmp_path: Path) -> None:
    book = tmp_path / "book"
    for name in ("postgres", "worker", "web"):
        supervisor.add(python(name, NOTE_AND_END, name, str(book)))
        wait_for_text(tmp_path / f"{name}.log", "up")
    supervisor.stop(("web", "worker", "postgres"))
    assert book.read_text().split() == ["web", "worker", "postgres"]


def test_a_child_that_does_not_stop_is_killed_with_its_own_children(
    supervisor: Supervisor, tmp_path: Path, said: list[str]
) -> None:
    child = supervisor.add(python("worker", DEAF, stop_s=0.3))
    wait_for_text(tmp_path / "worker.log", "up")
    assert child.process is not None
    family = [psutil.Process(child.process.pid)]
    family += family[0].children(recursive=True)
    assert len(family) == 2
    begun = time.monotonic()
    supervisor.stop(("worker",))
    assert time.monotonic() - begun < 3
    assert said == ["worker did not stop in time and is killed"]
    _gone, left = psutil.wait_procs(family, timeout=5)
    assert not left


def test_a_job_that_made_itself_a_daemon_outlives_the_worker(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    program = "import subprocess; subprocess.Popen(['/bin/sleep', '60'], start_new_session=True)"
    program += "; import time; print('up', flush=True); time.sleep(60)"
    child = supervisor.add(python("worker", program))
    wait_for_text(tmp_path / "worker.log", "up")
    assert child.process is not None
    (job,) = psutil.Process(child.process.pid).children()
    supervisor.stop(("worker",))
    try:
        assert job.is_running()
        assert job.status() != psutil.STATUS_ZOMBIE
    finally:
        job.kill()


def test_a_second_signal_hurries(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.add(python("worker", DEAF, stop_s=60))
    wait_for_text(tmp_path / "worker.log", "up")
    supervisor.listen()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.7)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        begun = time.monotonic()
        supervisor.stop(("worker",))
    finally:
        for which in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
            signal.signal(which, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert 0.5 < time.monotonic() - begun < 5


def test_one_press_that_arrives_twice_counts_once(supervisor: Supervisor) -> None:
    supervisor._note(signal.SIGTERM, None)
    supervisor._note(signal.SIGTERM, None)
    assert supervisor._signals == 1
    with pytest.raises(Stopped):
        supervisor.pause()


def test_a_first_start_that_fails_tells_the_last_words(supervisor: Supervisor) -> None:
    child = supervisor.add(python("web", "print('first'); raise SystemExit('no such thing')"))
    with pytest.raises(ServerError, match=r"web ended with exit code 1: .*no such thing"):
        supervisor.wait_for(child, lambda: False, timeout_s=10)


def test_a_step_that_fails_tells_its_own_words_only(supervisor: Supervisor) -> None:
    supervisor.run_to_end(python("migrate", "print('a fine run')"))
    with pytest.raises(ServerError) as failed:
        supervisor.run_to_end(python("migrate", "raise SystemExit('broken')"))
    assert "migrate ended with exit code 1: broken" in str(failed.value)
    assert "fine" not in str(failed.value)


def test_a_child_writes_to_a_log_that_only_we_may_read(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    supervisor.add(python("web", "print('hello', flush=True)"))
    wait_for_text(tmp_path / "web.log", "hello")
    assert (tmp_path / "web.log").stat().st_mode & 0o777 == 0o600


def test_a_log_is_cut_at_its_limit_and_its_end_is_kept_aside(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    with logs.open_log(path) as writer:
        writer.write(b"a" * 90 + b"b" * 20)
        logs.cap(path, limit_bytes=110)
        assert path.stat().st_size == 110
        logs.cap(path, limit_bytes=100)
        writer.write(b"new\n")
    assert path.read_bytes() == b"new\n"
    assert (tmp_path / "web.1.log").read_bytes() == b"a" * 80 + b"b" * 20


def test_how_a_process_ended_is_said_in_words() -> None:
    assert how_it_ended(2) == "ended with exit code 2"
    assert how_it_ended(-9) == "was ended by SIGKILL"
    assert how_it_ended(-64) == "was ended by SIGRTMAX"
    assert how_it_ended(-50) == "was ended by signal 50"


def test_no_child_outlives_a_killed_parent(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from portal.embedded.supervisor import Program, Supervisor\n"
        "s = Supervisor(Path(sys.argv[1]), print)\n"
        "c = s.add(Program('a', ['/bin/sleep', '60'], os.environ))\n"
        "print(c.process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = psutil.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=-1)
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    psutil.wait_procs([child], timeout=5)
    assert not child.is_running()
