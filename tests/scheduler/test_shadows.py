"""A shadow decides beside a cycle, is written down, and never gets in anybody's way."""

import logging
from dataclasses import replace

import pytest
from django.core.cache import cache

from scheduler import loop, shadows, tasks
from scheduler.decide.strategies.base import STRATEGIES
from scheduler.models import Job, SchedulingPolicy, ShadowPlan
from scheduler.selectors.strategies import shadow_list
from tests.scheduler.decide import misbehaving
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    cache.clear()
    world = World()
    SchedulingPolicy.objects.update(shadow="optimising", budget_s=5.0)
    return world


def decided(world: World) -> shadows.Decided:
    found = world.cycle().decided
    assert found is not None
    return found


def clock() -> float:
    return 0.0


def test_what_the_shadow_decides_is_written_beside_the_cycle_and_not_carried_out(
    world: World,
) -> None:
    """The rules start the first comer, on both devices; the program starts two of one device.

    With three jobs waiting, two that are served are worth more than one.
    """
    large = world.submit(devices=2)
    small = [world.submit(devices=1), world.submit(devices=1)]
    last = decided(world)
    assert shadows.wanted(last)
    plan = shadows.run(last, clock=clock)
    assert plan is not None
    assert shadow_list(cluster=world.cluster).get() == plan
    assert plan.cycle == last.cycle
    assert (plan.strategy, plan.answered_by) == ("optimising", "optimising")
    assert plan.objective is not None
    assert plan.objective_carried is not None
    assert plan.objective > plan.objective_carried
    assert plan.start_count == 2
    assert plan.differences["only_carried"] == {"count": 1, "jobs": [str(large.pk)]}
    assert plan.differences["only_shadow"]["count"] == 2
    assert {world.state(job) for job in small} == {"queued"}


def test_no_shadow_is_wanted_where_none_is_set_or_it_is_who_decides(world: World) -> None:
    world.submit(devices=1)
    last = decided(world)
    for shadow in ("", "rules"):
        assert not shadows.wanted(replace(last, policy=replace(last.policy, shadow=shadow)))


def test_a_shadow_that_fails_is_logged_and_nothing_else_happens(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.submit(devices=1)
    last = decided(world)

    def broken(*_: object, **__: object) -> None:
        message = "out of memory"
        raise MemoryError(message)

    monkeypatch.setattr(shadows, "compare", broken)
    with caplog.at_level(logging.ERROR, logger="scheduler.shadows"):
        assert shadows.run(last, clock=clock) is None
    assert "shadow failed cluster=c strategy=optimising" in caplog.text
    assert not ShadowPlan.objects.exists()
    monkeypatch.undo()
    assert shadows.run(last, clock=clock) is not None  # the next one may run


def test_a_strategy_that_raises_in_the_shadow_is_written_down_as_that(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STRATEGIES, "raising", f"{misbehaving.MODULE}.raising")
    world.submit(devices=1)
    last = decided(world)
    last = replace(last, policy=replace(last.policy, shadow="raising"))
    plan = shadows.run(last, clock=clock)
    assert plan is not None
    assert (plan.answered_by, plan.status) == ("rules", "error")


def test_one_shadow_at_a_time_runs_for_a_cluster(world: World) -> None:
    world.submit(devices=1)
    last = decided(world)
    cache.add("shadow:c", 1)
    assert shadows.run(last, clock=clock) is None


def test_the_task_runs_the_shadow_after_the_cycle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.submit(devices=1)
    ports = loop.Ports(executor=world.executor, node_lost_after_s=60.0)
    monkeypatch.setattr(tasks, "_ports", lambda _: ports)
    tasks.run_cycle("c")
    assert Job.objects.get().state == "starting"
    assert ShadowPlan.objects.get().strategy == "optimising"
