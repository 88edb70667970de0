"""Nodes: cordon, drain, open."""

import pytest
from django.test import Client

from scheduler.models import Placement, ReplicaHold
from telemetry.choices import Scheduling
from telemetry.models import Node
from tests import factories
from tests.portal.pages.conftest import World, text_of


def state(name: str) -> str:
    return Node.objects.get(name=name).scheduling


def test_a_node_is_cordoned_with_a_reason_and_opened_again(root: Client) -> None:
    root.post("/admin/nodes/demo/n1/cordon/", {"reason": "fan <b>broken</b>"})
    assert state("n1") == Scheduling.CORDONED
    page = text_of(root.get("/admin/nodes/?cluster=demo"))
    assert "fan &lt;b&gt;broken" in page
    root.post("/admin/nodes/demo/n1/uncordon/", {})
    assert state("n1") == Scheduling.OPEN


def test_drain_says_first_which_jobs_it_stops(root: Client, world: World) -> None:
    placement = Placement.objects.create(
        job=world.job, attempt=1, cluster=world.demo, created_at=factories.NOW
    )
    ReplicaHold.objects.create(
        placement=placement,
        index=0,
        node=Node.objects.get(name="n1"),
        cpu_milli=1000,
        memory_mib=1024,
    )
    page = text_of(root.get("/admin/nodes/demo/n1/drain/"))
    assert "This job is stopped and queued again" in page
    assert "train &lt;b&gt;" in page
    assert state("n1") == Scheduling.OPEN
    root.post("/admin/nodes/demo/n1/drain/", {"reason": ""})
    assert state("n1") == Scheduling.DRAINING


@pytest.mark.parametrize("who", ["ada", "lead", "viewer", "eve"])
@pytest.mark.parametrize("action", ["cordon", "drain", "uncordon"])
def test_nobody_else_operates_nodes(world: World, who: str, action: str) -> None:
    response = world.sees(getattr(world, who)).post(f"/admin/nodes/demo/n1/{action}/")
    assert response.status_code == 403
    assert state("n1") == Scheduling.OPEN


@pytest.mark.parametrize("path", ["demo/moon/drain/", "moon/n1/drain/", "demo/n1/explode/"])
def test_what_does_not_exist_is_not_found(root: Client, path: str) -> None:
    assert root.get(f"/admin/nodes/{path}").status_code == 404
