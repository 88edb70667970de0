"""Starts are written in batches; a clash costs one job its turn, and only news is written."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pytest_django import DjangoAssertNumQueries

from scheduler import snapshots
from scheduler.core.plan import Plan, Start
from scheduler.decide import cycle
from scheduler.models import Cycle, Decision, DeviceHold, Intent, Job, JobEvent, Placement
from scheduler.services.jobs import job_cancel
from scheduler.services.plans import Committed, is_news, plan_commit
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return World()


def decided(world: World) -> tuple[snapshots.Frozen, Plan]:
    frozen = snapshots.take(cluster=world.cluster, now=world.now)
    policy = snapshots.policy_of(world.cluster)
    return frozen, cycle.decide(frozen.snapshot, policy, now_s=world.now.timestamp(), budget_s=1.0)


def commit(world: World, frozen: snapshots.Frozen, plan: Plan) -> Committed:
    return plan_commit(
        cluster=world.cluster,
        plan=plan,
        fleet=frozen.snapshot.fleet,
        keys=frozen.keys,
        preemption=snapshots.policy_of(world.cluster).preemption,
        now=world.now,
    )


def submit_later(world: World, name: str) -> Job:
    world.now += timedelta(seconds=1)  # the order of the queue is that of submission
    return world.submit(name, devices=1)


def on_devices(start: Start, devices: tuple[int, ...]) -> Start:
    return replace(start, replicas=(replace(start.replicas[0], devices=devices),))


def test_a_device_that_is_taken_costs_one_job_its_turn_and_no_other(world: World) -> None:
    jobs = [world.submit(f"job{i}", devices=1) for i in range(2)]
    frozen, plan = decided(world)
    first, second = (on_devices(start, (0,)) for start in plan.starts)
    done = commit(world, frozen, replace(plan, starts=(first, second)))
    assert done.started == (first.uid,)
    assert set(done.lost) == {second.uid}
    assert "device" in done.lost[second.uid]
    assert sorted(world.state(job) for job in jobs) == ["queued", "starting"]
    assert Cycle.objects.get().start_count == 1
    for model in (Placement, DeviceHold, Intent):
        assert model.objects.count() == 1
    assert JobEvent.objects.filter(to_state="starting").count() == 1


def test_a_job_cancelled_after_the_freeze_loses_its_start_and_keeps_no_reason(
    world: World,
) -> None:
    kept, gone, waits = (submit_later(world, f"job{i}") for i in range(3))
    frozen, plan = decided(world)
    job_cancel(actor=world.user, job=gone, now=world.now)
    job_cancel(actor=world.user, job=waits, now=world.now)
    done = commit(world, frozen, plan)
    assert done.lost == {str(gone.pk): "no longer queued"}
    assert world.state(kept) == "starting"
    assert (world.state(waits), waits.pending) == ("cancelled", {})
    assert not Decision.objects.filter(verb="hold").exists()


def test_many_starts_take_a_fixed_number_of_queries(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    world = World()
    for i in range(30):
        world.add_node(f"n{i:02}")
        world.submit(f"job{i}", devices=2)
    frozen, plan = decided(world)
    assert len(plan.starts) == 30
    with django_assert_max_num_queries(17):
        assert len(commit(world, frozen, plan).started) == 30


def test_the_same_answer_is_written_once(world: World) -> None:
    world.submit(devices=2)
    waiting = world.submit(devices=2)
    world.cycle()
    world.cycle()
    assert Decision.objects.filter(job=waiting).count() == 1
    waiting.refresh_from_db()
    said = waiting.pending
    for _ in range(3):
        world.cycle(after_s=0.5)
    waiting.refresh_from_db()
    assert waiting.pending == said


def test_only_what_moved_enough_is_news(world: World) -> None:
    now = world.now

    def answer(wait_s: float, age: float = 1.0, **more: object) -> dict[str, object]:
        start = (now + timedelta(seconds=wait_s)).isoformat()
        eta = {"expected_start_p50": start, "expected_start_p90": start}
        return {"code": "fragmented", "priority_parts": {"age": age}, **eta, **more}

    assert not is_news(answer(100), answer(109), now)
    assert is_news(answer(100), answer(110), now)
    assert not is_news(answer(3600), answer(3700), now)  # 100 s of an hour: no news
    assert is_news(answer(3600), answer(3800), now)
    assert not is_news(answer(0), answer(0, age=5.9), now)
    assert is_news(answer(0), answer(0, age=6.0), now)
    assert is_news(answer(0), answer(0, evidence={"free": 1}), now)
    assert is_news({"code": "pending_evaluation"}, answer(0), now)
    assert is_news(answer(0), {**answer(0), "expected_start_p50": None}, now)


def test_amounts_that_are_no_numbers_do_not_stop_a_cycle(world: World) -> None:
    job = world.submit(devices=1)
    frozen, plan = decided(world)
    nan = float("nan")
    solver = replace(plan.solver, objective=nan, gap_frac=float("inf"), note="a\x00")
    start = replace(plan.starts[0], score=nan, priority_parts={"age": nan})
    commit(world, frozen, replace(plan, starts=(start,), solver=solver))
    assert world.state(job) == "starting"
    row = Cycle.objects.get()
    assert (row.objective, row.gap_frac, row.note) == (None, None, "a\ufffd")


def test_steps_are_timed_up_to_the_last_one(world: World) -> None:
    world.submit()
    world.cycle()
    row = Cycle.objects.get()
    assert set(row.timings) == {"observe", "snapshot", "decide", "commit", "dispatch"}
    assert row.wall_ms == round(sum(row.timings.values()))


def test_a_policy_that_was_written_wrong_is_not_obeyed_and_stops_nothing(world: World) -> None:
    world.cluster.policy.strategy = "magic"
    world.cluster.policy.weights = {"order": {"age": 7, "size": "big", "luck": 1}, "objective": 3}
    world.cluster.policy.save()
    policy = snapshots.policy_of(world.cluster)
    assert policy.strategy == "rules"
    assert (policy.order.age, policy.order.size) == (7.0, 50.0)
    job = world.submit()
    world.cycle()
    assert world.state(job) == "starting"
    assert Job.objects.count() == 1
