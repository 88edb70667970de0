"""The frozen world: one instant, a fixed number of queries, nothing large."""

import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from scheduler import snapshots
from scheduler.core.resources import ReplicaShape
from scheduler.core.topology import Level, TopologyWish
from scheduler.execute.base import Phase
from scheduler.models import (
    Job,
    LedgerEntry,
    Pairing,
    PriorityClass,
    SchedulingPolicy,
    Throughput,
)
from telemetry.models import Cluster, Device, Node
from tenants.models import Tenant
from tests import factories
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db


def take(world: World) -> snapshots.Frozen:
    return snapshots.take(cluster=world.cluster, now=world.now)


def test_the_number_of_queries_does_not_grow_with_fleet_and_queue(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    world = World()
    for i in range(12):
        world.add_node(f"n{i:02}")
        world.submit(f"runs{i}", devices=1)
        world.submit(f"waits{i}", devices=2, replicas=9)
    world.cycle()
    # nodes, devices, pending, device holds, replica holds, running, quotas, tenants, used,
    # runtimes, throughputs given and learnt, pairs, expectations, policy, and the savepoint of the
    # test's transaction, made and released
    with django_assert_num_queries(17):
        snapshot = take(world).snapshot
    assert len(snapshot.running) > 5
    assert len(snapshot.running) + len(snapshot.pending) == 24


def test_no_command_and_no_environment_is_read_for_a_decision() -> None:
    world = World()
    world.submit("marked", command="echo large-text")
    with CaptureQueriesContext(connection) as queries:
        take(world)
    asked = [q["sql"] for q in queries if '"scheduler_job"' in q["sql"]]
    assert asked
    assert not any('"command"' in sql or '"env"' in sql for sql in asked)


def test_what_a_job_holds_is_taken_off_what_is_free_and_given_to_it() -> None:
    world = World()
    job = world.submit(devices=1, gpu_milli=300, gpu_memory_mib=1000, cpu_milli=1500)
    world.cycle()
    snapshot = take(world).snapshot
    assert snapshot.fleet.node_cpu_free_milli.tolist() == [2500]
    assert sorted(snapshot.fleet.device_free_milli.tolist()) == [700, 1000]
    assert sorted(snapshot.fleet.device_free_memory_mib.tolist()) == [23576, 24576]
    (running,) = snapshot.running
    assert running.spec.uid == str(job.pk)
    (replica,) = running.replicas
    assert (replica.gpu_milli, replica.gpu_memory_mib) == (300, 1000)
    assert snapshot.fleet.device_free_milli[replica.devices[0]] == 700


def test_nodes_are_sorted_as_python_sorts_whatever_the_database_thinks() -> None:
    world = World()
    for name in ("B", "a", "_c", "node-10", "node-2", "é"):
        world.add_node(name)
    frozen = take(world)
    names = frozen.snapshot.fleet.node_names
    assert list(names) == sorted(names)
    assert [Node.objects.get(pk=key).name for key in frozen.keys.nodes] == list(names)
    assert np.all(np.diff(frozen.snapshot.fleet.device_node) >= 0)


def test_parents_stand_before_their_children() -> None:
    world = World()
    child = factories.tenant("a", parent=world.tenant)
    factories.tenant("b", parent=child)
    factories.tenant("z")
    rows = take(world).snapshot.tenants
    assert [(row.slug, row.parent) for row in rows] == [
        ("t", None),
        ("a", "t"),
        ("b", "a"),
        ("z", None),
    ]


def test_a_tenants_priority_and_age_are_known_to_the_division() -> None:
    world = World()
    first = factories.tenant("first")
    Tenant.objects.filter(pk=first.pk).update(queue_priority=7)
    row = next(row for row in take(world).snapshot.tenants if row.slug == "first")
    assert (row.queue_priority, row.created_s) == (7, first.created_at.timestamp())


def test_past_use_is_weighed_by_its_age() -> None:
    world = World()
    job = world.submit(devices=2)
    world.cycle()
    world.says(job, Phase.SUCCEEDED, exit_code=0)
    world.cycle(after_s=3600)
    assert LedgerEntry.objects.count() == 2
    world.now += timedelta(seconds=snapshots.HALF_LIFE_S)
    fresh = take(world).snapshot.usage_decayed["t"]
    # all devices for an hour, a half-life ago: half of what an hour is of the whole past
    assert fresh == pytest.approx(0.5 * 3600 * np.log(2) / snapshots.HALF_LIFE_S, rel=1e-2)


def test_use_that_lies_ahead_of_a_clock_that_stepped_back_counts_nothing() -> None:
    world = World()
    job = world.submit(devices=2)
    world.cycle()
    world.says(job, Phase.SUCCEEDED, exit_code=0)
    world.cycle(after_s=100)
    world.now -= timedelta(days=1)
    assert take(world).snapshot.usage_decayed == {"t": 0.0}


@pytest.mark.django_db(transaction=True)
def test_what_commits_during_the_freeze_is_seen_whole_or_not_at_all() -> None:
    world = World()
    world.submit(devices=1)
    seen: list[int] = []

    def meanwhile() -> None:
        Device.objects.update(health="lost")
        Job.objects.update(state="cancelled")
        seen.append(1)
        connection.close()

    with snapshots.one_instant():
        before = Node.objects.count()
        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join(timeout=20)
        assert seen == [1]
        assert Device.objects.filter(health="healthy").count() == 2
        assert Job.objects.filter(state="queued").count() == 1
        assert Node.objects.count() == before
    assert Job.objects.filter(state="cancelled").count() == 1


def test_a_device_cut_into_slices_is_no_device_of_its_own() -> None:
    """Two devices; one of them is cut into two slices: three are left to place on."""
    world = World()
    whole = Device.objects.order_by("index")[0]
    for index in (7, 8):
        factories.device(
            whole.node, index, flavor="nvidia-l4-slice", parent_uid=whole.uid, memory_mib=1000
        )
    fleet = take(world).snapshot.fleet
    assert [f.name for f in fleet.flavors] == ["nvidia-l4", "nvidia-l4-slice"]
    assert fleet.device_flavor.tolist() == [0, 1, 1]
    assert fleet.device_healthy.all()


def test_the_wishes_of_a_job_reach_the_engine() -> None:
    required = Job(required_topology="rack", placement_wish="spread", job_class="lm")
    preferred = Job(preferred_topology="block", interference="heavy", anti_affinity="web")
    for row, expected in (
        (required, (TopologyWish(Level.RACK, required=True), "spread", "lm", "lm", "")),
        (preferred, (TopologyWish(Level.BLOCK, required=False), "", "", "heavy", "web")),
        (Job(), (None, "", "", "", "")),
    ):
        spec = snapshots.job_spec(_complete(row), datetime(2026, 1, 1, tzinfo=UTC))
        names = (spec.placement_wish, spec.job_class, spec.interference, spec.anti_affinity)
        assert (spec.topology, *names) == expected


def _complete(row: Job) -> Job:
    row.tenant, row.cluster = Tenant(slug="t"), Cluster(slug="c")
    row.priority_class = PriorityClass(value=0)
    row.submitted_at = datetime(2026, 1, 1, tzinfo=UTC)
    return row


def test_runtimes_are_parts_of_time_limits_and_never_more() -> None:
    """Limits of 100 s: 25 s, the grace of a stop beyond the limit, and one that never started."""
    world = World()
    for seconds in (103, 25, None):
        started = None if seconds is None else world.now
        Job.objects.filter(pk=world.submit(time_limit_s=100).pk).update(
            state="failed",
            started_at=started,
            finished_at=world.now + timedelta(seconds=seconds or 1),
        )
    assert take(world).snapshot.runtime_ratios == ()  # they end later than this
    world.now += timedelta(seconds=103)
    assert take(world).snapshot.runtime_ratios == (0.25, 1.0)


def test_what_arrived_lately_is_counted_where_the_placement_looks_at_it() -> None:
    world = World()
    for devices, replicas in ((1, 2), (0, 1), (1, 3)):
        world.submit(devices=devices, replicas=replicas, cpu_milli=500)
        world.now += timedelta(seconds=1)
    assert take(world).snapshot.demand_mix == ()
    SchedulingPolicy.objects.update_or_create(cluster=world.cluster, defaults={"placement": "fgd"})
    with CaptureQueriesContext(connection) as queries:
        found = take(world).snapshot.demand_mix
    assert len(queries) == 18
    shapes = (ReplicaShape(500, 1024, 0), ReplicaShape(500, 1024, 1))
    assert [(kind.shape, kind.flavors) for kind in found] == [(shape, ()) for shape in shapes]
    # the newest counts 1, the one before 0.5 ** 0.001, the oldest 0.5 ** 0.002
    assert [kind.count for kind in found] == pytest.approx([0.5**0.001, 3 + 2 * 0.5**0.002])


def test_throughputs_and_pairs_that_an_admin_gave_are_known() -> None:
    world = World()
    Throughput.objects.create(job_class="lm", flavor="a100", throughput=1.0)
    Throughput.objects.create(job_class="lm", flavor="v100", throughput=0.4)
    Pairing.objects.create(class_a="cv", class_b="lm", throughput_a=0.9, throughput_b=0.4)
    found = take(world).snapshot
    assert found.throughputs == {("lm", "a100"): 1.0, ("lm", "v100"): 0.4}
    assert found.pairs == {("cv", "lm"): (0.9, 0.4)}


def test_devices_of_one_network_card_have_one_number_and_those_of_none_have_none() -> None:
    world = World(devices=4)
    rows = Device.objects.filter(node__cluster=world.cluster).order_by("index")
    for row, nic in zip(rows, ["mlx5_1", "mlx5_0", "", "mlx5_1"], strict=True):
        Device.objects.filter(pk=row.pk).update(nic=nic)
    assert take(world).snapshot.fleet.device_nic.tolist() == [1, 0, -1, 1]


def test_a_device_that_is_hot_takes_nothing_until_it_has_cooled() -> None:
    world = World()
    Device.objects.filter(node__cluster=world.cluster).update(throttled=True, numa_node=1)
    job = world.submit(devices=1)
    fleet = take(world).snapshot.fleet
    assert fleet.device_throttled.tolist() == [True] * len(fleet.device_uids)
    assert fleet.device_numa.tolist() == [1] * len(fleet.device_uids)
    world.cycle()
    job.refresh_from_db()
    assert job.state == "queued"
    Device.objects.filter(node__cluster=world.cluster).update(throttled=False)
    world.cycle()
    job.refresh_from_db()
    assert job.state != "queued"
