"""What broke in between is found and repaired, and nothing is guessed."""

import logging

import pytest

from scheduler import loop
from scheduler.execute.base import (
    ExecutorRejectedError,
    ExecutorUnavailableError,
    Observation,
    Phase,
)
from scheduler.feedback import reconcile as module
from scheduler.models import Intent, LedgerEntry, Placement
from scheduler.services import attempts
from scheduler.services.jobs import job_cancel
from telemetry.models import Device, Node
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return World()


def look(world: World) -> None:
    ports = loop.Ports(executor=world.executor, node_lost_after_s=60.0)
    loop.look(world.cluster, ports, clock=lambda: world.now)


def test_a_job_cancelled_after_a_start_that_was_not_noted_holds_until_it_has_stopped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(**_what: object) -> None:
        raise KeyboardInterrupt

    job = world.submit(devices=1)
    monkeypatch.setattr(attempts, "intents_done", die)
    with pytest.raises(KeyboardInterrupt):
        world.cycle()
    monkeypatch.undo()
    assert Intent.objects.get().state == "pending"
    assert (str(job.pk), 1) in world.executor.bound  # it runs, and the database can't know
    job_cancel(actor=world.user, job=job, now=world.now)
    evict = world.executor.evict

    def slow(uid: str, attempt: int, /, *, grace_s: float, reason: str) -> None:
        world.executor.evicted.append((uid, attempt, reason))
        assert grace_s > 0

    monkeypatch.setattr(world.executor, "evict", slow)
    world.cycle()
    assert world.state(job) == "starting"
    assert Device.objects.filter(allocated_milli=1000).count() == 1
    assert world.executor.evicted == [(str(job.pk), 1, "cancelled")]
    world.says(job, Phase.CANCELLED, reason="cancelled")
    monkeypatch.setattr(world.executor, "evict", evict)
    world.cycle()
    assert world.state(job) == "cancelled"


def test_a_start_is_never_sent_to_a_node_that_is_drained_meanwhile(world: World) -> None:
    world.executor.raises = ExecutorUnavailableError("away")
    job = world.submit(devices=1)
    world.cycle()
    Node.objects.update(scheduling="draining")
    world.now = world.now.replace(year=2025)  # the clock steps back: the order is not by time
    world.cycle()
    world.executor.raises = None
    world.cycle()
    assert not world.executor.bound
    assert world.state(job) == "queued"


def test_a_refused_start_is_noted_with_its_end_or_not_at_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(**_what: object) -> None:
        raise KeyboardInterrupt

    world.executor.bind_raises = ExecutorRejectedError("no")
    job = world.submit()
    monkeypatch.setattr(attempts, "attempt_refused", die)
    with pytest.raises(KeyboardInterrupt):
        world.cycle()
    monkeypatch.undo()
    assert Intent.objects.get().state == "pending"
    world.cycle()
    assert (world.state(job), job.reason) == ("failed", "start_failed")


def test_an_attempt_that_does_not_stop_is_told_again_after_a_minute(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def deaf(uid: str, _attempt: int, /, *, grace_s: float, reason: str) -> None:
        assert grace_s > 0
        told.append(f"{uid} {reason}")

    monkeypatch.setattr(world.executor, "evict", deaf)
    job = world.submit()
    world.cycle()
    world.says(job, Phase.RUNNING)
    world.cycle()
    job_cancel(actor=world.user, job=job, now=world.now)
    world.cycle()
    world.cycle(after_s=30)
    assert len(told) == 1
    world.cycle(after_s=31)
    world.cycle()
    assert told == [f"{job.pk} cancelled"] * 2


def test_a_stop_that_is_refused_is_tried_again_and_keeps_no_start_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.submit(devices=1)
    world.cycle()

    def refuse(*_args: object, **_more: object) -> None:
        raise ExecutorRejectedError("not now")

    monkeypatch.setattr(world.executor, "evict", refuse)
    job_cancel(actor=world.user, job=first, now=world.now)
    second = world.submit(devices=1)
    world.cycle()
    assert (str(second.pk), 1) in world.executor.bound
    monkeypatch.undo()
    world.cycle()
    assert world.state(first) == "cancelled"


def test_a_lost_attempt_on_a_lost_node_waits_for_another_turn(world: World) -> None:
    job = world.submit(devices=1)
    world.cycle()
    world.says(job, Phase.RUNNING)
    world.cycle()
    Node.objects.update(state="unknown")
    world.cycle(after_s=61)
    world.says(job, Phase.LOST, reason="supervisor_lost")
    world.cycle()
    assert world.state(job) == "queued"
    assert job.pending["code"] == "nodes_unavailable"


ABSURD = {
    "times that are no times": {"started_s": float("nan"), "finished_s": 1e300},
    "texts that no column takes": {"reason": "r\x00" * 60, "message": "\x00\ud800" * 9999},
    "an exit code of 64 bits": {"exit_code": 2**40},
}


@pytest.mark.parametrize("more", ABSURD.values(), ids=ABSURD.keys())
def test_an_absurd_end_is_an_end(world: World, more: dict[str, object]) -> None:
    job = world.submit()
    world.cycle()
    key = (str(job.pk), 1)
    values: dict[str, object] = {"phase": Phase.FAILED, "exit_code": 1, **more}
    world.executor.seen[key] = Observation(*key, **values)  # type: ignore[arg-type]
    world.cycle()
    assert world.state(job) == "failed"
    assert job.finished_at == world.now


def test_one_end_that_can_not_be_stored_does_not_stop_the_others(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [world.submit(f"job{i}") for i in range(2)]
    world.cycle()
    broken = Placement.objects.get(job=jobs[0])
    LedgerEntry.objects.create(  # its end is booked twice, which the database refuses
        placement=broken,
        tenant=world.tenant,
        cluster=world.cluster,
        owner=world.user,
        flavor="cpu",
        milli=1,
        opened_at=world.now,
        closed_at=world.now,
        allocated_milli_us=0,
    )
    for job in jobs:
        world.says(job, Phase.SUCCEEDED, exit_code=0)
    world.cycle()
    assert [world.state(job) for job in jobs] == ["starting", "succeeded"]
    assert "attempt not reconciled" in caplog.text
    assert (str(jobs[0].pk), 1) in world.executor.seen  # kept, for its end is not stored


def test_a_stranger_is_named_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    module._warn_of_stranger.cache_clear()
    stranger = "00000000-0000-4000-8000-00000000cafe"
    world.executor.seen[stranger, 1] = Observation(stranger, 1, Phase.RUNNING)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            world.cycle()
    assert caplog.text.count(stranger) == 1


def test_a_cluster_that_was_switched_off_ends_what_runs_and_starts_nothing(world: World) -> None:
    runs = world.submit("runs", devices=1)
    world.cycle()
    world.says(runs, Phase.RUNNING)
    world.executor.bind_raises = ExecutorUnavailableError("away")
    starting = world.submit("starting", devices=1)
    world.cycle()
    world.executor.bind_raises = None
    world.cluster.enabled = False
    world.cluster.save(update_fields=["enabled"])
    look(world)
    assert len(world.executor.bound) == 1
    for job in (runs, starting):
        job_cancel(actor=world.user, job=job, now=world.now)
    look(world)
    look(world)
    assert [world.state(job) for job in (runs, starting)] == ["cancelled", "cancelled"]
    assert len(world.executor.bound) == 1
