import math
from datetime import datetime, timedelta

import pytest

from scheduler import snapshots
from scheduler.core.snapshot import Snapshot
from scheduler.core.topology import Level, TopologyWish
from scheduler.execute.base import Phase
from scheduler.models import Job, JobEvent, Pairing, SchedulingPolicy, Throughput
from scheduler.replays import Recording, recording
from scheduler.simulate.baselines import fifo
from scheduler.simulate.decider import by_policy
from scheduler.simulate.metrics import totals
from scheduler.simulate.pace import Pace
from scheduler.simulate.report import figures
from scheduler.simulate.result import End
from scheduler.simulate.run import simulate
from scheduler.simulate.traces.exported import read_trace, write_trace
from tenants.models import Tenant
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


def test_what_came_after_the_window_is_not_known_however_long_ago_it_was() -> None:
    """It ran 600 s until the end of the window, of 1000 s, and 6000 s after it."""
    world = World()
    a = world.submit("a", devices=2, time_limit_s=36000)
    world.cycle()
    world.says(a, Phase.RUNNING)
    world.cycle(after_s=0.0)
    end = world.now + timedelta(seconds=600)
    world.now += timedelta(seconds=6600)
    world.says(a, Phase.SUCCEEDED)
    world.cycle(after_s=0.0)
    record = recording(cluster=world.cluster, since=end - timedelta(seconds=1000), now=end)
    told = figures(record.recorded, record.trace.world.tenants)
    assert (told["allocated_pct"], told["utilised_pct"]) == (60.0, 60.0)
    assert (told["jobs"]["running"], told["jobs"]["completed"]) == (1, 0)
    assert (told["completion_s"]["max"], record.still_run) == (None, 1)
    assert record.trace.jobs[0].work == 36000.0


def resumed(world: World, **more: object) -> Job:
    """A job of both devices runs 600 s, is drained away, and waits for 600 s more."""
    a = world.submit("a", devices=2, time_limit_s=36000, **more)
    world.cycle()
    world.says(a, Phase.RUNNING)
    world.cycle(after_s=0.0)
    world.now += timedelta(seconds=600)
    world.cluster.nodes.update(scheduling="draining")
    world.cycle(after_s=0.0)
    world.cycle(after_s=0.0)
    assert world.state(a) == "queued"
    world.now += timedelta(seconds=600)
    return a


def test_job_that_waits_again_when_the_window_ends_has_not_ended() -> None:
    world = World()
    resumed(world)
    record = since(world)
    [seen] = record.recorded.jobs
    assert (seen.state, seen.end_s, record.still_run) == (End.WAITING, None, 1)
    assert record.trace.jobs[0].work == 36000.0  # to its limit, as others that have not ended
    # without a checkpoint all 600 s are lost, of two devices
    assert (seen.lost_s, seen.lost_device_s) == (600.0, 1200.0)
    assert totals(record.recorded).utilised_device_s == 0.0


@pytest.mark.parametrize(("saves_s", "saved_s"), [(0, 0.0), (250, 500.0)])
def test_work_of_a_resumed_job_is_what_was_saved_and_its_last_attempt(
    saves_s: int, saved_s: float
) -> None:
    """Of 600 s it saved none, or 500 where it saves every 250; it goes on for 60 and is done."""
    world = World()
    a = resumed(world, checkpoint_interval_s=saves_s)
    world.cluster.nodes.update(scheduling="open")
    world.cycle(after_s=0.0)
    run(world, a, 60.0)
    record = since(world)
    [seen], [made] = record.recorded.jobs, record.trace.jobs
    assert (made.work, record.still_run) == (saved_s + 60.0, 0)
    assert (seen.state, seen.losses, seen.lost_s) == (End.COMPLETED, 1, 600.0 - saved_s)
    assert totals(record.recorded).utilised_device_s == 2 * (saved_s + 60.0)


def test_jobs_that_say_nothing_are_taken_to_have_saved_in_the_past_too() -> None:
    # every 200 s: all 600 s of the first attempt
    world = World()
    a = resumed(world)
    world.cluster.nodes.update(scheduling="open")
    world.cycle(after_s=0.0)
    run(world, a, 60.0)
    begin = world.now - timedelta(days=1)
    record = recording(cluster=world.cluster, since=begin, now=world.now, checkpoint_every_s=200.0)
    assert record.trace.jobs[0].work == 660.0


def test_evictions_of_the_past_are_counted_by_their_reason() -> None:
    world = World()
    a, _ = two_jobs_one_after_the_other(world)
    for reason in ("preempted", "node_lost", "resized", "resized", "started"):
        JobEvent.objects.create(
            job=a, at=world.now - timedelta(seconds=5), kind="state", to_state="queued",
            actor="scheduler", reason=reason,
        )  # fmt: skip
    recorded = since(world).recorded
    [seen] = (job for job in recorded.jobs if job.uid == str(a.pk))
    assert (seen.evictions, seen.losses, seen.resizes) == (1, 1, 2)
    assert figures(recorded, ())["resizes"] == 2


def test_a_job_saves_as_often_as_it_says_and_may_have_all_its_sizes() -> None:
    """It was resized to one replica for the next ten minutes; without a word 300 s are assumed."""
    world = World()
    a = world.submit("a", devices=1, replicas=2, replicas_min=1, checkpoint_interval_s=120)
    b = world.submit("b", devices=1)
    world.cycle(after_s=1.0)
    run(world, a, 60.0)
    world.cycle(after_s=1.0)
    run(world, b, 60.0)
    Job.objects.filter(pk=a.pk).update(
        resized_to=1, resized_until=world.now + timedelta(seconds=600)
    )
    begin = world.now - timedelta(hours=1)
    record = recording(cluster=world.cluster, since=begin, now=world.now, checkpoint_every_s=300.0)
    made = {job.spec.uid: job for job in record.trace.jobs}
    assert {uid: job.checkpoint_every_s for uid, job in made.items()} == {
        str(a.pk): 120.0,
        str(b.pk): 300.0,
    }
    assert made[str(a.pk)].spec.replicas_max == 2


def test_a_job_is_as_fast_elsewhere_as_measured_and_by_compute_units_where_it_was_not() -> None:
    """It ran on an L4 of 121 CU: a card of 242 CU is twice as fast, measured it is 0.5 / 0.8."""
    world = World()
    other = world.add_node("m", devices=1)
    other.devices.update(flavor="big", compute_units=242.0)
    job = world.submit("a", devices=1, job_class="lm", flavors=["nvidia-l4"])
    world.cycle(after_s=1.0)
    run(world, job, 60.0)
    [made] = since(world).trace.jobs
    assert made.throughput == {"big": 2.0, "nvidia-l4": 1.0}
    for flavor, throughput in (("big", 0.5), ("nvidia-l4", 0.8)):
        Throughput.objects.create(job_class="lm", flavor=flavor, throughput=throughput)
    [made] = since(world).trace.jobs
    assert made.throughput == {"big": 0.625, "nvidia-l4": 1.0}


def test_a_window_begins_with_what_was_known_at_its_begin() -> None:
    """One job ended before it; what ended and arrived later is not known yet."""
    world = World()
    a = world.submit("a", devices=2, time_limit_s=600)
    world.cycle(after_s=1.0)
    run(world, a, 60.0)
    world.now += timedelta(hours=2)
    b = world.submit("b", devices=1, time_limit_s=600)
    world.cycle(after_s=1.0)
    run(world, b, 300.0)
    begin = since(world, hours=1.0).trace.world
    assert len(begin.runtime_ratios) == 1
    assert [(kind.shape.devices, kind.count) for kind in begin.demand_mix] == [(2, 1.0)]
    assert begin.expectations == ()


@pytest.mark.parametrize("hours", [24.0, 360 / 3600], ids=["whole", "its second half"])
def test_a_window_that_begins_in_the_middle_remembers_use_as_the_whole_does(hours: float) -> None:
    """One job holds all for 600 s and another for 300; a third comes when both have ended."""
    world = World()
    two_jobs_one_after_the_other(world)
    last = world.submit("last", devices=1)
    live = snapshots.take(cluster=world.cluster, now=world.now).snapshot.usage_decayed
    world.cycle(after_s=0.0)
    run(world, last, 60.0)
    record = since(world, hours=hours)
    assert len(record.trace.jobs) == (3 if hours > 1 else 2)
    back = read_trace(write_trace(record.trace), "back")
    for trace in (record.trace, back):
        seen: list[Snapshot] = []
        simulate(
            trace.world,
            trace.jobs,
            fifo(),
            watch=lambda snapshot, _, into=seen: into.append(snapshot),  # type: ignore[misc]
            past_use=trace.past_use,
        )
        # all of capacity for 900 s, as a part of half-life / ln 2
        used = seen[-1].usage_decayed["t"]
        assert used == pytest.approx(live["t"], rel=0.01)
        assert used == pytest.approx(900 * math.log(2) / snapshots.HALF_LIFE_S, rel=0.01)


def test_a_simulation_knows_what_arrived_as_the_live_cycle_does() -> None:
    """Two jobs of 2, two more in the window, of 2 and of 0 devices."""
    world = World()
    SchedulingPolicy.objects.update_or_create(
        cluster=world.cluster, defaults={"placement": "prices"}
    )
    for name in ("a", "b", "later", "last"):
        job = world.submit(name, devices=0 if name == "last" else 2)
        world.cycle(after_s=1.0)
        run(world, job, 60.0)
        if name == "b":
            world.now += timedelta(hours=2)
    trace = since(world, hours=1.0).trace
    assert trace.policy is not None
    seen = []
    simulate(
        trace.world,
        trace.jobs,
        by_policy(trace.policy),
        watch=lambda snapshot, _: seen.append(snapshot.demand_mix),
    )
    live = snapshots.take(cluster=world.cluster, now=world.now).snapshot.demand_mix
    # the newest counts 1, those before it, all of one kind, 0.5 ** 0.001, 0.002 and 0.003
    assert [kind.count for kind in live] == [
        1.0,
        pytest.approx(sum(0.5 ** (k / 1000) for k in (1, 2, 3))),
    ]
    assert [kind.shape for kind in seen[-1]] == [kind.shape for kind in live]
    assert [kind.count for kind in seen[-1]] == pytest.approx([kind.count for kind in live])


def test_an_export_of_the_site_carries_what_the_database_knows() -> None:
    """One device is sick, one hot; both are linked, of one NUMA node and network card."""
    world = World()
    world.cluster.nodes.update(
        labels={"network.topology.nvidia.com/leaf": "s1", "empty": ""}, taints=["gpu"]
    )
    devices = world.node.devices
    devices.update(link_group=0, numa_node=1, nic="mlx5_0")
    devices.filter(index=0).update(health="unhealthy")
    devices.filter(index=1).update(throttled=True, memory_mib=20_000)
    Tenant.objects.update(preemption_fence=True, queue_priority=3)
    Throughput.objects.create(job_class="lm", flavor="nvidia-l4", throughput=0.5)
    Pairing.objects.create(class_a="cv", class_b="lm", throughput_a=0.9, throughput_b=0.4)
    wishes = {"preferred_topology": "rack", "placement_wish": "spread", "anti_affinity": "web"}
    job = world.submit(
        "a", devices=0, job_class="lm", interference="cv", tolerations=["gpu"], **wishes
    )
    world.cycle(after_s=1.0)
    run(world, job, 60.0)
    trace = since(world).trace
    back = read_trace(write_trace(trace), "back")
    fleet = back.world.fleet
    assert fleet.device_healthy.tolist() == [False, True]
    assert fleet.device_throttled.tolist() == [False, True]
    assert fleet.device_memory_mib.tolist() == [24_576, 20_000]
    groups = (fleet.device_link_group, fleet.device_numa, fleet.device_nic)
    assert [table.tolist() for table in groups] == [[0, 0], [1, 1], [0, 0]]
    assert fleet.node_labels == trace.world.fleet.node_labels
    assert (fleet.node_taints, back.world.tenants) == ((frozenset(["gpu"]),), trace.world.tenants)
    assert back.world.tenants[0].preemption_fence
    assert (back.world.throughputs, back.world.pairs) == (
        {("lm", "nvidia-l4"): 0.5},
        {("cv", "lm"): (0.9, 0.4)},
    )
    assert back.jobs == trace.jobs
    spec = back.jobs[0].spec
    assert spec.topology == TopologyWish(Level.RACK, required=False)
    assert (spec.placement_wish, spec.anti_affinity) == ("spread", "web")
    assert back.policy == trace.policy


def test_recording_costs_the_same_number_of_queries_for_any_number_of_jobs(
    django_assert_max_num_queries,
) -> None:
    world = World()
    for name in "abcdef":
        job = world.submit(name, devices=2)
        world.cycle(after_s=1.0)
        run(world, job, 10.0)
    with django_assert_max_num_queries(25):
        assert len(since(world).trace.jobs) == 6
