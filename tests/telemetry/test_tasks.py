from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection

from telemetry import services, tasks
from telemetry.models import Cluster, Node, Rollup, Sample
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_now", lambda: NOW)


def test_every_enabled_cluster_is_sampled_into_the_partition_of_today() -> None:
    on = factories.cluster("on", options={"nodes": 1})
    factories.cluster("off", options={"nodes": 1}, enabled=False)
    tasks.sample_all()
    assert set(Node.objects.values_list("cluster_id", flat=True)) == {on.pk}
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT tableoid::regclass::text FROM telemetry_sample")
        assert cursor.fetchall() == [("telemetry_sample_20260302",)]


def test_one_clusters_trouble_does_not_blind_us_to_the_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    factories.cluster("a", options={"nodes": 1})
    factories.cluster("b", options={"nodes": 1})
    sample = services.sample_cluster

    def fail_first(*, cluster: Cluster, now: datetime) -> Any:
        if cluster.slug == "a":
            raise ZeroDivisionError
        return sample(cluster=cluster, now=now)

    monkeypatch.setattr(services, "sample_cluster", fail_first)
    tasks.sample_all()
    assert set(Node.objects.values_list("cluster__slug", flat=True)) == {"b"}
    assert "sample_failed cluster=a" in caplog.text


def test_rolling_up_and_retention_run_on_the_clock() -> None:
    cluster = factories.cluster("on")
    old = datetime(2026, 3, 2, 11, 50, tzinfo=UTC)
    ancient = datetime(2025, 1, 1, tzinfo=UTC)
    for at in (old, ancient):
        services.samples_write(rows=[(at, cluster.pk, 1, None, None, 0.5, None, None, None, None)])
    tasks.roll_up()
    assert Rollup.objects.filter(period_s=60, at=old).count() == 1
    tasks.retain()
    assert list(Sample.objects.values_list("at", flat=True)) == [old]
