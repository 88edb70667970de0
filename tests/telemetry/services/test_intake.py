from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest

from telemetry import events
from telemetry.choices import DeviceHealth, NodeState, Scheduling
from telemetry.models import Cluster, Device, Node
from telemetry.sense.base import NodeReading
from tests import factories
from tests.factories import NOW
from tests.telemetry.services.readings import LATER, OnCommit, fleet, gpu, heard, machine, take

pytestmark = pytest.mark.django_db


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
        machine("n1", gpu(numa_node=1)),
        machine("n1", gpu(nic="mlx5_1")),
        machine("n1", gpu(throttled=True)),
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


def test_where_a_device_is_is_kept_and_its_heat_until_it_has_cooled(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu(numa_node=1, nic="mlx5_0", throttled=True)))
    kept = Device.objects.get()
    assert (kept.numa_node, kept.nic, kept.throttled) == (1, "mlx5_0", True)
    take(cluster, machine("n1", gpu(numa_node=1, nic="mlx5_2")), now=LATER)
    kept.refresh_from_db()
    assert (kept.numa_node, kept.nic, kept.throttled) == (1, "mlx5_2", False)


def test_a_device_that_is_gone_is_not_hot(cluster: Cluster) -> None:
    take(cluster, machine("n1", gpu(throttled=True)))
    take(cluster, machine("n1"), now=LATER)
    assert not Device.objects.get().throttled


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


# Size.


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
