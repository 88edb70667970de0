import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models import F

from telemetry import events, services
from telemetry.choices import DeviceHealth, NodeState, Scheduling
from telemetry.models import Cluster, Device, Node, Rollup, Sample
from telemetry.sense.base import CollectorUnavailableError, DeviceReading, NodeReading
from telemetry.services import IngestReport, sampling
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(seconds=5)
JOB = "6f1c1d0e-6d3c-4a52-9b3b-0d7f1f6f3a10"

OnCommit = Callable[..., AbstractContextManager[list[Callable[[], None]]]]


@pytest.fixture
def cluster() -> Cluster:
    return factories.cluster("demo")


def gpu(uid: str = "GPU-0", **values: Any) -> DeviceReading:
    known: dict[str, Any] = {
        "uid": uid,
        "index": 0,
        "vendor": "nvidia",
        "model": "NVIDIA A100-SXM4-80GB",
        "memory_mib": 81_920,
        "utilised_frac": 0.5,
        "memory_used_mib": 1024,
        "power_w": 300.0,
        "temperature_c": 60.0,
    }
    return DeviceReading(**{**known, **values})


def machine(name: str = "n1", *devices: DeviceReading, **values: Any) -> NodeReading:
    known: dict[str, Any] = {
        "cpu_milli": 8000,
        "memory_mib": 16_384,
        "cpu_utilised_frac": 0.25,
        "memory_used_mib": 4096,
    }
    return NodeReading(name=name, devices=devices, **{**known, **values})


def take(cluster: Cluster, *readings: NodeReading, now: datetime = NOW) -> IngestReport:
    return services.ingest(cluster=cluster, readings=readings, now=now)


def heard(monkeypatch: pytest.MonkeyPatch, topic: events.Topic[Any]) -> list[Any]:
    news: list[Any] = []
    monkeypatch.setattr(topic, "_listeners", [])
    topic.subscribe(news.append)
    return news


# What is seen becomes rows.


def test_a_first_look_makes_nodes_and_devices(cluster: Cluster) -> None:
    report = take(
        cluster,
        machine("n1", gpu(), labels={"rack": "1"}, taints=("dedicated",), notes={"nvml": "ok"}),
    )
    node, device = Node.objects.get(), Device.objects.get()
    assert (node.name, node.cpu_milli, node.memory_mib) == ("n1", 8000, 16_384)
    assert (node.cpu_utilised_frac, node.memory_used_mib, node.seen_at) == (0.25, 4096, NOW)
    assert (node.labels, node.taints, node.notes) == (
        {"rack": "1"},
        ["dedicated"],
        {"nvml": "ok"},
    )
    assert (device.flavor, device.compute_units, device.power_limit_w) == (
        "nvidia-a100-80gb",
        312.0,
        400.0,
    )
    assert (device.memory_mib, device.utilised_frac, device.health) == (81_920, 0.5, "healthy")
    assert (report.node_count, report.device_count, report.sample_count) == (1, 1, 2)
    assert (report.appeared, report.lost, report.returned) == (("n1",), (), ())
    assert report.changed


def test_a_second_look_brings_rows_up_to_date(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu()))
    report = take(
        cluster,
        machine(
            "n1",
            gpu(utilised_frac=0.75, temperature_c=None, health_note="warm"),
            cpu_utilised_frac=None,
            labels={"rack": "2"},
            taints=("a", "b"),
            notes={"nvml": 'it\'s "odd" {}'},
        ),
        now=LATER,
    )
    node, device = Node.objects.get(), Device.objects.get()
    assert (node.seen_at, node.cpu_utilised_frac) == (LATER, None)
    assert (node.labels, node.taints) == ({"rack": "2"}, ["a", "b"])
    assert node.notes == {"nvml": 'it\'s "odd" {}'}
    assert (device.seen_at, device.utilised_frac, device.temperature_c) == (LATER, 0.75, None)
    assert device.health_note == "warm"
    assert report.changed  # by labels and taints
    cluster.refresh_from_db()
    assert cluster.sampled_at == LATER


def test_a_look_that_shows_only_load_calls_for_no_decision(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu()))
    report = take(cluster, machine("n1", gpu(utilised_frac=0.9, power_w=1.0)), now=LATER)
    assert not report.changed


@pytest.mark.parametrize(
    "reading",
    [
        machine("n1", gpu(), cpu_milli=4000),
        machine("n1", gpu(), memory_mib=1),
        machine("n1", gpu(health="unhealthy")),
        machine("n1", gpu(memory_mib=40_960)),
        machine("n1", gpu(model="NVIDIA L40S")),
        machine("n1", gpu(link_group=0)),
        machine("n1", gpu(), gpu("GPU-1")),
        machine("n1"),
        machine("n1", gpu(), taints=("x",)),
        machine("n2", gpu("GPU-9")),
    ],
)
def test_a_change_of_what_can_be_had_calls_for_a_decision(
    cluster: Cluster, reading: NodeReading
) -> None:
    take(cluster, machine("n1", gpu()))
    assert take(cluster, reading, now=LATER).changed


def test_the_same_names_in_two_clusters_are_different_nodes(cluster: Cluster) -> None:
    other = factories.cluster("other")
    take(cluster, machine("n1", gpu()))
    take(other, machine("n1", gpu(), cpu_milli=1))
    assert Node.objects.get(cluster=cluster).cpu_milli == 8000
    assert take(other, now=LATER).lost == ("n1",)
    assert Node.objects.get(cluster=cluster).state == NodeState.READY


def test_an_unknown_model_is_taken_with_unknown_compute_units(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu(vendor="acme", model="Warp 9", memory_mib=None)))
    device = Device.objects.get()
    assert (device.flavor, device.compute_units, device.memory_mib) == ("acme-warp-9", None, 0)
    assert device.power_limit_w is None


# What is allocated, and what an admin set, is never touched.


def test_a_look_leaves_what_is_allocated_and_what_an_admin_set(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu()))
    Node.objects.update(
        allocated_cpu_milli=2000,
        allocated_memory_mib=100,
        scheduling=Scheduling.CORDONED,
        scheduling_reason="fan",
    )
    Device.objects.update(allocated_milli=500, allocated_memory_mib=40_000)
    take(cluster, machine("n1", gpu(), cpu_milli=1000), now=LATER)
    node, device = Node.objects.get(), Device.objects.get()
    assert (node.cpu_milli, node.allocated_cpu_milli, node.allocated_memory_mib) == (
        1000,
        2000,
        100,
    )
    assert (node.scheduling, node.scheduling_reason) == (Scheduling.CORDONED, "fan")
    assert (device.allocated_milli, device.allocated_memory_mib) == (500, 40_000)


def test_device_memory_shrinks_no_further_than_what_jobs_hold_of_it(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu()))
    Device.objects.update(allocated_milli=500, allocated_memory_mib=40_000)
    take(cluster, machine("n1", gpu(memory_mib=1000)), now=LATER)
    assert Device.objects.get().memory_mib == 40_000
    report = take(cluster, machine("n1", gpu(memory_mib=1000)), now=LATER)
    assert not report.changed
    Device.objects.update(allocated_milli=0, allocated_memory_mib=0)
    take(cluster, machine("n1", gpu(memory_mib=1000)), now=LATER)
    assert Device.objects.get().memory_mib == 1000


def test_what_a_failing_driver_does_not_say_stays_as_it_was(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu()))
    take(cluster, machine("n1", gpu(model="", memory_mib=None, health="lost")), now=LATER)
    device = Device.objects.get()
    assert (device.model, device.flavor) == ("NVIDIA A100-SXM4-80GB", "nvidia-a100-80gb")
    assert (device.memory_mib, device.compute_units, device.health) == (81_920, 312.0, "lost")


# What comes and goes.


def test_a_node_that_is_not_reported_is_unknown_and_stays(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu()), machine("n2"))
    report = take(cluster, machine("n2"), now=LATER)
    node = Node.objects.get(name="n1")
    assert (report.lost, report.changed) == (("n1",), True)
    assert (node.state, node.seen_at, node.cpu_milli) == (NodeState.UNKNOWN, NOW, 8000)
    assert node.cpu_utilised_frac is None
    assert Device.objects.get().health == DeviceHealth.HEALTHY  # nobody looked at it
    assert not take(cluster, machine("n2"), now=LATER).changed


def test_a_node_that_does_not_answer_is_unknown_and_ready_once_it_does(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu()))
    silent = machine("n1", cpu_milli=0, memory_mib=0, reachable=False)
    report = take(cluster, silent, now=LATER)
    node = Node.objects.get()
    assert (report.lost, report.sample_count) == (("n1",), 0)
    assert (node.state, node.seen_at, node.cpu_milli) == (NodeState.UNKNOWN, NOW, 8000)
    report = take(cluster, machine("n1", gpu()), now=LATER)
    assert (report.returned, report.changed) == (("n1",), True)
    assert Node.objects.get().state == NodeState.READY


def test_a_new_node_that_does_not_answer_is_unknown_from_the_start(cluster: Cluster) -> None:
    report = take(cluster, machine("n1", gpu(), reachable=False))
    node = Node.objects.get()
    assert (node.state, node.seen_at, report.sample_count) == (NodeState.UNKNOWN, None, 0)
    assert not Device.objects.exists()


def test_a_device_that_vanishes_is_lost_and_healthy_once_it_is_back(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu("GPU-0"), gpu("GPU-1", index=1)))
    Device.objects.filter(uid="GPU-1").update(allocated_milli=1000)
    report = take(cluster, machine("n1", gpu("GPU-0")), now=LATER)
    gone = Device.objects.get(uid="GPU-1")
    assert (gone.health, gone.seen_at, gone.utilised_frac) == (DeviceHealth.LOST, NOW, None)
    assert (gone.allocated_milli, gone.memory_mib) == (1000, 81_920)
    assert report.changed
    assert not take(cluster, machine("n1", gpu("GPU-0")), now=LATER).changed
    report = take(cluster, machine("n1", gpu("GPU-0"), gpu("GPU-1", index=1)), now=LATER)
    back = Device.objects.get(uid="GPU-1")
    assert (back.pk, back.health, back.health_note) == (gone.pk, DeviceHealth.HEALTHY, "")
    assert (back.seen_at, report.changed) == (LATER, True)


# What can't be.


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, -0.1, 10**400, "0.5", True])
def test_a_number_that_can_not_be_is_not_known(cluster: Cluster, wrong: Any) -> None:
    hot = {"utilised_frac": wrong, "memory_used_mib": wrong, "power_w": wrong}
    take(cluster, machine("n1", gpu(**hot), cpu_utilised_frac=wrong, memory_used_mib=wrong))
    node, device = Node.objects.get(), Device.objects.get()
    assert (node.cpu_utilised_frac, node.memory_used_mib) == (None, None)
    assert (device.utilised_frac, device.memory_used_mib, device.power_w) == (None, None, None)
    values = Sample.objects.values_list("utilised_frac", "memory_used_mib", "power_w")
    assert set(values) == {(None, None, None)}


def test_absurd_numbers_are_cut_to_what_is_possible(cluster: Cluster) -> None:
    take(
        cluster,
        machine(
            "n1",
            gpu(
                utilised_frac=1.7, memory_used_mib=10**12, power_w=1e9, temperature_c=1e5, index=-4
            ),
            cpu_milli=10**15,
            memory_mib=10**15,
        ),
    )
    node, device = Node.objects.get(), Device.objects.get()
    assert (node.cpu_milli, node.memory_mib) == (10_000_000, 67_108_864)
    assert (device.utilised_frac, device.memory_used_mib) == (1.0, 81_920)
    assert (device.power_w, device.temperature_c, device.index) == (None, None, 0)


def test_texts_are_cut_to_their_columns_and_lose_what_they_can_not_hold(cluster: Cluster) -> None:
    device = gpu(
        "u\x00id" + "x" * 300,
        model="m" * 300,
        vendor="v" * 90,
        health="on fire",
        health_note="\x00" + "n" * 900,
        mig_profile="p" * 90,
        parent_uid="q" * 900,
    )
    node = machine(
        "n\x00" + "1" * 400,
        device,
        labels={"k" * 400: "v\x00" * 900},
        taints=("t" * 400,),
        notes={"half": "\ud800"},
    )
    take(cluster, node)
    take(cluster, node, now=LATER)
    row, seen = Device.objects.get(), Node.objects.get()
    assert (row.uid, len(row.uid), len(row.model)) == ("uid" + "x" * 197, 200, 200)
    assert (row.health, row.health_note) == (DeviceHealth.UNKNOWN, "n" * 500)
    assert (len(row.vendor), len(row.mig_profile), len(row.parent_uid)) == (40, 40, 200)
    assert (seen.name[:2], len(seen.name), len(seen.taints[0])) == ("n1", 253, 317)
    assert seen.labels == {"k" * 317: "v" * 500}
    assert seen.notes == {"half": "?"}


def test_of_two_readings_with_one_name_the_first_counts(cluster: Cluster) -> None:
    report = take(
        cluster,
        machine("n1", gpu("A", index=1), gpu("A", index=2), gpu("")),
        machine("n1", cpu_milli=1),
        machine(""),
    )
    assert Node.objects.get().cpu_milli == 8000
    assert Device.objects.get().index == 1
    assert (report.node_count, report.device_count) == (1, 1)


# Samples.


def test_samples_hold_what_is_allocated_beside_what_is_utilised(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu()))
    Sample.objects.all().delete()
    Node.objects.update(allocated_cpu_milli=2000)
    Device.objects.update(allocated_milli=250)
    take(cluster, machine("n1", gpu()), now=LATER)
    node, device = Node.objects.get(), Device.objects.get()
    rows = Sample.objects.order_by("device_id").values_list(
        "at", "cluster_id", "node_id", "device_id", "job_uid", "utilised_frac", "allocated_frac"
    )
    assert list(rows) == [
        (LATER, cluster.pk, node.pk, device.pk, None, 0.5, 0.25),
        (LATER, cluster.pk, node.pk, None, None, 0.25, 0.25),  # 2000 of 8000 milli-cores
    ]
    values = Sample.objects.values_list("memory_used_mib", "power_w", "temperature_c")
    assert set(values) == {(1024, 300.0, 60.0), (4096, None, None)}


def test_samples_of_jobs_count_whole_cores(cluster: Cluster) -> None:
    rows: Sequence[tuple[str, float | None, int | None]] = [
        (JOB, 2.5, 300),
        (JOB, math.nan, -1),
        (JOB, None, None),
    ]
    assert services.write_job_samples(cluster=cluster, rows=rows, now=NOW) == 3
    stored = Sample.objects.values_list("job_uid", "utilised_frac", "memory_used_mib", "node_id")
    assert set(stored) == {(UUID(JOB), 2.5, 300, None), (UUID(JOB), None, None, None)}
    assert services.write_job_samples(cluster=cluster, rows=[], now=NOW) == 0


def _partition_of(at: datetime) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM telemetry_sample WHERE at = %s", [at])
        return [name for (name,) in cursor.fetchall()]


def test_samples_go_into_the_partition_of_their_day(cluster: Cluster) -> None:
    made = services.samples_partition(day=NOW.date())
    assert made == (
        "telemetry_sample_20260302",
        "telemetry_sample_20260303",
        "telemetry_sample_20260304",
    )
    last_moment = datetime(2026, 3, 2, 23, 59, 59, 999_999, tzinfo=UTC)
    midnight = datetime(2026, 3, 3, tzinfo=UTC)
    far = datetime(2026, 4, 1, tzinfo=UTC)
    for at in (last_moment, midnight, far):
        take(cluster, machine(), now=at)
    assert _partition_of(last_moment) == ["telemetry_sample_20260302"]
    assert _partition_of(midnight) == ["telemetry_sample_20260303"]
    assert _partition_of(far) == ["telemetry_sample_default"]


def test_making_partitions_again_makes_only_what_is_missing() -> None:
    services.samples_partition(day=NOW.date())
    assert services.samples_partition(day=NOW.date()) == ()
    assert services.samples_partition(day=NOW.date() + timedelta(days=1)) == (
        "telemetry_sample_20260305",
    )


def test_samples_that_came_before_their_partition_move_into_it(cluster: Cluster) -> None:
    take(cluster, machine())
    assert _partition_of(NOW) == ["telemetry_sample_default"]
    services.samples_partition(day=NOW.date())
    take(cluster, machine())
    assert _partition_of(NOW) == ["telemetry_sample_20260302"] * 2
    assert Sample.objects.values("id").distinct().count() == 2


def test_retention_drops_whole_days_and_old_rollups(cluster: Cluster, settings: Any) -> None:
    settings.SAMPLE_KEEP_DAYS, settings.ROLLUP_KEEP_DAYS = 7, 30
    services.samples_partition(day=NOW.date())
    take(cluster, machine(), now=NOW)
    ancient = NOW - timedelta(days=100)
    take(cluster, machine(), now=ancient)
    rollup = {"period_s": 60, "cluster_id": cluster.pk, "sample_count": 1}
    Rollup.objects.create(at=NOW - timedelta(days=30), **rollup)
    Rollup.objects.create(at=NOW - timedelta(days=20), **rollup)

    # Noon a week later: the second of March still reaches into the last seven days.
    assert services.retain(now=NOW + timedelta(days=7)) == ()
    assert Sample.objects.filter(at=NOW).exists()
    assert not Sample.objects.filter(at=ancient).exists()
    assert Rollup.objects.count() == 1

    dropped = services.retain(now=NOW + timedelta(days=8))
    assert dropped == ("telemetry_sample_20260302",)
    assert not Sample.objects.exists()


# Rollups.


def _sample(cluster: Cluster, at: datetime, busy: float | None, held: float | None = None) -> None:
    services.samples_write(
        rows=[(at, cluster.pk, 1, 7, None, busy, held, int((busy or 0) * 100), 100.0, 50.0)]
    )


def test_a_minute_is_summed_up_once_it_is_over(cluster: Cluster) -> None:
    _sample(cluster, NOW, 0.2, 0.5)
    _sample(cluster, NOW + timedelta(seconds=30), 0.4, 1.0)
    _sample(cluster, NOW + timedelta(seconds=59.9), None)
    _sample(cluster, NOW + timedelta(seconds=60), 0.9, 0.0)
    assert services.roll_up(now=NOW + timedelta(seconds=69)) == 0  # may still be written
    assert services.roll_up(now=NOW + timedelta(seconds=70)) == 1
    row = Rollup.objects.get()
    assert (row.period_s, row.at, row.cluster_id) == (60, NOW, cluster.pk)
    assert (row.node_id, row.device_id, row.job_uid) == (1, 7, None)
    assert row.utilised_mean_frac == pytest.approx(0.3)  # (0.2 + 0.4) / 2: None is no zero
    assert (row.utilised_max_frac, row.allocated_mean_frac) == (0.4, 0.75)
    assert (row.memory_max_mib, row.power_mean_w, row.temperature_max_c) == (40, 100.0, 50.0)
    assert row.sample_count == 3


def test_summing_up_again_changes_nothing_and_goes_on_where_it_stopped(cluster: Cluster) -> None:
    _sample(cluster, NOW, 0.2)
    services.roll_up(now=NOW + timedelta(seconds=75))
    before = list(Rollup.objects.values())
    assert services.roll_up(now=NOW + timedelta(seconds=80)) == 0
    assert list(Rollup.objects.values()) == before
    _sample(cluster, NOW + timedelta(minutes=3), 0.8)
    services.roll_up(now=NOW + timedelta(minutes=5))
    services.roll_up(now=NOW + timedelta(minutes=5))
    rows = Rollup.objects.order_by("at").values_list("at", "utilised_mean_frac", "sample_count")
    assert list(rows) == [(NOW, 0.2, 1), (NOW + timedelta(minutes=3), 0.8, 1)]


def test_an_hour_weighs_its_minutes_by_their_samples(cluster: Cluster) -> None:
    _sample(cluster, NOW, 0.9)
    for second in (0, 10, 20):
        _sample(cluster, NOW + timedelta(minutes=1, seconds=second), 0.1)
    _sample(cluster, NOW + timedelta(minutes=59), None)
    services.roll_up(now=NOW + timedelta(minutes=59, seconds=59))
    assert not Rollup.objects.filter(period_s=3600).exists()
    services.roll_up(now=NOW + timedelta(hours=1, seconds=10))
    row = Rollup.objects.get(period_s=3600)
    assert (row.at, row.sample_count, row.utilised_max_frac) == (NOW, 5, 0.9)
    assert row.utilised_mean_frac == pytest.approx(0.3)  # (0.9 + 3 * 0.1) / 4
    assert row.allocated_mean_frac is None


def test_subjects_are_summed_up_apart(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu("A"), gpu("B")))
    services.write_job_samples(cluster=cluster, rows=[(JOB, 1.0, 1)], now=NOW)
    assert services.roll_up(now=NOW + timedelta(minutes=2)) == 4  # a node, two devices, a job
    assert Rollup.objects.filter(job_uid=JOB).count() == 1
    assert Rollup.objects.filter(device_id__isnull=False).count() == 2


def test_a_rollup_of_the_future_stops_nothing_when_the_clock_steps_back(cluster: Cluster) -> None:
    Rollup.objects.create(
        period_s=60, at=NOW + timedelta(hours=5), cluster_id=cluster.pk, sample_count=1
    )
    _sample(cluster, NOW, 0.2)
    assert services.roll_up(now=NOW + timedelta(minutes=2)) == 1


# What an admin says of nodes.


def test_a_node_is_cordoned_drained_and_opened(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: OnCommit,
) -> None:
    news = heard(monkeypatch, events.nodes_changed)
    node = factories.node(cluster)
    who: dict[str, Any] = {"actor_name": "boss", "now": NOW}
    with django_capture_on_commit_callbacks(execute=True):
        services.node_cordon(node=node, reason=" fan \x00\n" + "x" * 600, **who)
    node.refresh_from_db()
    assert node.scheduling == Scheduling.CORDONED
    assert (node.scheduling_reason[:5], len(node.scheduling_reason)) == ("fan  ", 500)
    services.node_drain(node=node, reason="swap", **who)
    node.refresh_from_db()
    assert (node.scheduling, node.scheduling_reason) == (Scheduling.DRAINING, "swap")
    services.node_uncordon(node=node, **who)
    node.refresh_from_db()
    assert (node.scheduling, node.scheduling_reason) == (Scheduling.OPEN, "")
    assert news == [events.NodesChanged(cluster.pk, "demo")]


# News.


def test_news_of_nodes_is_told_on_commit_and_only_when_something_changed(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: OnCommit,
) -> None:
    changed = heard(monkeypatch, events.nodes_changed)
    sampled = heard(monkeypatch, events.cluster_sampled)
    with django_capture_on_commit_callbacks(execute=True):
        take(cluster, machine("n1", gpu()))
        assert changed == []
    with django_capture_on_commit_callbacks(execute=True):
        take(cluster, machine("n1", gpu()), now=LATER)
    assert changed == [events.NodesChanged(cluster.pk, "demo")]
    assert len(sampled) == 2


# From a collector.


def test_a_simulated_cluster_is_sampled_with_what_is_held(cluster: Cluster) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(options={"nodes": 2, "seed": 1})
    cluster.refresh_from_db()
    report = services.sample_cluster(cluster=cluster, now=NOW)
    assert report is not None
    assert (report.node_count, report.device_count) == (2, 16)
    first, second = Device.objects.order_by("pk")[:2]
    Device.objects.filter(pk=first.pk).update(allocated_milli=1000)
    services.sample_cluster(cluster=cluster, now=LATER)
    first.refresh_from_db()
    second.refresh_from_db()
    assert first.utilised_frac is not None
    assert second.utilised_frac is not None
    assert first.utilised_frac > 0.8  # a training job keeps it busy
    assert second.utilised_frac < 0.1  # idle


def test_a_source_that_can_not_be_asked_leaves_nodes_and_says_why(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(cluster, machine("n1"))

    class Broken:
        def collect(self, /, *, now_s: float) -> Sequence[NodeReading]:
            raise CollectorUnavailableError(f"no answer\x00 at {now_s:.0f}")

    monkeypatch.setattr(sampling, "_collector", lambda _cluster: Broken())
    assert services.sample_cluster(cluster=cluster, now=LATER) is None
    cluster.refresh_from_db()
    assert cluster.sense_error == f"no answer at {LATER.timestamp():.0f}"
    assert cluster.sampled_at == NOW
    assert (Node.objects.get().state, Node.objects.get().seen_at) == (NodeState.READY, NOW)
    take(cluster, machine("n1"), now=LATER)
    cluster.refresh_from_db()
    assert cluster.sense_error == ""


def test_wrong_options_of_a_cluster_are_told_on_its_row() -> None:
    cluster = factories.cluster("odd", options={"nodes": "many"})
    assert services.sample_cluster(cluster=cluster, now=NOW) is None
    cluster.refresh_from_db()
    assert "nodes" in cluster.sense_error
    assert "many" in cluster.sense_error


def test_this_machine_is_sampled() -> None:
    cluster = factories.cluster("this-machine", kind="local")
    report = services.sample_cluster(cluster=cluster, now=NOW)
    assert report is not None
    assert report.node_count == 1
    assert Node.objects.get().cpu_milli > 0


# Size.


def fleet(nodes: int, devices: int) -> list[NodeReading]:
    return [
        machine(f"n{n}", *(gpu(f"GPU-{n}-{index}", index=index) for index in range(devices)))
        for n in range(nodes)
    ]


def test_a_look_at_a_large_fleet_takes_a_handful_of_queries(
    cluster: Cluster, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    readings = fleet(200, 8)
    with django_assert_max_num_queries(15):
        take(cluster, *readings)
    readings = [replace(reading, cpu_utilised_frac=0.9) for reading in readings]
    with django_assert_max_num_queries(11):
        report = take(cluster, *readings, now=LATER)
    assert (report.node_count, report.device_count, report.sample_count) == (200, 1600, 1800)
    assert not report.changed
    with django_assert_max_num_queries(11):
        assert len(take(cluster, now=LATER).lost) == 200


# Two at once.


@pytest.mark.django_db(transaction=True)
def test_a_row_that_a_placement_holds_is_left_for_the_next_look(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu()), machine("n2"))
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("UPDATE telemetry_node SET allocated_cpu_milli = 1000 WHERE name = 'n1'")
            cursor.execute("SET LOCAL statement_timeout = '5s'")
            with connection.cursor() as ours:
                ours.execute("SET lock_timeout = '2s'")
            take(cluster, machine("n1", gpu(utilised_frac=0.7)), machine("n2"), now=LATER)
            cursor.execute("COMMIT")
    finally:
        other.close()
        with connection.cursor() as ours:
            ours.execute("RESET lock_timeout")
    held, free = Node.objects.order_by("name")
    assert (held.seen_at, held.allocated_cpu_milli, free.seen_at) == (NOW, 1000, LATER)
    assert Device.objects.get().utilised_frac == 0.7
    take(cluster, machine("n1", gpu()), machine("n2"), now=LATER)
    held.refresh_from_db()
    assert (held.seen_at, held.allocated_cpu_milli) == (LATER, 1000)
    Sample.objects.all().delete()  # the flush after the test leaves unmanaged tables alone


@pytest.mark.django_db(transaction=True)
def test_partitions_made_twice_at_once_are_made_once() -> None:
    start = Barrier(2)

    def make() -> tuple[str, ...]:
        try:
            connection.ensure_connection()
            start.wait(timeout=20)
            return services.samples_partition(day=NOW.date())
        finally:
            connection.close()

    try:
        with ThreadPoolExecutor(2) as pool:
            made = [pool.submit(make) for _ in range(2)]
            counts = sorted(len(done.result(timeout=20)) for done in made)
        assert counts == [0, 3]
    finally:  # the flush after the test leaves partitions alone
        services.retain(now=NOW + timedelta(days=100))


@pytest.mark.django_db(transaction=True)
def test_looks_and_placements_at_once_neither_block_nor_undo_each_other(cluster: Cluster) -> None:
    readings = fleet(10, 2)
    take(cluster, *readings)
    keys = list(Device.objects.order_by("-pk").values_list("pk", flat=True))
    rounds = 20

    def hold() -> None:
        try:
            for _ in range(rounds):
                with transaction.atomic():
                    for key in keys:  # backwards, against the order of a look
                        Device.objects.filter(pk=key).update(
                            allocated_milli=F("allocated_milli") + 1
                        )
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        while not holding.done():
            take(cluster, *readings, now=LATER)
        holding.result(timeout=20)
    take(cluster, *readings, now=LATER)
    rows = set(Device.objects.values_list("allocated_milli", "seen_at"))
    assert rows == {(rounds, LATER)}
    Sample.objects.all().delete()
