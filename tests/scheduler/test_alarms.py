"""Strategies that fail in real cycles: the rules answer, an alarm rises, and clears itself."""

import logging
from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler.core.plan import Plan, SolverReport
from scheduler.core.policy import Policy
from scheduler.decide.strategies.base import STRATEGIES
from scheduler.models import Cycle, SchedulingPolicy, StrategyAlarm
from scheduler.selectors.strategies import strategy_alarms
from scheduler.services.alarms import GOOD_CYCLES, strategy_noted
from tests.scheduler.decide import misbehaving
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db

OPTIMISING = Policy(strategy="optimising")
TRAINING = Policy(strategy="rules", kinds=(("training", "optimising"),))
BAD = SolverReport("rules", "optimising", "late")
GOOD = SolverReport("optimising", "optimising", "optimal")
BY_RULES = SolverReport("rules", "rules", "not_needed")


@pytest.fixture
def world() -> World:
    return World()


def decided(report: SolverReport, *, carried_from_s: float = 0.0) -> Plan:
    return Plan("c", 1000.0, (), (), (), report, carried_from_s=carried_from_s)


def note(world: World, *plans: Plan, policy: Policy = OPTIMISING) -> None:
    for plan in plans:
        strategy_noted(cluster=world.cluster, policy=policy, plan=plan, now=world.now)


def choose(world: World, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, strategy, f"{misbehaving.MODULE}.{strategy}")
    SchedulingPolicy.objects.filter(cluster=world.cluster).update(strategy=strategy, budget_s=0.2)


@pytest.mark.parametrize(
    ("strategy", "status"), [("raising", "error"), ("sleepy", "late"), ("greedy", "invalid")]
)
def test_the_rules_answer_it_is_recorded_and_alarmed(
    world: World,
    strategy: str,
    status: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    choose(world, strategy, monkeypatch)
    jobs = [world.submit(devices=2), world.submit(devices=2)]
    with caplog.at_level(logging.ERROR, logger="scheduler.services.alarms"):
        report = world.cycle()
    assert len(report.started) == 1
    assert sorted(world.state(job) for job in jobs) == ["queued", "starting"]
    cycle = Cycle.objects.get()
    assert (cycle.asked, cycle.strategy, cycle.status) == (strategy, "rules", status)
    alarm = StrategyAlarm.objects.get()
    assert (alarm.strategy, alarm.status, alarm.count) == (strategy, status, 1)
    assert (alarm.since, alarm.last_at) == (world.now, world.now)
    assert alarm.note == cycle.note != ""
    assert f"strategy={strategy} status={status} count=1" in caplog.text


def test_a_fault_of_the_engine_itself_leaves_everything_as_it_is_and_is_alarmed(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = world.submit(devices=1)

    def broken(*_: object, **__: object) -> None:
        raise IndexError("row 3 of 3")

    with monkeypatch.context() as patch:
        patch.setattr("scheduler.loop.cycle.decide", broken)
        assert world.cycle().started == ()
    assert world.state(job) == "queued"
    assert "no decision cluster=c" in caplog.text
    job.refresh_from_db()
    assert job.pending["code"] == "pending_evaluation"
    alarm = StrategyAlarm.objects.get()
    assert (alarm.strategy, alarm.status) == ("rules", "error")
    assert alarm.note == Cycle.objects.get().note == "IndexError: row 3 of 3"
    assert world.cycle().started == (str(job.pk),)


def test_an_alarm_counts_until_enough_cycles_went_well(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(world, "raising", monkeypatch)
    world.submit(devices=1)
    world.cycle()
    first = world.now
    world.cycle()
    alarm = strategy_alarms().get()
    assert (alarm.count, alarm.since, alarm.last_at) == (2, first, world.now)
    SchedulingPolicy.objects.update(strategy="rules")
    for _ in range(GOOD_CYCLES - 1):
        world.cycle()
    assert strategy_alarms().get().good_count == GOOD_CYCLES - 1
    world.cycle()
    assert not strategy_alarms()
    assert StrategyAlarm.objects.get().cleared_at == world.now


def test_one_failure_begins_the_count_of_good_cycles_anew(world: World) -> None:
    note(world, *map(decided, [BAD, *[GOOD] * (GOOD_CYCLES - 1), BAD, GOOD]))
    alarm = StrategyAlarm.objects.get()
    assert (alarm.count, alarm.good_count, alarm.cleared_at) == (2, 1, None)


def test_cycles_in_which_it_was_not_tried_say_nothing(world: World) -> None:
    quiet = decided(SolverReport("rules", "optimising", "not_needed"))
    note(world, decided(BAD), *[quiet, decided(GOOD, carried_from_s=990.0)] * GOOD_CYCLES)
    assert strategy_alarms().get().good_count == 0
    # an admin has gone over to the rules: they answer, and nobody waits for the solver any more
    note(world, *[decided(BY_RULES)] * GOOD_CYCLES, policy=Policy(strategy="rules"))
    assert not strategy_alarms()


def test_cycles_without_a_job_of_its_kind_say_nothing_of_the_strategy_of_a_kind(
    world: World,
) -> None:
    note(world, decided(BAD), *[decided(BY_RULES)] * GOOD_CYCLES, policy=TRAINING)
    assert strategy_alarms().get().good_count == 0
    note(world, *[decided(GOOD)] * GOOD_CYCLES, policy=TRAINING)
    assert not strategy_alarms()


def test_cycles_with_only_jobs_of_other_kinds_leave_the_alarm_of_the_cluster_s_own_strategy(
    world: World,
) -> None:
    batch = replace(OPTIMISING, kinds=(("batch", "rules"),))
    note(world, decided(BAD), *[decided(BY_RULES)] * GOOD_CYCLES, policy=batch)
    assert strategy_alarms().get().good_count == 0


def test_a_fault_of_the_rules_does_not_hide_the_alarm_of_another_strategy(world: World) -> None:
    broken = SolverReport("rules", "rules", "error", note="IndexError: row 3 of 3")
    note(world, decided(BAD), decided(broken), *[decided(BY_RULES)] * GOOD_CYCLES, policy=TRAINING)
    # the rules have answered again; of the solver nothing is known
    alarm = strategy_alarms().get()
    assert (alarm.strategy, alarm.status, alarm.good_count) == ("optimising", "late", 0)


def test_what_another_strategy_improves_is_an_answer_of_the_rules_too(world: World) -> None:
    broken = SolverReport("rules", "rules", "error")
    note(world, decided(broken), *[decided(GOOD)] * GOOD_CYCLES)
    assert not strategy_alarms()


def test_a_strategy_that_fails_again_later_is_a_new_alarm(world: World) -> None:
    bad = replace(BAD, note="a\x00b")
    note(world, *map(decided, [bad, *[GOOD] * GOOD_CYCLES, bad]))
    assert StrategyAlarm.objects.count() == 2
    assert strategy_alarms().get().count == 1


def test_a_failure_writes_no_more_of_the_alarm_than_it_changes(world: World) -> None:
    note(world, decided(BAD))
    with CaptureQueriesContext(connection) as seen:
        note(world, decided(BAD))
    [update] = [query["sql"] for query in seen if query["sql"].startswith("UPDATE")]
    assert "since" not in update
    assert "cleared_at" not in update.split("WHERE")[0]


def test_cycles_that_go_well_leave_nothing(world: World) -> None:
    world.submit(devices=1)
    world.cycle()
    assert not StrategyAlarm.objects.exists()
