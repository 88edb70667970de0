from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F

from telemetry import services
from telemetry.models import Cluster, Device, Node, Sample
from telemetry.services import intake
from tests.factories import NOW
from tests.telemetry.services.readings import LATER, fleet, gpu, machine, take

pytestmark = pytest.mark.django_db


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


def test_memory_that_is_given_out_during_a_look_stays_counted(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(cluster, machine("n1", gpu()))
    update = intake._update

    def hold_first(*args: Any) -> None:
        Device.objects.update(allocated_milli=500, allocated_memory_mib=40_000)
        update(*args)

    monkeypatch.setattr(intake, "_update", hold_first)
    take(cluster, machine("n1", gpu(memory_mib=1000)), now=LATER)
    assert Device.objects.get().memory_mib == 40_000
