"""Evictions and resizes of hand-made plans: who goes, who comes back, what is promised."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduler import snapshots
from scheduler.core.plan import EvictionCause, Plan, Preempt, Resize
from scheduler.core.snapshot import RunningJob
from scheduler.decide import cycle
from scheduler.execute.base import Phase
from scheduler.models import Cycle, Decision, Intent, Job, JobEvent, Placement
from scheduler.services.jobs import job_cancel
from scheduler.services.plans import Committed, plan_commit
from telemetry.models import Node
from tests.scheduler.invariants import assert_sound
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db

GRACE_S = 30.0


@pytest.fixture
def world() -> World:
    made = World()
    made.executor.patient = True
    return made


def running(world: World, name: str = "victim", **fields: Any) -> Job:
    """Return a job that runs since now."""
    job = world.submit(name, **{"devices": 2, **fields})
    world.cycle()
    world.says(job, Phase.RUNNING)
    world.cycle()
    assert world.state(job) == "running"
    return job


def decided(world: World, **changes: Any) -> tuple[snapshots.Frozen, Plan]:
    frozen = snapshots.take(cluster=world.cluster, now=world.now)
    policy = snapshots.policy_of(world.cluster)
    plan = cycle.decide(frozen.snapshot, policy, now_s=world.now.timestamp(), budget_s=1.0)
    return frozen, replace(plan, **changes)


def commit(world: World, frozen: snapshots.Frozen, plan: Plan) -> Committed:
    policy = snapshots.policy_of(world.cluster)
    return plan_commit(
        cluster=world.cluster,
        plan=plan,
        fleet=frozen.snapshot.fleet,
        keys=frozen.keys,
        preemption=policy.preemption,
        now=world.now,
    )


def evict(
    world: World,
    victims: Sequence[Job],
    beneficiary: Job,
    cause: EvictionCause = EvictionCause.RECLAIMED,
) -> Committed:
    preempts = tuple(
        Preempt(str(v.pk), str(beneficiary.pk), cause, {"lost_device_s": 7, "tenant": "secret"})
        for v in victims
    )
    return commit(world, *decided(world, preempts=preempts))


def seen_running(world: World) -> RunningJob:
    (found,) = snapshots.take(cluster=world.cluster, now=world.now).snapshot.running
    return found


def test_an_evicted_job_makes_room_and_comes_back_without_back_off(world: World) -> None:
    victim = running(world, checkpoint_interval_s=60)
    needy = world.submit("needy", devices=2, priority_class="high")
    world.now += timedelta(seconds=100)
    done = evict(world, [victim], needy)
    assert (dict(done.lost), done.cycle.pk) == ({}, Cycle.objects.latest("pk").pk)
    assert Cycle.objects.get(pk=done.cycle.pk).evict_count == 1
    world.cycle()
    assert world.executor.evicted == [(str(victim.pk), 1, "reclaimed")]
    assert world.executor.graces[str(victim.pk), 1] == GRACE_S
    assert world.state(victim) == "running"  # it has its grace
    world.says(victim, Phase.CANCELLED, reason="cancelled", exit_code=143)
    report = world.cycle(after_s=5)
    assert report.started == (str(needy.pk),)
    victim.refresh_from_db()
    assert (victim.state, victim.preempted_count, victim.attempt) == ("queued", 1, 1)
    assert (victim.not_before, victim.started_at, victim.reason) == (None, None, "")
    needy.refresh_from_db()
    assert (needy.state, needy.promised_at) == ("starting", None)
    assert_sound(jobs=2)


def test_both_sides_are_told_in_numbers_and_no_other_teams_names(world: World) -> None:
    """It ran 106 s, with a checkpoint at 60 s: 46 s of 2 devices are lost."""
    victim = running(world, checkpoint_interval_s=60)
    started = Job.objects.get(pk=victim.pk).started_at
    assert started is not None
    needy = world.submit("needy", devices=2)
    world.now = started + timedelta(seconds=100)
    evict(world, [victim], needy, EvictionCause.PREEMPTED)
    told = JobEvent.objects.get(job=victim, kind="eviction")
    assert told.reason == "preempted"
    assert told.data == {"lost_device_s": 7, "grace_s": 30.0, "beneficiary": str(needy.pk)}
    promise = JobEvent.objects.get(job=needy, kind="promise")
    assert (promise.reason, promise.data) == ("promised", {"jobs": [str(victim.pk)]})
    decision = Decision.objects.get(job=victim, verb="preempt")
    assert (decision.code, decision.evidence) == ("preempted", told.data)
    world.cycle()
    world.now = started + timedelta(seconds=106)
    world.says(victim, Phase.CANCELLED)
    world.cycle(after_s=0)
    back = JobEvent.objects.get(job=victim, to_state="queued", from_state="running")
    assert back.reason == "preempted"
    assert back.data == {"lost_s": 46, "lost_device_s": 92, "beneficiary": str(needy.pk)}


def test_a_checkpoint_that_was_seen_counts_more_than_one_declared(world: World) -> None:
    """At 100 s the interval would have 60 s safe; the executor saw the last checkpoint at 10 s.

    In its grace the job saves once more, at 104 s, and ends at 106 s: 2 s of 2 devices are lost.
    """
    victim = running(world, checkpoint_interval_s=60)
    started = Job.objects.get(pk=victim.pk).started_at
    assert started is not None
    world.says(
        victim,
        Phase.RUNNING,
        started_s=started.timestamp(),
        checkpointed_s=started.timestamp() + 10,
    )
    world.now = started + timedelta(seconds=99)
    world.cycle()
    assert seen_running(world).checkpointed_s == started.timestamp() + 10
    evict(world, [victim], world.submit("needy", devices=2))
    world.now = started + timedelta(seconds=106)
    world.says(victim, Phase.CANCELLED, checkpointed_s=started.timestamp() + 104)
    world.cycle(after_s=0)
    back = JobEvent.objects.get(job=victim, to_state="queued", from_state="running")
    assert (back.data["lost_s"], back.data["lost_device_s"]) == (2, 4)
    placement = Placement.objects.get(job=victim)
    assert placement.checkpointed_at == started + timedelta(seconds=104)


def test_who_saved_last_makes_room_though_it_has_run_longer(world: World) -> None:
    world.cluster.policy.preempt_by_priority = True
    world.cluster.policy.preempt_delay_s = world.cluster.policy.preempt_min_runtime_s = 0
    world.cluster.policy.save()
    older = running(world, "older", devices=1, priority_class="low")
    world.now += timedelta(seconds=100)
    running(world, "newer", devices=1, priority_class="low")
    needy = world.submit("needy", devices=1, priority_class="high")
    world.now += timedelta(seconds=60)
    world.says(older, Phase.RUNNING, checkpointed_s=world.now.timestamp())
    world.cycle()
    (intent,) = Intent.objects.filter(verb="evict")
    assert (intent.placement.job_id, intent.beneficiary_id) == (older.pk, needy.pk)


def test_what_runs_out_is_seen_by_the_next_decision(world: World) -> None:
    victim = running(world)
    assert seen_running(world).ending_s is None
    needy = world.submit("needy", devices=2)
    evict(world, [victim], needy)
    found = seen_running(world)
    assert found.ending_s == world.now.timestamp() + GRACE_S
    assert found.keeps == ()
    (waiting,) = snapshots.take(cluster=world.cluster, now=world.now).snapshot.pending
    assert waiting.promised_s == world.now.timestamp()


def test_a_cluster_whose_clock_runs_faster_gives_its_own_seconds(world: World) -> None:
    """30 s of grace at a clock that runs 10 times as fast are 3 real seconds."""
    world.cluster.clock_scale = 10.0
    world.cluster.save()
    victim = running(world)
    evict(world, [victim], world.submit("needy", devices=2))
    assert Intent.objects.get(verb="evict").grace_s == GRACE_S
    assert seen_running(world).ending_s == world.now.timestamp() + 3.0


def test_all_for_one_beneficiary_are_evicted_or_none(world: World) -> None:
    first, second = running(world, "first", devices=1), running(world, "second", devices=1)
    needy = world.submit("needy", devices=2)
    frozen, plan = decided(
        world,
        preempts=tuple(
            Preempt(str(v.pk), str(needy.pk), EvictionCause.RECLAIMED) for v in (first, second)
        ),
    )
    job_cancel(actor=world.user, job=second, now=world.now)  # after the freeze
    done = commit(world, frozen, plan)
    assert set(done.lost) == {str(first.pk), str(second.pk)}
    assert not Intent.objects.filter(verb="evict", placement__job=first).exists()
    assert Job.objects.get(pk=needy.pk).promised_at is None


def test_nobody_is_evicted_for_a_job_that_was_cancelled_meanwhile(world: World) -> None:
    victim = running(world)
    needy = world.submit("needy", devices=2)
    frozen, plan = decided(
        world, preempts=(Preempt(str(victim.pk), str(needy.pk), EvictionCause.PREEMPTED),)
    )
    job_cancel(actor=world.user, job=needy, now=world.now)
    assert set(commit(world, frozen, plan).lost) == {str(victim.pk)}
    assert not Intent.objects.filter(verb="evict").exists()


def test_a_job_that_finished_by_itself_meanwhile_is_finished(world: World) -> None:
    victim = running(world)
    evict(world, [victim], world.submit("needy", devices=2))
    world.says(victim, Phase.SUCCEEDED, exit_code=0)
    world.cycle()
    victim.refresh_from_db()
    assert (victim.state, victim.preempted_count) == ("succeeded", 0)


def test_a_user_who_cancels_during_the_grace_wins_and_need_not_wait_for_it(world: World) -> None:
    world.cluster.policy.preempt_grace_s = 300
    world.cluster.policy.save()
    victim = running(world)
    evict(world, [victim], world.submit("needy", devices=2))
    world.cycle()
    job_cancel(actor=world.user, job=victim, now=world.now)
    world.cycle()
    assert world.executor.graces[str(victim.pk), 1] == 10.0
    world.says(victim, Phase.CANCELLED, reason="cancelled")
    world.cycle()
    assert world.state(victim) == "cancelled"


def test_a_promise_that_comes_to_nothing_is_taken_back(world: World) -> None:
    victim = running(world)
    needy = world.submit("needy", devices=2)
    evict(world, [victim], needy)
    world.cluster.nodes.update(scheduling="cordoned")  # so what is freed may not be used
    world.cycle()
    assert Job.objects.get(pk=needy.pk).promised_at is not None  # it is still being freed
    world.says(victim, Phase.CANCELLED)
    world.cycle()
    assert Job.objects.get(pk=needy.pk).promised_at is None
    assert JobEvent.objects.filter(job=needy, reason="promise_ended").count() == 1


def test_who_was_promised_room_in_vain_evicts_others_only_after_the_delay(world: World) -> None:
    world.cluster.policy.preempt_by_priority = True
    world.cluster.policy.preempt_delay_s, world.cluster.policy.preempt_min_runtime_s = 60, 0
    world.cluster.policy.save()
    world.add_node("m")
    victims = [running(world, name, priority_class="low") for name in ("one", "two")]
    needy = world.submit("needy", devices=2, priority_class="high")
    world.cycle(after_s=61)
    (told,) = Intent.objects.filter(verb="evict")
    Node.objects.filter(holds__placement=told.placement).update(scheduling="cordoned")
    world.says(next(v for v in victims if v.pk == told.placement.job_id), Phase.CANCELLED)
    world.cycle()
    assert Job.objects.get(pk=needy.pk).promised_at is None
    world.cycle(after_s=59)
    assert Intent.objects.filter(verb="evict").count() == 1
    world.cycle(after_s=1)
    assert Intent.objects.filter(verb="evict", beneficiary=needy).count() == 2


def test_a_beneficiary_that_is_cancelled_keeps_no_promise(world: World) -> None:
    victim = running(world)
    needy = world.submit("needy", devices=2)
    evict(world, [victim], needy)
    job_cancel(actor=world.user, job=needy, now=world.now)
    assert Job.objects.get(pk=needy.pk).promised_at is None
    world.cycle()
    world.says(victim, Phase.CANCELLED)
    world.cycle()
    assert world.state(victim) == "starting"  # it has the place to itself again
    assert_sound(jobs=2)


def test_many_evictions_take_as_many_queries_as_few(world: World) -> None:
    for i in range(13):
        world.add_node(f"m{i:02}")
    jobs = [world.submit(f"job{i}", devices=2) for i in range(14)]
    world.cycle()
    assert {world.state(job) for job in jobs} == {"starting"}
    counts = []
    for number, victims in enumerate((jobs[:2], jobs[2:])):
        needy = world.submit(f"needy{number}", devices=2, replicas=len(victims))
        with CaptureQueriesContext(connection) as queries:
            assert not evict(world, victims, needy).lost
        counts.append(len(queries))
        assert Intent.objects.filter(verb="evict", beneficiary=needy).count() == len(victims)
    assert abs(counts[1] - counts[0]) <= 1
    assert max(counts) <= 45  # snapshot, cycle, waiting reasons and evictions


def shrink(world: World, job: Job, keep: int, beneficiary: Job | None = None) -> None:
    frozen, plan = decided(world)
    (found,) = (r for r in frozen.snapshot.running if r.spec.uid == str(job.pk))
    uid = str(beneficiary.pk) if beneficiary else ""
    cause = EvictionCause.SHARED if beneficiary else None
    resize = Resize(str(job.pk), found.replicas[-keep:], uid, cause)
    commit(world, frozen, replace(plan, resizes=(resize,)))


def gang(world: World) -> Job:
    """Return a job that runs with three replicas of one device, on three nodes of one each."""
    for name in ("a", "b", "z"):
        world.add_node(name, devices=1)
    world.cluster.nodes.filter(name="n").update(scheduling="cordoned")
    return running(world, "gang", devices=1, replicas=3, replicas_min=1)


def nodes_of(job: Job) -> list[str]:
    placement = Placement.objects.get(job=job, released_at__isnull=True)
    return list(placement.replicas.order_by("index").values_list("node__name", flat=True))


def test_a_job_that_shrinks_goes_on_at_once_where_it_was_told_to(world: World) -> None:
    job = gang(world)
    held = nodes_of(job)
    needy = world.submit("needy", devices=1)
    shrink(world, job, 2, needy)
    found = seen_running(world)
    assert found.keeps == found.replicas[1:]
    assert found.ending_s == world.now.timestamp() + GRACE_S
    said = JobEvent.objects.get(job=job, kind="eviction").data
    assert (said["cause"], said["beneficiary"]) == ("shared", str(needy.pk))
    world.cycle()
    assert world.executor.evicted == [(str(job.pk), 1, "resized")]
    world.says(job, Phase.CANCELLED)
    report = world.cycle()
    assert report.started == (str(needy.pk),)
    assert world.state(job) == "starting"
    assert (job.attempt, job.preempted_count, job.promised_at) == (2, 1, None)
    assert nodes_of(job) == held[1:]
    assert nodes_of(needy) == held[:1]
    assert world.executor.bound[str(job.pk), 2].replicas[0].node == held[1]
    assert_sound(jobs=2)


def test_work_is_expected_to_last_by_the_replicas_that_share_it(world: World) -> None:
    """With one replica it would last its time limit: with three a third of it, with two a half."""
    job = gang(world)
    shrink(world, job, 2)
    world.cycle()
    world.says(job, Phase.CANCELLED)
    world.cycle()
    uid, limit_s = str(job.pk), job.time_limit_s
    told = [world.executor.bound[uid, attempt].expected_duration_s for attempt in (1, 2)]
    assert told == [limit_s / 3, limit_s / 2]


def test_replicas_that_are_alike_are_counted_when_a_job_shrinks(world: World) -> None:
    job = running(world, "cores", devices=0, cpu_milli=1000, replicas=3, replicas_min=1)
    shrink(world, job, 1)
    found = seen_running(world)
    assert (len(found.replicas), len(found.keeps)) == (3, 1)  # three times the same, one stays


def test_a_job_that_shrank_takes_nothing_back_for_a_while(world: World) -> None:
    """30 s of grace and 600 s in which nobody is evicted."""
    job = gang(world)
    shrink(world, job, 1)
    now = world.now
    assert seen_running(world).spec.replicas_max == 3  # what it still holds
    world.cycle()
    world.says(job, Phase.CANCELLED)
    world.cycle()
    assert len(nodes_of(job)) == 1
    assert seen_running(world).spec.replicas_max == 1
    world.now = now + timedelta(seconds=630)
    assert seen_running(world).spec.replicas_max == 3


def test_a_resized_job_whose_places_are_gone_is_decided_anew_and_no_larger(world: World) -> None:
    job = gang(world)
    kept = nodes_of(job)[-2:]
    shrink(world, job, 2)
    world.cycle()
    world.cluster.nodes.filter(name=kept[0]).update(scheduling="cordoned")
    world.cluster.nodes.filter(name="n").update(scheduling="open")
    world.says(job, Phase.CANCELLED)
    world.cycle()
    assert world.state(job) == "starting"
    assert len(nodes_of(job)) <= 2
    assert kept[0] not in nodes_of(job)
    assert_sound(jobs=1)


def test_a_job_that_the_engine_lets_grow_gets_all_that_it_was_to_have(world: World) -> None:
    """It shrank to one of three replicas; once it may, it grows into what nobody waits for."""
    job = gang(world)
    shrink(world, job, 1)
    world.cycle()
    world.says(job, Phase.CANCELLED)
    world.cycle()
    world.says(job, Phase.RUNNING)
    (kept,) = nodes_of(job)
    world.cycle(after_s=700)
    found = seen_running(world)
    assert (found.keeps, len(found.replicas)) == (found.replicas, 1)
    world.cycle()
    world.says(job, Phase.CANCELLED)
    world.cycle()
    assert world.state(job) == "starting"
    assert sorted(nodes_of(job)) == ["a", "b", "z"]
    assert kept in nodes_of(job)
    assert job.preempted_count == 0
    assert_sound(jobs=1)
