from collections.abc import Sequence

import pytest

from telemetry import services
from telemetry.choices import NodeState
from telemetry.models import Cluster, Device, Node
from telemetry.sense.base import CollectorUnavailableError, NodeReading
from telemetry.services import sampling
from tests import factories
from tests.factories import NOW
from tests.telemetry.services.readings import LATER, machine, take

pytestmark = pytest.mark.django_db


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
