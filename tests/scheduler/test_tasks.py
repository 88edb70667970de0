"""What beat and the broker start: only where there is something to do, and twice without harm."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from scheduler import demo, tasks
from scheduler.execute.base import ExecutorUnavailableError
from scheduler.models import Cycle, Decision, Job, PriorityClass
from scheduler.services import retention
from tenants.models import Tenant
from tests import factories
from tests.scheduler.world import START, ScriptedExecutor, World

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _own_folder(settings: Settings, tmp_path: Path) -> None:
    settings.DATA = tmp_path


@pytest.fixture
def world() -> World:
    return World()


class Sent:
    """Notes what is put into the queue."""

    def __init__(self) -> None:
        self.calls: list[tuple[tuple[Any, ...], float]] = []

    def apply_async(self, args: tuple[Any, ...], *, expires: float) -> None:
        self.calls.append((args, expires))


def test_a_cycle_runs_by_name_and_one_of_no_or_a_disabled_cluster_does_nothing(
    world: World,
) -> None:
    job = world.submit(devices=1)
    tasks.run_cycle("nowhere")
    world.cluster.enabled = False
    world.cluster.save(update_fields=["enabled"])
    tasks.run_cycle("c")
    assert world.state(job) == "queued"
    world.cluster.enabled = True
    world.cluster.save(update_fields=["enabled"])
    tasks.run_cycle("c")
    assert world.state(job) == "starting"


def test_the_pulse_asks_for_each_enabled_cluster_and_such_a_wish_expires(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.cluster("off", enabled=False)
    sent = Sent()
    monkeypatch.setattr(tasks, "run_cycle", sent)
    tasks.pulse_cycles()
    assert [args for args, _ in sent.calls] == [(world.cluster.slug, False)]
    assert all(expires > 0 for _, expires in sent.calls)


def test_clusters_where_something_runs_are_looked_at_even_when_switched_off(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.cluster("idle")
    world.submit()
    world.cycle()
    world.cluster.enabled = False
    world.cluster.save(update_fields=["enabled"])
    sent = Sent()
    monkeypatch.setattr(tasks, "observe", sent)
    tasks.pulse_observe()
    assert sent.calls == [(("c",), tasks.OBSERVE_EXPIRES_S)]


def test_a_look_follows_what_runs_and_one_of_no_cluster_does_nothing(world: World) -> None:
    job = world.submit()
    tasks.run_cycle("c")
    tasks.observe("nowhere")
    tasks.observe("c")
    assert world.state(job) == "starting"


def test_old_cycles_that_started_nothing_go_and_the_others_stay(world: World) -> None:
    world.submit(devices=2)
    world.cycle()
    world.submit(devices=2)
    world.cycle()
    world.cycle(after_s=90_000)
    assert Cycle.objects.count() == 3
    assert retention.tidy(before=START + timedelta(days=1)) == 1
    assert Cycle.objects.count() == 2
    assert Decision.objects.filter(verb="start").count() == 1
    assert retention.tidy(before=START + timedelta(days=1)) == 0


def test_invented_jobs_come_once_a_tick_for_tenants_of_any_weight(world: World) -> None:
    owner = factories.user(demo.DEMO_OWNER)
    factories.membership(owner, world.tenant)
    Tenant.objects.update(fair_weight=0)
    ticks = [datetime(2026, 1, 5, tzinfo=UTC) + timedelta(seconds=5 * i) for i in range(12)]
    for now in [*ticks, *reversed(ticks)]:  # the clock steps back: the same ticks again
        demo.arrive(cluster=world.cluster, now=now)
    count = Job.objects.count()
    assert 3 < count <= demo.QUEUE_MOST
    assert Job.objects.values("idempotency_key").distinct().count() == count


def test_without_priority_classes_nothing_is_invented(world: World) -> None:
    factories.membership(factories.user(demo.DEMO_OWNER), world.tenant)
    PriorityClass.objects.all().delete()
    for i in range(10):
        demo.arrive(cluster=world.cluster, now=START + timedelta(seconds=5 * i))
    assert not Job.objects.exists()


def test_what_a_job_left_goes_some_days_after_its_end(world: World) -> None:
    old, recent, waiting = (world.submit(name) for name in ("old", "recent", "waiting"))
    for job, state, days in ((old, "failed", 2), (recent, "failed", 1), (waiting, "queued", 2)):
        ended = START - timedelta(days=days)
        Job.objects.filter(pk=job.pk).update(state=state, finished_at=ended)
    stranger = "00000000-0000-4000-8000-000000000001"
    left = {(str(job.uid), 1) for job in (old, recent, waiting)} | {(stranger, 1)}
    executor = ScriptedExecutor(left=left | {(str(old.uid), 2)})
    assert retention.purge(executor, before=START - timedelta(days=1, hours=1)) == 1
    assert executor.left == left - {(str(old.uid), 1)}


def test_one_job_whose_rest_cannot_be_removed_holds_up_no_other(world: World) -> None:
    job = world.submit()
    Job.objects.filter(pk=job.pk).update(state="failed", finished_at=START)
    executor = ScriptedExecutor(left={(str(job.uid), 1)}, raises=ExecutorUnavailableError("busy"))
    assert retention.purge(executor, before=START + timedelta(days=1)) == 0
    assert executor.left


def test_tidying_reaches_the_executors_files(world: World, tmp_path: Path) -> None:
    job = world.submit()
    path = tmp_path / "jobs" / "c" / "ended" / f"{job.uid}.1.json"
    tasks.tidy()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    Job.objects.filter(pk=job.pk).update(state="failed", finished_at=START - timedelta(days=99))
    tasks.tidy()
    assert not path.exists()
