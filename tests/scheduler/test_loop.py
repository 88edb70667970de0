"""One cycle after another, over real tables, with an executor that says what the test wants."""

from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler import loop
from scheduler.core.plan import Plan
from scheduler.decide import cycle
from scheduler.execute.base import (
    ExecutorRejectedError,
    ExecutorUnavailableError,
    Observation,
    Phase,
)
from scheduler.models import DeviceHold, Intent, Job, JobEvent, LedgerEntry, Placement
from scheduler.services.jobs import job_cancel
from scheduler.submission import job_ask
from telemetry.models import Device, Node
from tenants.errors import ConflictError
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return World()


def test_a_job_is_placed_started_finished_and_booked(world: World) -> None:
    job = world.submit(devices=2, cpu_milli=2000)
    report = world.cycle()
    assert report.started == (str(job.pk),)
    assert world.state(job) == "starting"
    binding = world.executor.bound[str(job.pk), 1]
    assert binding.replicas[0].device_indices == (0, 1)
    world.says(job, Phase.RUNNING)
    world.cycle()
    assert world.state(job) == "running"
    world.says(job, Phase.SUCCEEDED, exit_code=0)
    world.cycle(after_s=9)
    assert world.state(job) == "succeeded"
    assert set(Device.objects.values_list("allocated_milli", flat=True)) == {0}
    node = Node.objects.get()
    assert (node.allocated_cpu_milli, node.allocated_memory_mib) == (0, 0)
    booked = {e.flavor: e.allocated_milli_us for e in LedgerEntry.objects.all()}
    assert booked == {  # placed at +1 s, released at +11 s: ten seconds
        "cpu": Decimal(2000 * 10_000_000),
        "nvidia-l4": Decimal(2000 * 10_000_000),
    }
    moves = list(JobEvent.objects.filter(kind="state").values_list("to_state", flat=True))
    assert moves == ["queued", "starting", "running", "succeeded"]
    assert not world.executor.seen  # its end is stored, the record is no longer needed


def test_a_second_job_waits_with_a_reason_and_starts_when_the_first_ends(world: World) -> None:
    first = world.submit(devices=2)
    world.cycle()
    second = world.submit(devices=1)
    world.cycle()
    second.refresh_from_db()
    assert second.state == "queued"
    assert second.pending["code"] == "waiting_for_capacity"
    assert second.pending["expected_start_p50"] is not None
    world.says(first, Phase.SUCCEEDED, exit_code=0)
    world.cycle()
    assert world.state(second) == "starting"


def test_a_cycle_in_which_nothing_changed_decides_nothing_anew(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One job runs on both devices, the other waits; then it is cancelled."""
    plans = list[Plan]()

    def decide(*args: Any, **known: Any) -> Plan:
        plans.append(cycle.decide(*args, **known))
        return plans[-1]

    monkeypatch.setattr(loop, "cycle", SimpleNamespace(decide=decide))
    running = world.submit(devices=2)
    world.cycle()
    waiting = world.submit(devices=1)
    world.says(running, Phase.RUNNING)
    for _ in range(3):
        world.cycle()
    assert [plan.carried_from_s > 0 for plan in plans] == [False, False, True, True]
    assert plans[3].now_s == plans[1].now_s + 2
    assert plans[3].carried_from_s == plans[1].now_s
    job_cancel(actor=world.user, job=waiting, now=world.now)
    world.cycle()
    assert plans[4].carried_from_s == 0
    assert plans[4].pending == ()


def test_the_policy_is_read_once_a_cycle(world: World) -> None:
    with CaptureQueriesContext(connection) as queries:
        world.cycle()
    assert sum("scheduler_schedulingpolicy" in query["sql"] for query in queries) == 1


def test_cancelling_a_waiting_job_is_immediate_and_a_running_one_is_asked_to_stop(
    world: World,
) -> None:
    running = world.submit(devices=2)
    world.cycle()
    waiting = world.submit(devices=2)
    world.says(running, Phase.RUNNING)
    world.cycle()
    job_cancel(actor=world.user, job=waiting, now=world.now)
    assert world.state(waiting) == "cancelled"
    job_cancel(actor=world.user, job=running, now=world.now)
    job_cancel(actor=world.user, job=running, now=world.now)  # twice is once
    assert world.state(running) == "running"
    world.cycle()
    assert world.executor.evicted == [(str(running.pk), 1, "cancelled")]
    assert world.state(running) == "cancelled"
    with pytest.raises(ConflictError):
        job_cancel(actor=world.user, job=running, now=world.now)


def test_a_job_cancelled_between_commit_and_dispatch_never_starts(world: World) -> None:
    world.executor.bind_raises = ExecutorUnavailableError("away")
    job = world.submit()
    world.cycle()
    assert world.state(job) == "starting"
    job_cancel(actor=world.user, job=job, now=world.now)
    world.executor.bind_raises = None
    world.cycle()
    assert world.state(job) == "cancelled"
    assert not world.executor.bound


def test_an_unavailable_executor_leaves_everything_and_the_intent_is_retried(
    world: World,
) -> None:
    world.executor.raises = ExecutorUnavailableError("no route")
    job = world.submit()
    world.cycle()
    world.cycle(after_s=600)
    assert world.state(job) == "starting"
    intent = Intent.objects.get()
    assert intent.state == "pending"
    assert intent.tries >= 2
    assert "no route" in intent.last_error
    world.executor.raises = None
    world.cycle()
    assert (str(job.pk), 1) in world.executor.bound


def test_a_refused_start_fails_the_job_with_the_executors_words(world: World) -> None:
    world.executor.bind_raises = ExecutorRejectedError("no such image")
    job = world.submit()
    world.cycle()
    job.refresh_from_db()
    assert (job.state, job.reason, job.message) == ("failed", "start_failed", "no such image")
    assert not Placement.objects.filter(released_at__isnull=True).exists()


def test_a_node_that_stays_away_gives_its_jobs_back_to_the_queue_once(world: World) -> None:
    job = world.submit(devices=1)
    world.cycle()
    world.says(job, Phase.RUNNING)
    world.cycle()
    Node.objects.update(state="unknown", seen_at=world.now)
    world.cycle(after_s=30)
    assert world.state(job) == "running"  # unknown is not free
    world.cycle(after_s=40)
    assert world.executor.evicted == [(str(job.pk), 1, "node_lost")]
    world.cycle()  # the executor has confirmed that it stopped
    assert world.state(job) == "queued"
    world.add_node("spare")
    world.cycle()
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("starting", 2)
    assert Placement.objects.filter(released_at__isnull=True).count() == 1


def test_a_job_that_loses_node_after_node_waits_longer_each_time(world: World) -> None:
    """The first loss costs no wait, the second 60 s (30 doubled once), the third 120 s."""
    job = world.submit(devices=1)
    waits = []
    for number in range(3):
        world.add_node(f"spare-{number}")
        world.cycle()
        assert world.state(job) == "starting"
        world.says(job, Phase.RUNNING)
        world.cycle()
        Node.objects.update(state="unknown", seen_at=world.now)
        world.cycle(after_s=70)
        world.cycle()
        assert world.state(job) == "queued"
        waits.append((job.not_before - world.now).total_seconds() if job.not_before else 0.0)
        world.now += timedelta(seconds=waits[-1])
    assert waits == [0.0, 60.0, 120.0]


def test_draining_a_node_moves_its_jobs_and_takes_no_new_ones(world: World) -> None:
    job = world.submit(devices=1)
    world.cycle()
    Node.objects.update(scheduling="draining")
    world.cycle()
    assert world.executor.evicted == [(str(job.pk), 1, "drain")]
    world.cycle()
    assert world.state(job) == "queued"
    assert job.pending["code"] == "nodes_unavailable"


def test_an_attempt_that_does_not_begin_says_so_once(world: World) -> None:
    job = world.submit()
    world.cycle()
    world.cycle(after_s=29)
    assert not job.events.filter(kind="slow_start").exists()
    world.cycle(after_s=2)
    world.cycle(after_s=60)
    assert job.events.filter(kind="slow_start").count() == 1
    world.says(job, Phase.RUNNING)
    world.cycle()
    assert world.state(job) == "running"


def test_an_attempt_that_the_executor_forgot_is_failed_honestly_after_a_while(
    world: World,
) -> None:
    job = world.submit()
    world.cycle()
    world.executor.seen.clear()
    world.cycle(after_s=5)
    assert world.state(job) == "starting"
    world.cycle(after_s=20)
    job.refresh_from_db()
    assert (job.state, job.reason) == ("failed", "record_lost")


def test_an_attempt_that_nothing_holds_for_is_stopped_and_strangers_are_left_alone(
    world: World,
) -> None:
    job = world.submit()
    world.cycle()
    world.says(job, Phase.FAILED, exit_code=1, reason="exited")
    world.cycle()
    world.executor.says(str(job.pk), 1, Phase.RUNNING)
    stranger = "00000000-0000-4000-8000-000000000000"
    world.executor.seen[stranger, 1] = Observation(stranger, 1, Phase.RUNNING)
    world.cycle()
    assert world.executor.evicted == [(str(job.pk), 1, "stray")]


def test_a_clock_that_steps_back_keeps_no_job_from_starting_and_books_nothing_negative(
    world: World,
) -> None:
    first = world.submit(devices=2)
    world.cycle()
    world.says(first, Phase.SUCCEEDED, exit_code=0)
    second = world.submit(devices=2)
    world.now += timedelta(hours=1)
    world.cycle()
    world.now -= timedelta(hours=2)
    assert world.state(second) == "starting"
    world.says(second, Phase.SUCCEEDED, exit_code=0)
    third = world.submit(devices=2)
    world.cycle()
    assert world.state(third) == "starting"
    assert world.state(second) == "succeeded"
    assert min(LedgerEntry.objects.values_list("allocated_milli_us", flat=True)) == 0
    assert DeviceHold.objects.filter(period__upper_inf=True).count() == 2


def test_the_same_key_submits_once(world: World) -> None:
    world.cycle()
    data = {"name": "x", "tenant": "t", "cluster": "c", "command": "true"}
    first, new = job_ask(actor=world.user, data=data, now=world.now, idempotency_key="k")
    again, second_new = job_ask(actor=world.user, data=data, now=world.now, idempotency_key="k")
    assert (new, second_new) == (True, False)
    assert first.pk == again.pk
    assert Job.objects.count() == 1
