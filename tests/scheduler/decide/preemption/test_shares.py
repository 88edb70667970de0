"""What an elastic job shares with waiting jobs of its own tenant, and how often."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.core.plan import EvictionCause, Plan
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.reasons import Pending
from scheduler.core.snapshot import JobSpec, ReplicaPlacement, RunningJob, Snapshot
from scheduler.decide.cycle import decide, estimate
from tests.builders import NOW_S, FleetBuilder, job, tenant, world
from tests.properties.streams import Toy

RULES = Policy(strategy="rules")


def elastic(ran_s: float, **changes: Any) -> RunningJob:
    """Return a job of t on eight devices, one replica each, that needs one of them."""
    places = tuple(ReplicaPlacement(0, (k,), 1000, 80_000) for k in range(8))
    spec = job("E", devices=1, replicas=1, replicas_max=8, limit_s=90_000)
    return RunningJob(replace(spec, **changes), places, NOW_S - ran_s)


def beside(one: RunningJob, *queue: JobSpec) -> Snapshot:
    """Return eight devices, all of which t owns and the elastic job holds."""
    tenants = [tenant("t", a100=8)]
    return world(FleetBuilder().node("n", devices=8), queue, running=[one], tenants=tenants)


def plan_of(snapshot: Snapshot, policy: Policy = RULES) -> Plan:
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=1.0)
    assert plan.solver.status != "error", plan.solver.note
    return plan


def waits(**changes: Any) -> JobSpec:
    return replace(job("a", devices=1, submitted_s=NOW_S - 300), **changes)


@pytest.mark.parametrize(("ran_s", "resizes"), [(599, 0), (600, 1)])
def test_a_job_shares_once_it_has_run_for_the_least_time(ran_s: float, resizes: int) -> None:
    """Since it began or was last resized, for which it begins anew: 600 s."""
    plan = plan_of(beside(elastic(ran_s), waits()))
    assert [(r.uid, r.cause) for r in plan.resizes] == [("E", EvictionCause.SHARED)] * resizes


def test_a_higher_class_does_not_wait_for_that_where_priority_counts() -> None:
    by_priority = replace(RULES, preemption=PreemptionPolicy(by_priority=True))
    plan = plan_of(beside(elastic(1), waits(priority=1)), by_priority)
    assert [(r.uid, r.cause) for r in plan.resizes] == [("E", EvictionCause.PREEMPTED)]


def test_an_estimate_says_from_when_on_a_job_would_share() -> None:
    """It ran for 100 s of 600 s: it shares in 500 s, and has ended with its grace of 30 s."""
    answer = estimate(beside(elastic(100)), RULES, waits(submitted_s=NOW_S), now_s=NOW_S)
    assert isinstance(answer, Pending)
    later = answer.evidence["would_evict"]
    assert isinstance(later, dict)
    assert (later["shrunk_jobs"], later["asks_at_s"]) == (1, NOW_S + 500)
    assert later["room_at_s"] == NOW_S + 530


def test_a_stream_of_small_jobs_does_not_begin_an_elastic_job_anew_again_and_again() -> None:
    """Every two minutes one more comes: it shares once in the first ten minutes, then in turn.

    It is told at 60 s, when the first has waited for the delay, goes on at 120 s, in the next
    cycle after its grace, and so shares again from 720 s on; then it goes on at 780 s.
    """
    toy = Toy(FleetBuilder().node("n", devices=8), [tenant("t", a100=8)], RULES)
    toy.running["E"] = elastic(3600)
    toy.ends_s["E"], toy.lasts_s["E"] = NOW_S + 90_000, 90_000
    told = []
    for cycle in range(30):
        if cycle % 2 == 0 and cycle < 14:
            toy.arrive(job(f"w{cycle:02d}", devices=1, limit_s=7200), 7000)
        _, plan = toy.cycle()
        told += [(toy.now_s - NOW_S, len(resize.replicas)) for resize in plan.resizes]
        toy.pass_time(60)
    assert told == [(60, 7), (720, 6), (1380, 5)]
