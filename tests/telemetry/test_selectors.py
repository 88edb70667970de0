from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import AnonymousUser

from telemetry import selectors, services
from telemetry.choices import DeviceHealth, NodeState, Scheduling
from telemetry.models import Cluster, Device, Node, Rollup
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db

JOB = UUID("6f1c1d0e-6d3c-4a52-9b3b-0d7f1f6f3a10")
MaxQueries = Callable[[int], AbstractContextManager[Any]]


# The fleet as it is.


def test_everybody_who_is_signed_in_sees_the_fleet(cluster: Cluster) -> None:
    device = factories.device(factories.node(cluster, "n1"))
    viewer = factories.member(factories.tenant())
    assert list(selectors.cluster_list(viewer=viewer)) == [cluster]
    assert selectors.cluster_get("demo", viewer=viewer) == cluster
    assert list(selectors.node_list(viewer=viewer)) == [device.node]
    assert selectors.node_get(viewer=viewer, cluster=cluster, name="n1") == device.node
    assert list(selectors.device_list(viewer=viewer)) == [device]


def test_nobody_else_sees_any_of_it(cluster: Cluster) -> None:
    factories.device(factories.node(cluster, "n1"))
    inactive = factories.user()
    inactive.is_active = False
    for viewer in (AnonymousUser(), inactive):
        assert list(selectors.cluster_list(viewer=viewer)) == []
        assert list(selectors.node_list(viewer=viewer, cluster=cluster)) == []
        assert list(selectors.device_list(viewer=viewer, cluster=cluster)) == []
        with pytest.raises(Cluster.DoesNotExist):
            selectors.cluster_get("demo", viewer=viewer)
        with pytest.raises(Node.DoesNotExist):
            selectors.node_get(viewer=viewer, cluster=cluster, name="n1")


def test_what_does_not_exist_is_said_so_whatever_the_name(cluster: Cluster) -> None:
    for name in ("nowhere", "de\x00mo", ""):
        with pytest.raises(Cluster.DoesNotExist):
            selectors.cluster_get(name)
        with pytest.raises(Node.DoesNotExist):
            selectors.node_get(cluster=cluster, name=name)


def test_lists_are_of_one_cluster_where_asked_so(cluster: Cluster) -> None:
    other = factories.cluster("another", enabled=False)
    mine = factories.device(factories.node(cluster, "b"))
    theirs = factories.device(factories.node(other, "a"))
    assert list(selectors.cluster_list()) == [other, cluster]
    assert list(selectors.cluster_list(enabled=True)) == [cluster]
    assert list(selectors.node_list()) == [theirs.node, mine.node]
    assert list(selectors.node_list(cluster=cluster)) == [mine.node]
    assert list(selectors.device_list(cluster=other)) == [theirs]


STATES = {
    "an open node that answers is ready": (NodeState.READY, Scheduling.OPEN, "ready"),
    "a cordoned node is cordoned": (NodeState.READY, Scheduling.CORDONED, "cordoned"),
    "a draining node is draining": (NodeState.READY, Scheduling.DRAINING, "draining"),
    "unknown wins over all else": (NodeState.UNKNOWN, Scheduling.DRAINING, "unknown"),
}


@pytest.mark.parametrize(("state", "scheduling", "shown"), STATES.values(), ids=STATES)
def test_the_grid_shows_a_node_with_its_state(
    cluster: Cluster, state: str, scheduling: str, shown: str
) -> None:
    factories.node(
        cluster,
        "n1",
        state=state,
        scheduling=scheduling,
        allocated_cpu_milli=1000,
        allocated_memory_mib=2048,
        cpu_utilised_frac=0.25,
        memory_used_mib=512,
    )
    assert selectors.fleet_state(cluster) == {
        "node:n1": {
            "kind": "node",
            "name": "n1",
            "state": shown,
            "cpu_milli": 64_000,
            "cpu_allocated_milli": 1000,
            "cpu_utilised_frac": 0.25,
            "memory_mib": 524_288,
            "memory_allocated_mib": 2048,
            "memory_used_mib": 512,
            "seen_at": "2026-03-02T12:00:00+00:00",
            "simulated": True,
        }
    }


def test_the_grid_shows_a_device_with_its_flavors_name(cluster: Cluster) -> None:
    node = factories.node(cluster, "n1", seen_at=None)
    factories.device(
        node,
        uid="A",
        index=3,
        allocated_milli=250,
        utilised_frac=0.5,
        memory_used_mib=7,
        power_w=300.0,
        temperature_c=61.0,
        numa_node=1,
        nic="mlx5_2",
    )
    state = selectors.fleet_state(cluster)
    assert state["node:n1"]["seen_at"] is None
    assert state["device:A"] == {
        "kind": "device",
        "uid": "A",
        "node": "n1",
        "index": 3,
        "flavor": "nvidia-a100-80gb",
        "flavor_name": "NVIDIA A100 SXM (80 GB)",
        "health": "healthy",
        "allocated_milli": 250,
        "utilised_frac": 0.5,
        "memory_mib": 81_920,
        "memory_used_mib": 7,
        "power_w": 300.0,
        "temperature_c": 61.0,
        "numa_node": 1,
        "nic": "mlx5_2",
        "holders": [],
    }


def test_a_slice_and_an_unknown_model_have_names_too() -> None:
    name = selectors.flavor_name
    slice_name = name(
        flavor="nvidia-a100-80gb-mig-1g.10gb",
        vendor="nvidia",
        model="NVIDIA A100-SXM4-80GB",
        mig_profile="1g.10gb",
    )
    assert slice_name == "NVIDIA A100 SXM (80 GB) MIG 1g.10gb"
    assert name(flavor="acme-warp-9", vendor="acme", model="Warp 9") == "Warp 9"
    assert name(flavor="unknown", vendor="", model="") == "unknown"


@pytest.mark.parametrize(("old", "new"), [("a", "b"), ("b", "a")])
def test_a_device_that_moved_is_shown_where_it_is_now(cluster: Cluster, old: str, new: str) -> None:
    factories.device(factories.node(cluster, old), uid="A", health=DeviceHealth.LOST)
    factories.device(factories.node(cluster, new), uid="A")
    assert selectors.fleet_state(cluster)["device:A"]["node"] == new


def test_lists_and_the_grid_take_few_queries(
    cluster: Cluster, django_assert_max_num_queries: MaxQueries
) -> None:
    for _ in range(10):
        node = factories.node(cluster)
        for index in range(4):
            factories.device(node, index)
    with django_assert_max_num_queries(2):
        nodes = selectors.node_list(cluster=cluster)
        assert sum(len(node.devices.all()) for node in nodes if node.cluster.slug) == 40
    with django_assert_max_num_queries(1):
        devices = selectors.device_list(cluster=cluster)
        assert {device.node.cluster.slug for device in devices} == {"demo"}
    with django_assert_max_num_queries(2):
        assert len(selectors.fleet_state(cluster)) == 50


# Series.


def _sample(
    cluster: Cluster,
    at: datetime,
    busy: float | None,
    *,
    device: Device | None = None,
    node: Node | None = None,
    job: UUID | None = None,
) -> None:
    place = (
        node.pk if node else device.node_id if device else None,
        device.pk if device else None,
        job,
    )
    services.samples_write(
        rows=[(at, cluster.pk, *place, busy, busy and busy / 2, 100, None, None)]
    )


def test_a_short_span_is_read_from_samples_and_gaps_stay_gaps(cluster: Cluster) -> None:
    device = factories.device(factories.node(cluster))
    _sample(cluster, NOW, 0.2, device=device)
    _sample(cluster, NOW + timedelta(seconds=1), 0.4, device=device)
    _sample(cluster, NOW + timedelta(seconds=10), 0.0, device=device)
    _sample(cluster, NOW + timedelta(seconds=12), 0.9, node=device.node)  # of its cores
    series = selectors.utilisation_series(
        cluster=cluster, since=NOW, until=NOW + timedelta(seconds=20)
    )
    assert [point.at for point in series] == [NOW + timedelta(seconds=5 * n) for n in range(4)]
    assert series[0].utilised_frac == pytest.approx(0.3)
    assert series[0].allocated_frac == pytest.approx(0.15)
    assert (series[1].utilised_frac, series[2].utilised_frac) == (None, 0.0)
    assert series[3].utilised_frac is None


def test_a_cluster_without_devices_shows_its_cores(cluster: Cluster) -> None:
    node = factories.node(cluster)
    _sample(cluster, NOW, 0.5, node=node)
    _sample(cluster, NOW, 3.0, job=JOB)
    span: dict[str, Any] = {"since": NOW, "until": NOW + timedelta(seconds=5)}
    assert selectors.utilisation_series(cluster=cluster, **span)[0].utilised_frac == 0.5
    assert selectors.cpu_series(cluster=cluster, **span)[0].utilised_frac == 0.5
    assert selectors.node_series(node=node, **span)[0].utilised_frac == 0.5


def _rollup(cluster: Cluster, period_s: int, at: datetime, busy: float, **subject: Any) -> None:
    Rollup.objects.create(
        period_s=period_s,
        at=at,
        cluster_id=cluster.pk,
        utilised_mean_frac=busy,
        sample_count=1,
        **subject,
    )


def test_longer_spans_are_read_from_rollups_of_minutes_and_hours(cluster: Cluster) -> None:
    device = factories.device(factories.node(cluster))
    subject = {"node_id": device.node_id, "device_id": device.pk}
    _rollup(cluster, 60, NOW, 0.3, **subject)
    _rollup(cluster, 3600, NOW, 0.7, **subject)
    _sample(cluster, NOW, 0.9, device=device)

    hour = selectors.device_series(device=device, since=NOW, until=NOW + timedelta(hours=1))
    assert len(hour) == 60
    assert (hour[0].utilised_frac, hour[1].utilised_frac) == (0.3, None)

    days = selectors.device_series(device=device, since=NOW, until=NOW + timedelta(days=5))
    assert len(days) == 120
    assert (days[0].utilised_frac, days[1].utilised_frac) == (0.7, None)


def test_the_newest_minutes_of_an_hour_are_read_from_samples_until_they_are_rolled_up(
    cluster: Cluster,
) -> None:
    device = factories.device(factories.node(cluster))
    _rollup(cluster, 60, NOW + timedelta(minutes=58), 0.3, device_id=device.pk)
    for minute in (30, 58, 59):
        _sample(cluster, NOW + timedelta(minutes=minute, seconds=5), 0.9, device=device)
    series = selectors.device_series(device=device, since=NOW, until=NOW + timedelta(hours=1))
    shown = [(at, point.utilised_frac) for at, point in enumerate(series) if point.utilised_frac]
    assert shown == [(58, 0.3), (59, 0.9)]


SPANS = [
    timedelta(seconds=1),
    timedelta(minutes=15),
    timedelta(hours=2),
    timedelta(days=2),
    timedelta(days=400),
    timedelta(days=100_000),
]


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("points", [-5, 1, 2, 7, 600, 10**9])
def test_a_series_never_has_more_points_than_asked_for(
    cluster: Cluster, span: timedelta, points: int
) -> None:
    shift = timedelta(seconds=3)
    series = selectors.utilisation_series(
        cluster=cluster, since=NOW + shift - span, until=NOW + shift, points=points
    )
    assert 1 <= len(series) <= max(2, min(points, 600))


def test_a_span_that_ends_before_it_begins_is_empty(cluster: Cluster) -> None:
    assert selectors.utilisation_series(cluster=cluster, since=NOW, until=NOW) == []
    before = NOW - timedelta(days=1)
    assert selectors.utilisation_series(cluster=cluster, since=NOW, until=before) == []


def test_a_series_of_one_device_or_job_shows_no_other(cluster: Cluster) -> None:
    node = factories.node(cluster)
    one, two = factories.device(node, 0), factories.device(node, 1)
    _sample(cluster, NOW, 0.25, device=one)
    _sample(cluster, NOW, 0.75, device=two)
    _sample(cluster, NOW, 2.5, job=JOB)
    span: dict[str, Any] = {"since": NOW, "until": NOW + timedelta(seconds=5)}
    assert selectors.device_series(device=one, **span)[0].utilised_frac == 0.25
    job = selectors.job_series(job_uid=JOB, **span)[0]
    assert (job.utilised_frac, job.memory_used_mib) == (2.5, 100)
    stranger = UUID("00000000-0000-0000-0000-000000000001")
    assert selectors.job_series(job_uid=stranger, **span)[0].utilised_frac is None


# Means for the ledger.


def test_means_are_over_the_span_and_unknown_where_nothing_was_measured(
    cluster: Cluster,
) -> None:
    node = factories.node(cluster)
    one, two = factories.device(node, 0), factories.device(node, 1)
    until = NOW + timedelta(seconds=60)
    for second, busy in ((-5, 1.0), (0, 0.2), (30, 0.4), (60, 1.0)):
        _sample(cluster, NOW + timedelta(seconds=second), busy, device=one)
        _sample(cluster, NOW + timedelta(seconds=second), busy * 10, job=JOB)
    _sample(cluster, NOW, 0.5, device=two)
    span: dict[str, Any] = {"since": NOW, "until": until}
    mean = selectors.devices_utilised_mean(device_ids=[one.pk, two.pk], **span)
    assert mean == pytest.approx(0.4)  # (0.3 + 0.5) / 2
    assert selectors.job_cores_mean(job_uid=JOB, **span) == pytest.approx(3.0)
    assert selectors.devices_utilised_mean(device_ids=[], **span) is None
    stranger = UUID("00000000-0000-0000-0000-000000000001")
    assert selectors.job_cores_mean(job_uid=stranger, **span) is None


def test_a_long_span_is_averaged_from_rollups_and_a_short_one_from_samples(
    cluster: Cluster, settings: Any
) -> None:
    settings.SAMPLE_KEEP_DAYS = 1
    device = factories.device(factories.node(cluster))
    _sample(cluster, NOW, 0.9, device=device)
    _rollup(cluster, 60, NOW, 0.3, device_id=device.pk)
    _rollup(cluster, 3600, NOW, 0.7, device_id=device.pk)

    def mean(since: datetime, until: datetime) -> float | None:
        return selectors.devices_utilised_mean(device_ids=[device.pk], since=since, until=until)

    assert mean(NOW - timedelta(days=2), NOW + timedelta(hours=1)) == pytest.approx(0.3)
    assert mean(NOW, NOW + timedelta(hours=1)) == pytest.approx(0.9)
    Rollup.objects.all().delete()
    assert mean(NOW - timedelta(days=2), NOW + timedelta(hours=1)) == pytest.approx(0.9)
