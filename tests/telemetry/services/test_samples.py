import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from telemetry import services
from telemetry.models import Cluster, Device, Node, Rollup, Sample
from tests.factories import NOW
from tests.telemetry.services.readings import JOB, LATER, gpu, machine, take

pytestmark = pytest.mark.django_db


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
