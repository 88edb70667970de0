from datetime import datetime, timedelta

import pytest

from telemetry import services
from telemetry.models import Cluster, Rollup
from tests.factories import NOW
from tests.telemetry.services.readings import JOB, gpu, machine, take

pytestmark = pytest.mark.django_db


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
