"""Tree used throughout: lab > (speech, vision > robots), and other."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser

from tenants import selectors
from tenants.choices import Role
from tenants.models import Tenant
from tests import factories

pytestmark = pytest.mark.django_db

MaxQueries = Callable[[int], AbstractContextManager[Any]]


@pytest.fixture
def tree() -> SimpleNamespace:
    lab = factories.tenant("lab")
    vision = factories.tenant("vision", lab)
    return SimpleNamespace(
        lab=lab,
        vision=vision,
        robots=factories.tenant("robots", vision),
        speech=factories.tenant("speech", lab),
        other=factories.tenant("other"),
    )


def _slugs(rows: Iterable[Tenant]) -> list[str]:
    return [row.slug for row in rows]


def test_a_member_sees_their_tenant_and_all_below_it(tree: SimpleNamespace) -> None:
    viewer = factories.member(tree.vision)
    assert _slugs(selectors.tenant_list(viewer=viewer)) == ["robots", "vision"]
    assert selectors.tenant_ids_visible(viewer=viewer) == {tree.vision.pk, tree.robots.pk}


@pytest.mark.usefixtures("tree")
def test_a_platform_admin_sees_all_tenants_and_anonymous_none() -> None:
    assert len(selectors.tenant_list(viewer=factories.admin())) == 5
    assert list(selectors.tenant_list(viewer=AnonymousUser())) == []
    assert selectors.tenant_tree(viewer=AnonymousUser()) == []
    assert selectors.tenant_ids_visible(viewer=AnonymousUser()) == frozenset()


def test_somebody_inactive_sees_nothing(tree: SimpleNamespace) -> None:
    viewer = factories.member(tree.lab)
    viewer.is_active = False
    assert list(selectors.tenant_list(viewer=viewer)) == []


def test_a_tenant_of_others_does_not_exist_for_a_viewer(tree: SimpleNamespace) -> None:
    viewer = factories.member(tree.vision)
    assert selectors.tenant_get(viewer=viewer, slug="robots") == tree.robots
    for slug in ("lab", "other", "nowhere", "rob\x00ots"):
        with pytest.raises(Tenant.DoesNotExist):
            selectors.tenant_get(viewer=viewer, slug=slug)


def test_the_tree_is_depth_first_with_depths_and_counts_of_members(tree: SimpleNamespace) -> None:
    factories.member(tree.vision)
    factories.member(tree.vision)
    factories.member(tree.robots)
    rows = selectors.tenant_tree(viewer=factories.admin())
    assert [(row.tenant.slug, row.depth, row.member_count) for row in rows] == [
        ("lab", 0, 0),
        ("speech", 1, 0),
        ("vision", 1, 2),
        ("robots", 2, 1),
        ("other", 0, 0),
    ]


def test_the_tree_of_a_member_begins_at_their_tenant(tree: SimpleNamespace) -> None:
    viewer = factories.member(tree.vision)
    rows = selectors.tenant_tree(viewer=viewer)
    assert [(row.tenant.slug, row.depth) for row in rows] == [("vision", 0), ("robots", 1)]


def test_a_viewer_role_sees_a_tenant_but_does_not_submit_to_it(tree: SimpleNamespace) -> None:
    viewer = factories.member(tree.vision, Role.VIEWER)
    factories.membership(viewer, tree.other, Role.MEMBER)
    assert _slugs(selectors.tenants_submittable(viewer=viewer)) == ["other"]


def test_members_are_listed_for_those_who_see_the_tenant_only(tree: SimpleNamespace) -> None:
    viewer = factories.member(tree.vision, username="zoe")
    factories.member(tree.vision, Role.LEAD, username="amy")
    rows = selectors.membership_list(viewer=viewer, tenant=tree.vision)
    assert [(row.user.username, row.role) for row in rows] == [("amy", "lead"), ("zoe", "member")]
    stranger = factories.member(tree.speech)
    assert list(selectors.membership_list(viewer=stranger, tenant=tree.vision)) == []


def test_quotas_of_other_tenants_are_not_listed(tree: SimpleNamespace) -> None:
    cluster, elsewhere = factories.cluster("a"), factories.cluster("b")
    mine = factories.quota(tree.robots, cluster, nominal=1)
    also_mine = factories.quota(tree.robots, elsewhere, nominal=2)
    factories.quota(tree.speech, cluster, nominal=3)
    factories.quota(tree.lab, cluster, nominal=4)
    viewer = factories.member(tree.vision)
    assert list(selectors.quota_list(viewer=viewer)) == [mine, also_mine]
    assert list(selectors.quota_list(viewer=viewer, cluster=elsewhere)) == [also_mine]
    assert list(selectors.quota_list(viewer=viewer, tenant=tree.speech)) == []
    assert list(selectors.quota_list(viewer=AnonymousUser())) == []


def test_a_quota_tree_sums_what_lies_below_and_tells_what_is_borrowed(
    tree: SimpleNamespace,
) -> None:
    cluster = factories.cluster()
    factories.quota(tree.lab, cluster, nominal=1000)
    own = factories.quota(
        tree.vision, cluster, nominal=4000, borrowing_limit=2000, lending_limit=500
    )
    factories.quota(tree.robots, cluster, nominal=2000)
    factories.quota(tree.vision, factories.cluster(), nominal=99)
    usage = {("vision", "cpu"): 4500, ("robots", "cpu"): 500, ("speech", "cpu"): 250}
    trees = selectors.quota_tree(viewer=factories.admin(), cluster=cluster, usage=usage)
    assert [tree.flavor for tree in trees] == ["cpu"]
    rows = {row.tenant_slug: row for row in trees[0].rows}
    assert list(rows) == ["lab", "speech", "vision", "robots", "other"]
    lab, vision, speech = rows["lab"], rows["vision"], rows["speech"]
    assert (lab.nominal_below, lab.usage_below, lab.borrowed) == (6000, 5250, 0)
    assert (vision.quota_id, vision.nominal, vision.usage, vision.borrowed) == (
        own.pk,
        4000,
        4500,
        500,
    )
    assert (vision.borrowing_limit, vision.lending_limit) == (2000, 500)
    assert (vision.nominal_below, vision.usage_below) == (2000, 500)
    assert (vision.parent_slug, vision.depth) == ("lab", 1)
    assert (speech.quota_id, speech.nominal, speech.borrowed) == (None, 0, 250)


def test_a_quota_tree_tells_nothing_of_tenants_that_the_viewer_does_not_see(
    tree: SimpleNamespace,
) -> None:
    cluster = factories.cluster()
    factories.quota(tree.speech, cluster, flavor="nvidia-t4", nominal=1000)
    factories.quota(tree.vision, cluster, nominal=1000)
    viewer = factories.member(tree.vision)
    usage = {("speech", "nvidia-v100"): 7, ("vision", "nvidia-a10"): 5}
    trees = selectors.quota_tree(viewer=viewer, cluster=cluster, usage=usage)
    assert [tree.flavor for tree in trees] == ["cpu", "nvidia-a10"]
    assert {row.tenant_slug for tree in trees for row in tree.rows} == {"vision", "robots"}
    assert trees[0].rows[0].parent_slug == ""


def test_lists_take_few_queries_however_many_rows(
    tree: SimpleNamespace, django_assert_max_num_queries: MaxQueries
) -> None:
    cluster = factories.cluster()
    for number in range(20):
        team = factories.tenant(f"team{number}", tree.lab)
        factories.member(team)
        factories.quota(team, cluster, nominal=1)
    viewer = factories.member(tree.lab)
    with django_assert_max_num_queries(2):
        assert len([row.parent for row in selectors.tenant_list(viewer=viewer)]) == 24
    with django_assert_max_num_queries(2):
        assert len(selectors.tenant_tree(viewer=viewer)) == 24
    with django_assert_max_num_queries(2):
        quotas = selectors.quota_list(viewer=viewer)
        assert len({(row.tenant.slug, row.cluster.slug) for row in quotas}) == 20
    with django_assert_max_num_queries(4):
        assert len(selectors.quota_tree(viewer=viewer, cluster=cluster, usage={})[0].rows) == 24
    with django_assert_max_num_queries(2):
        rows = selectors.membership_list(viewer=viewer, tenant=tree.lab)
        assert len([row.user.username for row in rows]) == 1
