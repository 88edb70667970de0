"""Tree used throughout: lab > vision > robots, and lab > speech."""

from types import SimpleNamespace

import pytest
from django.contrib.auth.models import AnonymousUser

from tenants import policies
from tenants.choices import Role
from tenants.models import Tenant, Viewer
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def tree() -> SimpleNamespace:
    lab = factories.tenant("lab")
    vision = factories.tenant("vision", lab)
    return SimpleNamespace(
        lab=lab,
        vision=vision,
        robots=factories.tenant("robots", vision),
        speech=factories.tenant("speech", lab),
    )


MAY = {
    # role in vision -> what it allows in vision itself
    Role.ADMIN: {"see", "submit", "cancel", "members", "admins", "manage"},
    Role.LEAD: {"see", "submit", "cancel", "members"},
    Role.MEMBER: {"see", "submit"},
    Role.VIEWER: {"see"},
}


def _may(viewer: Viewer, tenant: Tenant) -> set[str]:
    stranger = -1
    answers = {
        "see": policies.may_see_tenant(viewer, tenant),
        "submit": policies.may_submit(viewer, tenant),
        "cancel": policies.may_cancel(viewer, tenant, stranger),
        "members": policies.may_manage_members(viewer, tenant),
        "admins": policies.may_manage_admins(viewer, tenant),
        "manage": policies.may_manage_tenant(viewer, tenant),
        "quota": policies.may_set_quota(viewer, tenant),
    }
    return {name for name, answer in answers.items() if answer}


@pytest.mark.parametrize("role", list(Role))
def test_a_role_allows_what_the_table_says_and_no_more(tree: SimpleNamespace, role: Role) -> None:
    person = factories.member(tree.vision, role)
    assert _may(person, tree.vision) == MAY[role]


@pytest.mark.parametrize("role", list(Role))
def test_a_role_holds_below_but_neither_above_nor_beside(tree: SimpleNamespace, role: Role) -> None:
    person = factories.member(tree.vision, role)
    below = MAY[role] | ({"quota"} if role == Role.ADMIN else set())
    assert _may(person, tree.robots) == below
    assert _may(person, tree.lab) == set()
    assert _may(person, tree.speech) == set()


def test_nobody_sets_the_quota_of_their_own_tenant(tree: SimpleNamespace) -> None:
    person = factories.member(tree.vision, Role.ADMIN)
    assert not policies.may_set_quota(person, tree.vision)
    assert policies.may_set_quota(factories.member(tree.lab, Role.ADMIN), tree.vision)
    assert not policies.may_set_quota(factories.member(tree.lab, Role.LEAD), tree.vision)


def test_the_quota_of_a_root_is_for_platform_admins_only(tree: SimpleNamespace) -> None:
    assert not policies.may_set_quota(factories.member(tree.lab, Role.ADMIN), tree.lab)
    assert policies.may_set_quota(factories.admin(), tree.lab)


def test_an_owner_may_cancel_their_own_job_whatever_their_role(tree: SimpleNamespace) -> None:
    person = factories.member(tree.vision, Role.VIEWER)
    assert policies.may_cancel(person, tree.vision, person.pk)
    assert not policies.may_cancel(person, tree.vision, person.pk + 1)


def test_a_platform_admin_may_do_everything(tree: SimpleNamespace) -> None:
    everything = MAY[Role.ADMIN] | {"quota"}
    person = factories.admin()
    assert _may(person, tree.robots) == everything
    assert policies.is_platform_admin(person)
    assert policies.may_operate_nodes(person)
    assert policies.may_create_tenant(person, None)


def test_an_admin_of_a_tenant_operates_no_nodes_and_makes_no_roots(tree: SimpleNamespace) -> None:
    person = factories.member(tree.lab, Role.ADMIN)
    assert not policies.may_operate_nodes(person)
    assert not policies.may_create_tenant(person, None)
    assert policies.may_create_tenant(person, tree.robots)


def test_somebody_inactive_may_do_nothing(tree: SimpleNamespace) -> None:
    person = factories.member(tree.vision, Role.ADMIN)
    boss = factories.admin()
    for user in (person, boss):
        user.is_active = False
        assert _may(user, tree.vision) == set()
        assert not policies.may_cancel(user, tree.vision, user.pk)
    assert not policies.is_platform_admin(boss)
    assert not policies.may_operate_nodes(boss)


def test_somebody_anonymous_may_do_nothing(tree: SimpleNamespace) -> None:
    nobody = AnonymousUser()
    assert _may(nobody, tree.vision) == set()
    assert not policies.is_platform_admin(nobody)
    assert not policies.may_cancel(nobody, tree.vision, 0)
