"""What was held is counted once, exactly, and only for those who may see it."""

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser
from pytest_django import DjangoAssertNumQueries

from scheduler.execute.base import Phase
from scheduler.models import DeviceHold, LedgerEntry, ReplicaHold
from scheduler.selectors.usage import UsageRow, usage_list
from telemetry.models import Device
from tests import factories
from tests.scheduler.world import START, World

pytestmark = pytest.mark.django_db

SECOND_US = 1_000_000


@pytest.fixture
def world() -> World:
    """Return a world where one job ran from +1 s to +11 s and another one holds since +11 s."""
    world = World()
    first = world.submit(devices=2, cpu_milli=2000)
    world.cycle()
    second = world.submit(devices=1, cpu_milli=500)
    world.says(first, Phase.SUCCEEDED, exit_code=0)
    world.cycle(after_s=10)
    assert world.state(second) == "starting"
    return world


def used(world: World, from_s: float, to_s: float) -> dict[str, UsageRow]:
    since, until = (START + timedelta(seconds=s) for s in (from_s, to_s))
    return {r.flavor: r for r in usage_list(viewer=world.user, since=since, until=until)}


def test_closed_and_open_holds_add_up_to_what_was_held(world: World) -> None:
    rows = used(world, 0, 20)
    assert rows["nvidia-l4"].allocated_milli_us == (2000 * 10 + 1000 * 9) * SECOND_US
    assert rows["cpu"].allocated_milli_us == (2000 * 10 + 500 * 9) * SECOND_US
    assert rows["nvidia-l4"].cu_hours == pytest.approx(121.0 * (2 * 10 + 9) / 3600)


def test_open_holds_are_unmeasured_and_never_called_idle(world: World) -> None:
    row = used(world, 11, 20)["nvidia-l4"]
    assert row.unmeasured_milli_us == row.allocated_milli_us == 9 * 1000 * SECOND_US
    assert row.idle_milli_us == 0


def test_windows_that_split_a_placement_add_up_exactly(world: World) -> None:
    entry = LedgerEntry.objects.get(flavor="nvidia-l4")
    LedgerEntry.objects.create(  # a third of it was busy: no window divides that evenly
        placement=entry.placement,
        tenant=entry.tenant,
        cluster=entry.cluster,
        owner=entry.owner,
        flavor="odd",
        milli=7,
        opened_at=START,
        closed_at=START + timedelta(seconds=10),
        allocated_milli_us=7 * 10 * SECOND_US,
        utilised_milli_us=23_333_333,
    )
    edges = [0, 0.000001, 1.234567, 3.3, 9.999999, 20]
    parts = [used(world, a, b).get("odd") for a, b in pairwise(edges)]
    sums: Counter[str] = Counter()
    for part in parts:
        assert part is not None
        sums["allocated"] += part.allocated_milli_us
        sums["utilised"] += part.utilised_milli_us
        sums["idle"] += part.idle_milli_us
    assert sums["allocated"] == 70 * SECOND_US
    assert sums["utilised"] == 23_333_333
    assert sums["idle"] == 70 * SECOND_US - 23_333_333


def test_a_window_outside_of_everything_is_empty_and_so_is_one_turned_round(world: World) -> None:
    assert used(world, -20, 0) == {}
    assert used(world, 20, 0) == {}


def test_an_unknown_model_is_said_to_be_unknown_whether_open_or_closed() -> None:
    world = World()
    Device.objects.update(compute_units=None)
    job = world.submit(devices=1)
    world.cycle()
    assert used(world, 0, 9)["nvidia-l4"].unknown_cu
    world.says(job, Phase.FAILED, exit_code=1)
    world.cycle()
    row = used(world, 0, 9)["nvidia-l4"]
    assert (row.unknown_cu, row.cu_hours) == (True, 0.0)
    assert not used(world, 0, 9)["cpu"].unknown_cu


@pytest.mark.usefixtures("world")
def test_the_ledger_equals_the_holds_row_by_row() -> None:
    booked = LedgerEntry.objects.get(flavor="nvidia-l4")
    closed = DeviceHold.objects.exclude(period__upper_inf=True)
    spans = [(h.gpu_milli, h.period.upper - h.period.lower) for h in closed]
    assert len(spans) == 2
    assert booked.allocated_milli_us == sum(
        milli * (span // timedelta(microseconds=1)) for milli, span in spans
    )
    assert ReplicaHold.objects.filter(released=False).count() == 1


@pytest.mark.usefixtures("world")
def test_others_see_nothing_of_it_and_an_admin_all() -> None:
    window: dict[str, Any] = {"since": START, "until": START + timedelta(hours=1)}
    stranger = factories.member(factories.tenant())
    assert usage_list(viewer=stranger, **window) == []
    assert usage_list(viewer=AnonymousUser(), **window) == []
    assert len(usage_list(viewer=factories.admin(), **window)) == 2


def test_one_cluster_is_counted_by_itself(world: World) -> None:
    window: dict[str, Any] = {"since": START, "until": START + timedelta(hours=1)}
    assert len(usage_list(viewer=world.user, cluster="c", **window)) == 2
    assert usage_list(viewer=world.user, cluster="elsewhere", **window) == []


def test_three_queries_whatever_was_held(
    world: World, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(3):  # roles, tenants, sums
        used(world, 0, 20)
