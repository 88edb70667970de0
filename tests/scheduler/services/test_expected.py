"""What jobs were told of their start is kept, and comes back as what it was worth."""

from datetime import timedelta
from typing import Any

import pytest

from scheduler import snapshots
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import Expectation
from scheduler.execute.base import Phase
from scheduler.models import ExpectedStart, Job
from scheduler.services.expected import expected_note
from scheduler.services.jobs import job_cancel
from scheduler.services.retention import tidy
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    """Return a world whose two devices are held by a job with a time limit of 1000 s."""
    world = World()
    world.submit("first", devices=2, time_limit_s=1000)
    world.cycle()
    return world


def waits(world: World, **fields: Any) -> Job:
    job = world.submit("second", **{"devices": 2, "time_limit_s": 1000, **fields})
    world.cycle()
    return job


def known(world: World) -> tuple[Expectation, ...]:
    return snapshots.take(cluster=world.cluster, now=world.now).snapshot.expectations


def test_what_a_job_is_told_first_is_kept(world: World) -> None:
    """The first job holds everything for 1000 s from its start 1 s ago."""
    job = waits(world)
    said = ExpectedStart.objects.get()
    assert (said.job_id, said.given_at, said.over_at) == (job.pk, world.now, None)
    assert said.planned_p50_s == said.planned_p90_s == said.told_p50_s == pytest.approx(999.0)
    world.cycle(after_s=60)
    assert ExpectedStart.objects.get().given_at == said.given_at
    assert known(world) == (Expectation(said.planned_p50_s, 999.0, 60.0, False, False, 999.0),)


def test_who_starts_in_its_first_cycle_was_told_nothing(world: World) -> None:
    assert not ExpectedStart.objects.exists()
    assert known(world) == ()


def test_a_start_ends_the_wait_and_what_comes_after_does_not_count(world: World) -> None:
    job = waits(world)
    world.says(Job.objects.get(name="first"), Phase.SUCCEEDED)
    world.cycle(after_s=30)
    assert world.state(job) == "starting"
    assert known(world) == (Expectation(999.0, 999.0, 30.0, True, False, 999.0),)
    world.cycle(after_s=30)
    assert known(world) == (Expectation(999.0, 999.0, 30.0, True, False, 999.0),)


def test_a_job_that_is_given_up_waited_until_then(world: World) -> None:
    job = waits(world)
    world.now += timedelta(seconds=5)
    job_cancel(actor=world.user, job=job, now=world.now)
    waits(world)
    over = ExpectedStart.objects.get(job=job)
    assert over.over_at == world.now
    assert not over.started


def test_a_job_that_waits_again_after_a_start_is_not_told_for_the_first_time(world: World) -> None:
    job = waits(world)
    ExpectedStart.objects.all().delete()
    Job.objects.filter(pk=job.pk).update(attempt=1)
    world.cycle()
    assert not ExpectedStart.objects.exists()


def test_a_gang_is_noted_as_one(world: World) -> None:
    waits(world, devices=1, replicas=2)
    assert ExpectedStart.objects.get().gang


def test_odd_times_are_told_to_nobody(world: World) -> None:
    """One is not a number, one is missing, and one lies in the past, where a wait is none."""
    job, now_s = world.submit("third"), world.now.timestamp()
    nan = Pending(str(job.pk), WaitReason.FRAGMENTED, {}, (), float("nan"), now_s, 1, {}, 0.0, 0.0)
    expected_note(cluster=world.cluster, pending=[nan], now=world.now)
    none = Pending(str(job.pk), WaitReason.FRAGMENTED)
    expected_note(cluster=world.cluster, pending=[none], now=world.now)
    assert not ExpectedStart.objects.exists()
    past = Pending(str(job.pk), WaitReason.FRAGMENTED, {}, (), 5.0, 3.0, 1, {}, now_s + 9, now_s)
    expected_note(cluster=world.cluster, pending=[past], now=world.now)
    said = ExpectedStart.objects.get()
    assert (said.told_p50_s, said.told_p90_s) == (0.0, 0.0)
    assert (said.planned_p50_s, said.planned_p90_s) == pytest.approx((9.0, 9.0))


def test_old_waits_are_forgotten_and_those_that_last_are_not(world: World) -> None:
    job = waits(world)
    late = world.now + timedelta(days=999)
    tidy(before=late)
    assert ExpectedStart.objects.filter(job=job).exists()
    world.says(Job.objects.get(name="first"), Phase.SUCCEEDED)
    world.cycle()
    tidy(before=late)
    assert not ExpectedStart.objects.exists()


def test_it_takes_two_queries_however_many_wait(
    world: World, django_assert_num_queries: Any
) -> None:
    now_s = world.now.timestamp()
    jobs = [world.submit(f"more{i}", devices=2) for i in range(12)]
    pending = [
        Pending(str(job.pk), WaitReason.FRAGMENTED, {}, (), now_s, now_s, 1, {}, now_s, now_s)
        for job in jobs
    ]
    with django_assert_num_queries(4):  # and a savepoint, made and released
        expected_note(cluster=world.cluster, pending=pending, now=world.now)
    assert ExpectedStart.objects.count() == 12
