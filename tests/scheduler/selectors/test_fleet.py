"""Who holds what, for those who may see it, in a fixed number of queries."""

import pytest
from pytest_django import DjangoAssertNumQueries

from scheduler.execute.base import Phase
from scheduler.models import Cycle
from scheduler.selectors.fairness import fairness_get
from scheduler.selectors.fleet import fleet_rows, for_viewer
from scheduler.selectors.jobs import job_get, job_list
from tenants.selectors import tenant_ids_visible
from tests import factories
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    world = World()
    world.submit("mine", devices=1, gpu_milli=400, gpu_memory_mib=100)
    world.cycle()
    return world


def test_a_holder_is_named_to_its_tenant_and_nameless_to_others(world: World) -> None:
    rows = fleet_rows(world.cluster)
    held = next(row for row in rows.values() if row.get("holders"))
    seen = {
        "member": for_viewer(rows, tenant_ids_visible(viewer=world.user)),
        "stranger": for_viewer(rows, tenant_ids_visible(viewer=factories.user())),
        "admin": for_viewer(rows, None),
    }
    key = f"device:{held['uid']}"
    assert seen["member"][key]["holders"] == seen["admin"][key]["holders"]
    (mine,) = seen["member"][key]["holders"]
    assert (mine["name"], mine["tenant"], mine["gpu_milli"]) == ("mine", "t", 400)
    assert seen["stranger"][key]["holders"] == [
        {"job": None, "name": None, "tenant": None, "gpu_milli": 400}
    ]
    assert "mine" not in repr(seen["stranger"])
    assert "tenant_id" not in repr(seen["admin"])
    assert "tenant_id" in repr(rows)  # what was cached stays whole


def test_the_number_of_queries_does_not_grow_with_the_fleet(
    world: World, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for name in ("a", "b", "z"):
        world.add_node(name)
        world.submit(devices=1)
    world.cycle()
    with django_assert_num_queries(4):  # nodes, devices, holders, counts
        rows = fleet_rows(world.cluster)
    assert (rows["cluster"]["running"], rows["cluster"]["queued"]) == (4, 0)


def test_a_device_that_moved_is_not_shown_as_held_where_nobody_holds_it(world: World) -> None:
    held = next(row for row in fleet_rows(world.cluster).values() if row.get("holders"))
    world.node.devices.filter(uid=held["uid"]).update(health="lost")
    elsewhere = world.add_node("elsewhere", devices=0)
    factories.device(elsewhere, uid=held["uid"])
    assert fleet_rows(world.cluster)[f"device:{held['uid']}"]["holders"] == []


def test_what_has_ended_is_neither_running_nor_queued(world: World) -> None:
    job = job_list(viewer=world.user).get()
    world.says(job, Phase.SUCCEEDED, exit_code=0)
    world.cycle()
    summary = fleet_rows(world.cluster)["cluster"]
    assert (summary["running"], summary["queued"], summary["allocated_frac"]) == (0, 0, 0.0)


def test_shares_of_tenants_that_one_may_not_see_are_summed(world: World) -> None:
    Cycle.objects.all().delete()
    share = {"flavor": "cpu", "entitled": 1, "fair": 2, "allocated": 3, "requested": 4, "part": 5}
    factories.tenant("u"), factories.tenant("v")
    shares = [{"tenant": name, **share} for name in ("t", "u", "v")]
    base = {"cluster": world.cluster, "strategy": "rules", "asked": "rules", "status": "x"}
    counts = {"pending_count": 0, "start_count": 0, "wall_ms": 1}
    Cycle.objects.create(at=world.now, fair_shares=shares, **base, **counts)
    Cycle.objects.create(at=world.now, fair_shares=[], **base, **counts)  # says nothing of them
    rows = fairness_get(viewer=world.user, cluster=world.cluster).rows
    assert rows == [
        {"tenant": "t", **share},
        {
            "tenant": None,
            "flavor": "cpu",
            "entitled": 2,
            "fair": 4,
            "allocated": 6,
            "requested": 8,
            "part": 10,
        },
    ]


def test_a_job_of_others_is_as_if_there_were_none(world: World) -> None:
    job = job_list(viewer=world.user).get()
    with pytest.raises(type(job).DoesNotExist):
        job_get(viewer=factories.user(), uid=str(job.pk))
