from datetime import datetime, timedelta

import pytest

from scheduler.execute.base import Phase
from scheduler.models import Job, JobEvent
from scheduler.replays import Recording, recording
from scheduler.simulate.baselines import fifo
from scheduler.simulate.metrics import totals
from scheduler.simulate.pace import Pace
from scheduler.simulate.result import End
from scheduler.simulate.run import simulate
from tests.scheduler.world import START, World

pytestmark = pytest.mark.django_db


def since(world: World, hours: float = 24.0) -> Recording:
    begin = world.now - timedelta(hours=hours)
    return recording(cluster=world.cluster, since=begin, now=world.now)


def seconds(moment: datetime) -> float:
    return moment.timestamp()


def run(world: World, job: Job, for_s: float, phase: Phase = Phase.SUCCEEDED) -> None:
    """Let a started job run, and end."""
    world.says(job, Phase.RUNNING)
    world.cycle(after_s=0.0)
    world.now += timedelta(seconds=for_s)
    world.says(job, phase)
    world.cycle(after_s=0.0)


def two_jobs_one_after_the_other(world: World) -> tuple[Job, Job]:
    """Both need both devices: a is placed at 1 s and runs 600 s, b (of 1 s) after it, for 300 s."""
    a = world.submit("a", devices=2, time_limit_s=3600)
    world.now += timedelta(seconds=1)
    b = world.submit("b", devices=2, time_limit_s=3600)
    world.cycle(after_s=0.0)
    run(world, a, 600.0)
    run(world, b, 300.0)
    return a, b


def test_jobs_are_read_with_their_real_run_times() -> None:
    world = World()
    a, b = two_jobs_one_after_the_other(world)
    record = since(world)
    made = {job.spec.uid: job for job in record.trace.jobs}
    assert {uid: job.work for uid, job in made.items()} == {str(a.pk): 600.0, str(b.pk): 300.0}
    spec = made[str(a.pk)].spec
    assert (spec.submitted_s, spec.time_limit_s, spec.shape.devices) == (seconds(START), 3600.0, 2)
    assert (record.never_ran, record.still_run, record.begun) == (0, 0, frozenset())


def test_what_was_recorded_has_the_figures_of_what_was() -> None:
    world = World()
    a, b = two_jobs_one_after_the_other(world)
    record = since(world)
    seen = {job.uid: job for job in record.recorded.jobs}
    assert (seen[str(a.pk)].wait_s, seen[str(b.pk)].wait_s) == (1.0, 600.0)
    assert seen[str(b.pk)].state is End.COMPLETED
    assert totals(record.recorded).allocated_device_s == 2 * (600 + 300)


def test_the_same_policy_replays_the_same_waits() -> None:
    world = World()
    _, b = two_jobs_one_after_the_other(world)
    record = since(world)
    pace = Pace(least_s=0.0, wake_s=0.0)
    played = simulate(record.trace.world, record.trace.jobs, fifo(), pace=pace)
    by_uid = {job.uid: job for job in played.jobs}
    # the cycle that started a came a second after its submit; the simulator's comes at once
    assert by_uid[str(b.pk)].wait_s == 599.0


def test_job_that_ran_already_runs_on_for_what_was_left() -> None:
    world = World()
    a = world.submit("a", devices=1, time_limit_s=3600)
    world.cycle(after_s=1.0)
    run(world, a, 600.0)
    record = since(world, hours=400 / 3600)  # the last 400 s of its 600
    [made] = record.trace.jobs
    assert (made.work, made.spec.time_limit_s) == (400.0, 3400.0)
    assert record.begun == {str(a.pk)}


def test_job_that_ended_before_the_window_is_not_there() -> None:
    world = World()
    a = world.submit("a", devices=1)
    world.cycle(after_s=1.0)
    run(world, a, 60.0)
    world.now += timedelta(days=2)
    record = since(world)
    assert (record.trace.jobs, record.never_ran) == ((), 0)


def test_job_that_never_ran_is_counted_and_one_that_runs_is_taken_to_its_limit() -> None:
    world = World()
    world.submit("running", devices=2, time_limit_s=3600)
    world.cycle(after_s=1.0)
    world.submit("waiting", devices=2)
    world.cycle(after_s=100.0)
    record = since(world)
    [made] = record.trace.jobs
    assert (made.work, record.still_run, record.never_ran) == (3600.0, 1, 1)
    assert record.recorded.jobs[0].state is End.RUNNING


def test_evictions_of_the_past_are_counted_by_their_reason() -> None:
    world = World()
    a, _ = two_jobs_one_after_the_other(world)
    for reason in ("preempted", "node_lost", "started"):
        JobEvent.objects.create(
            job=a, at=world.now - timedelta(seconds=5), kind="state", to_state="queued",
            actor="scheduler", reason=reason,
        )  # fmt: skip
    seen = {job.uid: job for job in since(world).recorded.jobs}
    assert (seen[str(a.pk)].evictions, seen[str(a.pk)].losses) == (1, 1)


def test_recording_costs_the_same_number_of_queries_for_any_number_of_jobs(
    django_assert_max_num_queries,
) -> None:
    world = World()
    for name in "abcdef":
        job = world.submit(name, devices=2)
        world.cycle(after_s=1.0)
        run(world, job, 10.0)
    with django_assert_max_num_queries(24):
        assert len(since(world).trace.jobs) == 6
