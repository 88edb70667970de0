"""The worker dies at any point of a cycle: the next one finds everything in order.

Each cycle is a process of its own, on committed data, and leaves by `os._exit` before its n-th
statement, commit or call of its executor: no `finally`, no rollback, no goodbye, as by SIGKILL.
"""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from scheduler.choices import Verb
from scheduler.locks import NAMESPACE
from scheduler.models import Cycle, Intent, Job, Placement, SchedulingPolicy
from scheduler.services.jobs import job_cancel
from tests.processes import django_process
from tests.scheduler.invariants import assert_sound
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db(transaction=True)

STEPS = 96
"""A few more than such a cycle has; the test of the whole range says if that is not so."""

WHEN_ROOM_IS_MADE = ("decides", "waits", "hands over")
"""Cycles from the decision to the end of those who make room."""

ROOM_STEPS = {"decides": 75, "hands over": 137}
"""A few more than such cycles have."""

WORKER = '''
import django, json
django.setup()
from datetime import datetime
from pathlib import Path
from django.db import connection
from scheduler import loop
from scheduler.decide.cycle import load
from scheduler.decide.strategies.base import RULES
from scheduler.execute import simulated
from scheduler.execute.base import ExecutorSettings
from telemetry.models import Cluster

load(RULES)  # once, not in every child
simulated.FAILURES_PER_MILLE = 0  # only the worker fails here


class Steps:
    """Counts what a cycle does to the world, and dies before the last one."""

    def __init__(self, last):
        self.last, self.count = last, 0

    def step(self, what):
        self.count += 1
        if self.count == self.last:
            answer(died_at=what[:80])

    def statement(self, execute, sql, params, many, context):
        self.step("before " + sql)
        return execute(sql, params, many, context)

    def commit(self, commit):
        def counted():
            self.step("before COMMIT")
            commit()
            self.step("after COMMIT")
        return counted


class Watched:
    """An executor whose calls are steps; notes every start that it is asked for."""

    def __init__(self, inner, steps, log):
        self.inner, self.steps, self.log = inner, steps, log

    def __getattr__(self, name):
        def told(*args, **more):
            self.steps.step(f"before {name}")
            if name == "bind":
                with self.log.open("a") as log:
                    log.write(f"{args[0].uid} {args[0].attempt}\\n")
            found = getattr(self.inner, name)(*args, **more)
            self.steps.step(f"after {name}")
            return found
        return told


def answer(**what):
    os.write(1, json.dumps(what).encode() + b"\\n")
    os._exit(0)


def cycle(folder, now, die_at):
    steps = Steps(die_at)
    inner = simulated.build(ExecutorSettings("c", {"folder": Path(folder) / "sim"}))
    ports = loop.Ports(Watched(inner, steps, Path(folder) / "bound"), node_lost_after_s=60.0)
    cluster = Cluster.objects.get(slug="c")
    connection._commit = steps.commit(connection._commit)
    at = datetime.fromisoformat(now)
    with connection.execute_wrapper(steps.statement):
        report = loop.run_cycle(cluster, ports, clock=lambda: at, woken=True)
    answer(ran=report.ran, steps=steps.count)


for line in sys.stdin:
    child = os.fork()
    if child == 0:
        cycle(**json.loads(line))
    _, status = os.waitpid(child, 0)
    if status:
        print(json.dumps({"failed": status}), flush=True)
'''


class Crashing:
    """A world whose cycles run, and die, in processes of their own."""

    def __init__(self, folder: Path, worker: "subprocess.Popen[str]") -> None:
        self.world = World()
        self.world.add_node("m")
        self.folder = folder
        self.worker = worker

    def cycle(self, *, after_s: float = 1.0, die_at: int = 0) -> dict[str, Any]:
        self.world.now += timedelta(seconds=after_s)
        assert self.worker.stdin is not None
        assert self.worker.stdout is not None
        asked = {"folder": str(self.folder), "now": self.world.now.isoformat(), "die_at": die_at}
        self.worker.stdin.write(json.dumps(asked) + "\n")
        self.worker.stdin.flush()
        answer: dict[str, Any] = json.loads(self.worker.stdout.readline())
        assert "failed" not in answer
        return answer

    def fill(self) -> dict[str, Job]:
        """Return jobs at every turn: one that has ended, one to stop, two to start, one to wait."""
        jobs = {name: self.world.submit(name, devices=1, time_limit_s=5) for name in ("ends",)}
        jobs["leaves"] = self.world.submit("leaves", devices=1)
        self.cycle()
        self.cycle(after_s=4)
        self.cycle(after_s=4)
        for name in ("starts", "starts_too"):
            jobs[name] = self.world.submit(name, devices=1)
        jobs["waits"] = self.world.submit("waits", devices=2, replicas=2, priority_class="low")
        job_cancel(actor=self.world.user, job=jobs["leaves"], now=self.world.now)
        return jobs

    def contend(self) -> dict[str, Job]:
        """Return jobs of which two must make room: one shrinks, one is evicted, for one each."""
        SchedulingPolicy.objects.filter(cluster=self.world.cluster).update(
            preempt_by_priority=True, preempt_delay_s=0, preempt_min_runtime_s=0, preempt_grace_s=5
        )
        low = {"priority_class": "low"}
        jobs = {
            "elastic": self.world.submit("elastic", devices=1, replicas=2, replicas_min=1, **low),
            "victim": self.world.submit("victim", devices=2, **low),
        }
        self.cycle()
        self.cycle(after_s=4)
        jobs["needy"] = self.world.submit("needy", devices=1, priority_class="high")
        jobs["needy_too"] = self.world.submit("needy_too", devices=2)
        return jobs

    def bound(self) -> Counter[str]:
        return Counter((self.folder / "bound").read_text().splitlines())


@pytest.fixture(scope="module")
def worker(django_db_setup: None) -> Iterator["subprocess.Popen[str]"]:  # noqa: ARG001 - its name
    with django_process(WORKER) as process:
        yield process


@pytest.fixture
def crashing(tmp_path: Path, worker: "subprocess.Popen[str]") -> Crashing:
    return Crashing(tmp_path, worker)


def assert_lock_is_free() -> None:
    """Wait a little: a server takes a moment to see that a client is gone."""
    until = time.monotonic() + 10
    while True:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE classid = %s", [NAMESPACE])
            if cursor.fetchone() == (0,):
                return
        assert time.monotonic() < until, "a dead worker holds the lock"
        time.sleep(0.02)


def die_and_go_on(crashing: Crashing, die_at: int) -> dict[str, Any]:
    jobs = crashing.fill()
    died = crashing.cycle(after_s=12, die_at=die_at)
    assert_lock_is_free()
    assert_sound(jobs=5)
    for _ in range(3):
        assert crashing.cycle(after_s=3)["ran"]
        assert_sound(jobs=5)
    states = {name: crashing.world.state(job) for name, job in jobs.items()}
    assert states["ends"] == "succeeded"
    assert states["leaves"] == "cancelled"
    assert {states["starts"], states["starts_too"]} <= {"starting", "running"}
    assert states["waits"] == "queued"
    bound = crashing.bound()
    assert set(bound) == {f"{job.pk} 1" for name, job in jobs.items() if name != "waits"}
    assert max(bound.values()) <= 2  # asked for again where the note was lost
    records = [path.name for path in (crashing.folder / "sim").glob("*/*.json")]
    assert sorted(records) == sorted(f"{line.replace(' ', '.')}.json" for line in bound)
    assert_lock_is_free()
    return died


def die_while_room_is_made(crashing: Crashing, when: str, die_at: int) -> None:
    """Die where it is decided who makes room, or where they have ended: each goes exactly once."""
    jobs = crashing.contend()
    for each in WHEN_ROOM_IS_MADE:
        crashing.cycle(after_s=4, die_at=die_at if each == when else 0)
        assert_lock_is_free()
        assert_sound(jobs=4)
    for _ in range(4):
        assert crashing.cycle(after_s=4)["ran"]
        assert_sound(jobs=4)
    states = {name: crashing.world.state(job) for name, job in jobs.items()}
    assert states == dict.fromkeys(("elastic", "needy", "needy_too"), "running") | {
        "victim": "queued"
    }
    told = Intent.objects.filter(verb=Verb.EVICT).order_by("reason")
    assert [(row.placement.job_id, row.placement.attempt, row.reason) for row in told] == [
        (jobs["victim"].pk, 1, "preempted"),
        (jobs["elastic"].pk, 1, "resized"),
    ]
    elastic, victim = jobs["elastic"], jobs["victim"]
    assert (elastic.preempted_count, elastic.attempt) == (1, 2)
    assert (victim.preempted_count, victim.attempt) == (1, 1)
    assert Placement.objects.get(job=elastic, attempt=2).replicas.count() == 1
    assert not Job.objects.filter(promised_at__isnull=False).exists()
    assert max(crashing.bound().values()) <= 2


@pytest.mark.parametrize(
    ("when", "die_at"),
    [(when, step) for when, most in ROOM_STEPS.items() for step in range(7, most, 31)],
)
def test_a_worker_that_dies_evicts_nobody_twice_and_breaks_no_promise(
    crashing: Crashing, when: str, die_at: int
) -> None:
    die_while_room_is_made(crashing, when, die_at)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("when", "die_at"),
    [(when, step) for when, most in ROOM_STEPS.items() for step in range(1, most)],
)
def test_a_worker_may_die_at_every_step_while_room_is_made(
    crashing: Crashing, when: str, die_at: int
) -> None:
    die_while_room_is_made(crashing, when, die_at)


def test_the_steps_of_making_room_are_counted_to_the_end(crashing: Crashing) -> None:
    crashing.contend()
    steps = {when: crashing.cycle(after_s=4)["steps"] for when in WHEN_ROOM_IS_MADE}
    assert all(most - 15 < steps[when] < most for when, most in ROOM_STEPS.items())


@pytest.mark.parametrize("die_at", range(3, STEPS, 11))
def test_a_worker_that_dies_leaves_nothing_lost_doubled_or_locked(
    crashing: Crashing, die_at: int
) -> None:
    die_and_go_on(crashing, die_at)


@pytest.mark.slow
@pytest.mark.parametrize("die_at", range(1, STEPS))
def test_a_worker_may_die_at_every_single_step(crashing: Crashing, die_at: int) -> None:
    die_and_go_on(crashing, die_at)


def test_the_steps_are_counted_to_the_end_of_the_cycle(crashing: Crashing) -> None:
    crashing.fill()
    steps = crashing.cycle(after_s=12)["steps"]
    assert STEPS - 15 < steps < STEPS
    assert Cycle.objects.count() > 0
