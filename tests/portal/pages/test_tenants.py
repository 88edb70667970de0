"""Tenants and their members, on pages."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tenants.choices import Role
from tenants.models import Membership, Tenant
from tests.portal.pages.conftest import World, text_of


def test_the_tree_shows_what_the_viewer_sees(ada: Client, root: Client) -> None:
    page = text_of(ada.get("/admin/tenants/"))
    assert "/admin/tenants/vision/" in page
    assert "/admin/tenants/language/" not in page
    assert "New tenant" not in page
    assert "k-depth-1" in text_of(root.get("/admin/tenants/"))


def test_an_admin_makes_a_tenant_below_another(root: Client, world: World) -> None:
    response = root.post(
        "/admin/tenants/",
        {"slug": "team-a", "name": "Team <A>", "parent": "vision", "fair_weight": "2"},
        follow=True,
    )
    made = Tenant.objects.get(slug="team-a")
    assert (made.parent, made.fair_weight) == (world.vision, 2.0)
    assert "Team &lt;A&gt;" in text_of(response)
    assert "Team <A>" not in text_of(response)


def test_a_refused_tenant_keeps_what_was_typed(root: Client) -> None:
    response = root.post(
        "/admin/tenants/", {"slug": "Not A Slug", "name": "Kept", "parent": "", "fair_weight": "1"}
    )
    page = text_of(response)
    assert response.status_code == 422
    assert "is not a short name" in page
    assert 'value="Kept"' in page


@pytest.mark.parametrize("who", ["ada", "lead", "viewer"])
def test_nobody_else_makes_tenants(world: World, who: str) -> None:
    fields = {"slug": "mine", "name": "Mine", "parent": "vision", "fair_weight": "1"}
    world.sees(getattr(world, who)).post("/admin/tenants/", fields)
    assert not Tenant.objects.filter(slug="mine").exists()


ACTIONS = ("", "update/", "move/", "delete/", "members/", "members/ada/remove/", "people/")


@pytest.mark.parametrize("action", ACTIONS)
def test_the_tenant_of_others_does_not_exist(eve: Client, action: str) -> None:
    path = f"/admin/tenants/vision/{action}"
    assert (eve.post(path) if action else eve.get(path)).status_code == 404


def test_a_member_sees_no_controls(ada: Client) -> None:
    page = text_of(ada.get("/admin/tenants/vision/"))
    assert "lead" in page
    assert "Add a member" not in page
    assert "data-action=" not in page


def test_a_lead_adds_a_member(lead: Client, world: World) -> None:
    lead.post("/admin/tenants/vision/members/", {"username": "eve", "role": "viewer"})
    row = Membership.objects.get(tenant=world.vision, user=world.eve)
    assert row.role == Role.VIEWER


def test_a_lead_makes_no_admin(lead: Client, world: World) -> None:
    path = "/admin/tenants/vision/members/"
    response = lead.post(path, {"username": "eve", "role": "admin"}, follow=True)
    assert not Membership.objects.filter(tenant=world.vision, user=world.eve).exists()
    assert "You may not make or change admins." in text_of(response)


def test_somebody_who_does_not_exist_is_named_beside_the_field(lead: Client) -> None:
    path = "/admin/tenants/vision/members/"
    response = lead.post(path, {"username": "no-one", "role": "member"})
    assert response.status_code == 422
    assert "There is no such person" in text_of(response)
    assert 'value="no-one"' in text_of(response)


def test_a_lead_removes_a_member(lead: Client, world: World) -> None:
    lead.post("/admin/tenants/vision/members/ada/remove/")
    assert not Membership.objects.filter(tenant=world.vision, user=world.ada).exists()


def test_a_new_account_gets_a_password_that_is_shown_once(root: Client, world: World) -> None:
    path = "/admin/tenants/vision/people/"
    page = text_of(root.post(path, {"username": "grace", "role": "member"}))
    shown = re.search(r'id="new-password" readonly value="([^"]{16})"', page)
    grace = User.objects.get(username="grace")
    assert shown
    assert grace.check_password(shown[1])
    assert Membership.objects.get(user=grace).tenant == world.vision
    assert shown[1] not in text_of(root.get("/admin/tenants/vision/"))


@pytest.mark.parametrize("name", ["ada", "no spaces", ""])
def test_an_account_that_can_not_be_made_leaves_nothing(root: Client, name: str) -> None:
    before = User.objects.count()
    response = root.post("/admin/tenants/vision/people/", {"username": name, "role": "member"})
    assert response.status_code == 422
    assert User.objects.count() == before


def test_a_lead_makes_no_accounts(lead: Client) -> None:
    lead.post("/admin/tenants/vision/people/", {"username": "grace", "role": "member"})
    assert not User.objects.filter(username="grace").exists()


def test_a_tenant_is_moved_but_not_below_itself(root: Client, world: World) -> None:
    root.post("/admin/tenants/vision/move/", {"parent": "language"})
    world.vision.refresh_from_db()
    assert world.vision.parent == world.language
    response = root.post("/admin/tenants/language/move/", {"parent": "vision"})
    assert response.status_code == 422
    assert "lies below" in text_of(response)


def test_a_tenant_with_jobs_is_not_deleted_and_says_why(root: Client) -> None:
    response = root.post("/admin/tenants/vision/delete/", follow=True)
    assert Tenant.objects.filter(slug="vision").exists()
    assert "stays booked" in text_of(response)


def test_an_empty_tenant_is_deleted(root: Client, world: World) -> None:
    world.job.delete()
    root.post("/admin/tenants/vision/delete/")
    assert not Tenant.objects.filter(slug="vision").exists()


def test_a_tenant_above_that_one_may_not_see_is_not_named(lead: Client, root: Client) -> None:
    assert "Organisation</a>" in text_of(root.get("/admin/tenants/vision/"))
    assert ">Organisation" not in text_of(lead.get("/admin/tenants/vision/")).replace(
        'k-nav-group">Organisation', ""
    )
