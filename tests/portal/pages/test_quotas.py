"""Quotas as a tree, edited in place."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler import loop
from scheduler.models import Job
from scheduler.ports import cluster_executor
from tenants.models import Quota
from tenants.services import quota_delete
from tests import factories
from tests.portal.pages.conftest import A100, World, text_of

EDIT = f"/admin/quotas/demo/vision/{A100}/edit/"
SAVE = f"/admin/quotas/demo/vision/{A100}/save/"


def quota(world: World) -> Quota:
    return Quota.objects.get(tenant=world.vision, cluster=world.demo, flavor=A100)


def test_a_member_sees_their_tenants_quota_and_may_not_edit(ada: Client) -> None:
    page = text_of(ada.get("/admin/quotas/?cluster=demo"))
    assert "Vision" in page
    assert "Speech team" not in page
    assert "hx-get" not in page
    assert "Set a quota" not in page


def test_an_admin_edits_a_row_in_place(root: Client, world: World) -> None:
    assert 'value="4"' in text_of(root.get(EDIT))
    page = text_of(root.post(SAVE, {"nominal": "2.5", "borrowing_limit": "0", "lending_limit": ""}))
    row = quota(world)
    assert (row.nominal, row.borrowing_limit, row.lending_limit) == (2500, 0, None)
    assert "data-editing" not in page
    assert ">2.5<" in page.replace("2.5\n", "2.5")


@pytest.mark.parametrize("text", ["1e3", "-1", "16GB", "", "１"])
def test_an_amount_that_can_not_be_taken_stays_in_the_open_row(
    root: Client, world: World, text: str
) -> None:
    page = text_of(root.post(SAVE, {"nominal": text}))
    assert "data-editing" in page
    assert "k-error" in page
    assert quota(world).nominal == 4000


def test_lending_more_than_one_owns_is_refused(root: Client) -> None:
    page = text_of(root.post(SAVE, {"nominal": "1", "lending_limit": "2"}))
    assert "can&#x27;t lend" in page


@pytest.mark.parametrize("who", ["ada", "lead", "viewer", "eve"])
def test_nobody_edits_what_they_own(world: World, who: str) -> None:
    client = world.sees(getattr(world, who))
    assert client.get(EDIT).status_code == 404
    assert client.post(SAVE, {"nominal": "100"}).status_code == 404
    assert quota(world).nominal == 4000


def test_only_those_above_remove_a_quota(lead: Client, eve: Client, world: World) -> None:
    path = f"/admin/quotas/{quota(world).pk}/remove/"
    assert eve.post(path).status_code == 404
    lead.post(path)
    assert quota(world).nominal == 4000
    world.sees(world.root).post(path)
    assert not Quota.objects.filter(tenant=world.vision).exists()


def test_a_quota_of_a_new_flavor_is_set_by_the_form(root: Client, world: World) -> None:
    fields = {"tenant": "vision", "flavor": "cpu", "nominal": "12"}
    root.post("/admin/quotas/?cluster=demo", fields)
    assert Quota.objects.get(tenant=world.vision, flavor="cpu").nominal == 12_000


def test_owning_more_than_there_is_is_said(root: Client, world: World) -> None:
    assert "own more than there is" not in text_of(root.get("/admin/quotas/?cluster=demo"))
    Quota.objects.filter(tenant=world.vision).update(nominal=5000)
    assert "own more than there is" in text_of(root.get("/admin/quotas/?cluster=demo"))


def test_what_is_held_above_a_quota_that_was_cut_is_said(root: Client, world: World) -> None:
    Job.objects.filter(pk=world.job.pk).update(devices=2)
    ports = loop.Ports(executor=cluster_executor(world.demo), node_lost_after_s=1e9)
    assert loop.run_cycle(world.demo, ports, clock=lambda: datetime.now(UTC), woken=True).ran
    assert "above its quota" not in text_of(root.get("/admin/quotas/?cluster=demo"))
    Quota.objects.filter(tenant=world.vision).update(nominal=500, borrowing_limit=0)
    assert "1.5 above its quota" in text_of(root.get("/admin/quotas/?cluster=demo"))


def test_more_tenants_cost_a_bounded_number_of_queries(ada: Client, world: World) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            ada.get("/admin/quotas/?cluster=demo")
        return len(seen)

    factories.tenant("below", world.vision)
    queries()
    few = queries()
    for number in range(5):
        factories.tenant(f"below{number}", world.vision)
    assert queries() == few <= 60


def test_who_comes_second_to_remove_a_quota_is_told_that_there_is_none(
    root: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after_another(**asked: Any) -> None:
        Quota.objects.all().delete()
        quota_delete(**asked)

    monkeypatch.setattr("portal.pages.quotas.quota_delete", after_another)
    assert root.post(f"/admin/quotas/{quota(world).pk}/remove/").status_code == 404
