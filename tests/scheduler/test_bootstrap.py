"""A new installation: made once, safe to repeat, and the demo fleet gets to work."""

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from scheduler import demo, loop
from scheduler.bootstrap import bootstrap
from scheduler.models import Cycle, Job, PriorityClass
from scheduler.ports import cluster_executor
from telemetry.models import Cluster, Device, Node
from tenants.models import Quota, Tenant

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _own_folder(settings: object, tmp_path: Path) -> None:
    settings.DATA = tmp_path  # type: ignore[attr-defined]


def test_the_first_start_makes_admin_machine_and_demo_and_the_second_changes_nothing() -> None:
    password = bootstrap(demo=True, now=NOW)
    assert password is not None
    assert get_user_model().objects.get(is_superuser=True).check_password(password)
    assert set(Cluster.objects.values_list("slug", "kind")) == {
        ("this-machine", "local"),
        ("demo", "simulated"),
    }
    assert Node.objects.filter(cluster__slug="this-machine").count() == 1
    assert Device.objects.filter(node__cluster__slug="demo").count() > 20
    before = [model.objects.count() for model in (Tenant, Quota, PriorityClass, Cluster, Node)]
    assert bootstrap(demo=True, now=NOW + timedelta(minutes=1)) is None
    after = [model.objects.count() for model in (Tenant, Quota, PriorityClass, Cluster, Node)]
    assert after == before


def test_without_the_demo_there_is_this_machine_and_one_tenant() -> None:
    bootstrap(demo=False, now=NOW)
    assert list(Cluster.objects.values_list("slug", flat=True)) == ["this-machine"]
    assert list(Tenant.objects.values_list("slug", flat=True)) == ["organisation"]


def test_quotas_of_a_flavor_sum_to_what_the_demo_fleet_has() -> None:
    bootstrap(demo=True, now=NOW)
    for flavor in Device.objects.values_list("flavor", flat=True).distinct():
        owned = sum(Quota.objects.filter(flavor=flavor).values_list("nominal", flat=True))
        assert owned == 1000 * Device.objects.filter(flavor=flavor).count()


def _told(now: datetime) -> datetime:
    return now


def test_invented_jobs_arrive_run_and_end_on_the_simulated_fleet() -> None:
    bootstrap(demo=True, now=NOW)
    cluster = Cluster.objects.get(slug="demo")
    ports = loop.Ports(executor=cluster_executor(cluster), node_lost_after_s=60)
    now = NOW
    for _ in range(60):
        now += timedelta(seconds=15)
        demo.arrive(cluster=cluster, now=now)
        loop.run_cycle(cluster, ports, clock=partial(_told, now), woken=True)
    states = set(Job.objects.values_list("state", flat=True))
    assert {"running", "succeeded"} <= states
    assert not list(Cycle.objects.filter(status="error").values_list("note", flat=True))
    assert Cycle.objects.filter(asked="optimising").exists()
