"""PostgreSQL itself refuses what would over-allocate."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.utils import InternalError

from scheduler.models import (
    DeviceHold,
    Job,
    JobEvent,
    LedgerEntry,
    Placement,
    PriorityClass,
    ReplicaHold,
)
from telemetry.models import Cluster, Device, Node
from tenants.models import Tenant

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def node() -> Node:
    cluster = Cluster.objects.create(slug="c", name="c", kind="simulated")
    return Node.objects.create(cluster=cluster, name="n", cpu_milli=4000, memory_mib=8192)


@pytest.fixture
def device(node: Node) -> Device:
    return Device.objects.create(
        node=node, uid="d", index=0, vendor="nvidia", model="x", flavor="x", memory_mib=1000
    )


def placement(node: Node) -> Placement:
    tenant, _ = Tenant.objects.get_or_create(slug="t", defaults={"name": "t"})
    owner, _ = get_user_model().objects.get_or_create(username="u")
    priority, _ = PriorityClass.objects.get_or_create(slug="p", defaults={"value": 1})
    job = Job.objects.create(
        uid=uuid.uuid4(),
        name="j",
        tenant=tenant,
        cluster=node.cluster,
        owner=owner,
        priority_class=priority,
        submitted_at=NOW,
    )
    return Placement.objects.create(job=job, attempt=1, cluster=node.cluster, created_at=NOW)


def hold(node: Node, cpu_milli: int = 1000, memory_mib: int = 1024) -> ReplicaHold:
    return ReplicaHold.objects.create(
        placement=placement(node), index=0, node=node, cpu_milli=cpu_milli, memory_mib=memory_mib
    )


def hold_device(
    device: Device, milli: int, memory_mib: int, start: datetime = NOW, end: datetime | None = None
) -> DeviceHold:
    return DeviceHold.objects.create(
        replica=hold(device.node, cpu_milli=100, memory_mib=10),
        device=device,
        gpu_milli=milli,
        memory_mib=memory_mib,
        exclusive=milli == 1000,
        period=DateTimeTZRange(start, end),
    )


def test_a_hold_is_counted_on_its_node_and_given_back_at_release(node: Node) -> None:
    row = hold(node, 1500, 2048)
    node.refresh_from_db()
    assert (node.allocated_cpu_milli, node.allocated_memory_mib) == (1500, 2048)
    row.released = True
    row.save(update_fields=["released"])
    row.save(update_fields=["released"])
    node.refresh_from_db()
    assert (node.allocated_cpu_milli, node.allocated_memory_mib) == (0, 0)


@pytest.mark.parametrize(("cpu_milli", "memory_mib"), [(2501, 1), (1, 6145)])
def test_a_node_never_holds_more_than_it_has(node: Node, cpu_milli: int, memory_mib: int) -> None:
    hold(node, 1500, 2048)
    with pytest.raises(IntegrityError, match="no room"), transaction.atomic():
        hold(node, cpu_milli, memory_mib)
    hold(node, 2500, 6144)


def test_a_node_may_shrink_below_its_holds_and_then_takes_no_more(node: Node) -> None:
    hold(node, 3000, 1024)
    Node.objects.filter(pk=node.pk).update(cpu_milli=2000)
    with pytest.raises(IntegrityError, match="no room"), transaction.atomic():
        hold(node, 1, 1)


def test_shares_of_a_device_never_sum_above_the_whole(device: Device) -> None:
    hold_device(device, 600, 100)
    hold_device(device, 400, 100)
    with pytest.raises(IntegrityError, match="device_allocated_milli"), transaction.atomic():
        hold_device(device, 1, 1)


def test_memory_of_a_device_never_sums_above_what_it_has(device: Device) -> None:
    hold_device(device, 100, 900)
    with pytest.raises(IntegrityError, match="device_allocated_memory"), transaction.atomic():
        hold_device(device, 100, 101)


def test_a_whole_device_excludes_a_share_and_another_whole(device: Device) -> None:
    first = hold_device(device, 1000, 1000)
    for milli in (1000, 1):
        with pytest.raises(IntegrityError), transaction.atomic():
            hold_device(device, milli, 0)
    first.period = DateTimeTZRange(NOW, NOW + timedelta(hours=1))
    first.save(update_fields=["period"])
    device.refresh_from_db()
    assert (device.allocated_milli, device.allocated_memory_mib) == (0, 0)
    hold_device(device, 1000, 1000, start=NOW + timedelta(hours=1))


def test_whole_holds_of_one_device_never_overlap_in_time(device: Device) -> None:
    hold_device(device, 1000, 1000, NOW, NOW + timedelta(hours=1))
    with pytest.raises(IntegrityError, match="device_hold_exclusive"), transaction.atomic():
        hold_device(device, 1000, 1000, NOW + timedelta(minutes=59))


def test_what_a_replica_holds_never_changes(node: Node) -> None:
    row = hold(node)
    row.cpu_milli = 1
    with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
        row.save(update_fields=["cpu_milli"])


def test_events_and_ledger_are_append_only(node: Node) -> None:
    row = placement(node)
    event = JobEvent.objects.create(job=row.job, at=NOW, kind="note", actor="x")
    entry = LedgerEntry.objects.create(
        placement=row,
        tenant=row.job.tenant,
        cluster=row.cluster,
        owner=row.job.owner,
        flavor="cpu",
        milli=1,
        opened_at=NOW,
        closed_at=NOW,
        allocated_milli_us=0,
    )
    for victim in (event, entry):
        for harm in (victim.delete, victim.save):
            refusal = pytest.raises((IntegrityError, InternalError), match="append-only")
            with refusal, transaction.atomic():
                harm()
