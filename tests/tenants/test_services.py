from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from auditlog.models import LogEntry
from django.contrib.auth.models import User

from tenants import events, services
from tenants.choices import Role
from tenants.errors import ConflictError, InvalidValueError, NotAllowedError
from tenants.models import Quota, Tenant
from tests import factories
from tests.tenants.acts import hear, own

pytestmark = pytest.mark.django_db

OnCommit = Callable[..., AbstractContextManager[list[Callable[[], None]]]]


def test_an_admin_makes_a_tenant_below_theirs(lab: Tenant) -> None:
    actor = factories.member(lab, Role.ADMIN)
    tenant = services.tenant_create(
        actor=actor, slug="vision", name="  Vision  ", parent=lab, fair_weight=2
    )
    tenant.refresh_from_db()
    assert (tenant.name, tenant.fair_weight, tenant.parent_id) == ("Vision", 2.0, lab.pk)


@pytest.mark.parametrize("role", [Role.LEAD, Role.MEMBER, Role.VIEWER])
def test_nobody_less_than_an_admin_makes_a_tenant(lab: Tenant, role: Role) -> None:
    actor = factories.member(lab, role)
    with pytest.raises(NotAllowedError):
        services.tenant_create(actor=actor, slug="vision", name="Vision", parent=lab)
    assert not Tenant.objects.filter(slug="vision").exists()


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("slug", {"slug": "Vision"}),
        ("slug", {"slug": "-vision"}),
        ("slug", {"slug": "v" * 64}),
        ("slug", {"slug": "vi\x00sion"}),
        ("slug", {"slug": "ｖision"}),
        ("slug", {"slug": "vision\n"}),
        ("slug", {"slug": None}),
        ("name", {"name": "   "}),
        ("name", {"name": "x" * 201}),
        ("name", {"name": "a\x00b"}),
        ("name", {"name": "a\u202eb"}),
        ("fair_weight", {"fair_weight": -1}),
        ("fair_weight", {"fair_weight": float("nan")}),
        ("fair_weight", {"fair_weight": float("inf")}),
        ("fair_weight", {"fair_weight": True}),
        ("fair_weight", {"fair_weight": "2"}),
        ("fair_weight", {"fair_weight": 10**400}),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(
    boss: User, field: str, values: dict[str, Any]
) -> None:
    with pytest.raises(InvalidValueError) as refused:
        services.tenant_create(actor=boss, **{"slug": "vision", "name": "Vision", **values})
    assert list(refused.value.fields) == [field]
    assert not Tenant.objects.exists()


def test_a_slug_in_use_is_refused_and_the_transaction_goes_on(boss: User) -> None:
    factories.tenant("lab")
    with pytest.raises(InvalidValueError) as refused:
        services.tenant_create(actor=boss, slug="lab", name="Other")
    assert list(refused.value.fields) == ["slug"]
    assert Tenant.objects.get().name == "Lab"


def test_an_admin_renames_their_tenant_but_does_not_weigh_it(lab: Tenant) -> None:
    actor = factories.member(lab, Role.ADMIN)
    services.tenant_update(actor=actor, tenant=lab, name="The lab", fair_weight=1.0)
    with pytest.raises(NotAllowedError):
        services.tenant_update(actor=actor, tenant=lab, fair_weight=9.0)
    lab.refresh_from_db()
    assert (lab.name, lab.fair_weight) == ("The lab", 1.0)


def test_an_admin_above_weighs_a_tenant_and_says_who_is_served_first(lab: Tenant) -> None:
    vision = factories.tenant("vision", lab)
    actor = factories.member(lab, Role.ADMIN)
    services.tenant_update(actor=actor, tenant=vision, fair_weight=0, queue_priority=2)
    vision.refresh_from_db()
    assert (vision.fair_weight, vision.queue_priority) == (0.0, 2)


@pytest.mark.parametrize("value", [-1, 1001, 1.5, True, "2"])
def test_a_queue_priority_is_an_integer_up_to_a_thousand(lab: Tenant, value: Any) -> None:
    vision = factories.tenant("vision", lab)
    actor = factories.member(lab, Role.ADMIN)
    with pytest.raises(InvalidValueError) as refused:
        services.tenant_update(actor=actor, tenant=vision, queue_priority=value)
    assert list(refused.value.fields) == ["queue_priority"]
    with pytest.raises(NotAllowedError):
        services.tenant_update(actor=actor, tenant=lab, queue_priority=1)


def test_a_tenant_never_moves_below_itself(boss: User, lab: Tenant) -> None:
    vision = factories.tenant("vision", lab)
    robots = factories.tenant("robots", vision)
    for target in (lab, vision, robots):
        with pytest.raises(InvalidValueError) as refused:
            services.tenant_move(actor=boss, tenant=lab, parent=target)
        assert list(refused.value.fields) == ["parent"]
    lab.refresh_from_db()
    assert lab.parent_id is None


def test_moving_needs_an_admin_of_both_parents(lab: Tenant) -> None:
    other = factories.tenant("other")
    vision = factories.tenant("vision", lab)
    actor = factories.member(lab, Role.ADMIN)
    with pytest.raises(NotAllowedError):
        services.tenant_move(actor=actor, tenant=vision, parent=other)
    with pytest.raises(NotAllowedError):
        services.tenant_move(actor=actor, tenant=vision, parent=None)
    factories.membership(actor, other, Role.ADMIN)
    services.tenant_move(actor=actor, tenant=vision, parent=other)
    vision.refresh_from_db()
    assert vision.parent_id == other.pk


def test_an_admin_does_not_move_their_own_tenant(lab: Tenant) -> None:
    vision = factories.tenant("vision", lab)
    actor = factories.member(vision, Role.ADMIN)
    factories.membership(actor, factories.tenant("other"), Role.ADMIN)
    with pytest.raises(NotAllowedError):
        services.tenant_move(actor=actor, tenant=vision, parent=Tenant.objects.get(slug="other"))


def test_a_tenant_with_children_is_not_deleted(boss: User, lab: Tenant) -> None:
    factories.tenant("vision", lab)
    with pytest.raises(ConflictError, match="lab has tenants below it"):
        services.tenant_delete(actor=boss, tenant=lab)
    assert Tenant.objects.count() == 2


def test_a_tenant_with_jobs_is_not_deleted(
    boss: User, lab: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotas = hear(monkeypatch, events.quota_changed)
    factories.job(lab)
    with pytest.raises(ConflictError, match="lab has jobs"):
        services.tenant_delete(actor=boss, tenant=lab)
    assert Tenant.objects.filter(slug="lab").exists()
    assert quotas == []


def test_deleting_a_tenant_takes_its_quotas_and_says_so(
    boss: User,
    lab: Tenant,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: OnCommit,
) -> None:
    heard = hear(monkeypatch, events.quota_changed)
    cluster = factories.cluster("demo")
    factories.quota(lab, cluster, nominal=4000)
    with django_capture_on_commit_callbacks(execute=True):
        services.tenant_delete(actor=boss, tenant=lab)
    assert not Quota.objects.exists()
    assert heard == [events.QuotaChanged(cluster.pk, "demo")]


def test_an_admin_does_not_delete_their_own_tenant(lab: Tenant) -> None:
    with pytest.raises(NotAllowedError):
        services.tenant_delete(actor=factories.member(lab, Role.ADMIN), tenant=lab)


def test_every_change_leaves_an_audit_row_with_the_actors_name(boss: User, lab: Tenant) -> None:
    LogEntry.objects.all().delete()
    cluster, person = factories.cluster(), factories.user()
    services.tenant_update(actor=boss, tenant=lab, name="The lab")
    services.membership_set(actor=boss, tenant=lab, user=person, role=Role.MEMBER)
    services.membership_remove(actor=boss, tenant=lab, user=person)
    services.quota_delete(actor=boss, quota=own(boss, lab, cluster))
    services.tenant_delete(actor=boss, tenant=lab)
    rows = LogEntry.objects.order_by("pk").values_list(
        "content_type__model", "action", "actor__username"
    )
    create, update, delete = 0, 1, 2
    assert list(rows) == [
        ("tenant", update, "boss"),
        ("membership", create, "boss"),
        ("membership", delete, "boss"),
        ("quota", create, "boss"),
        ("quota", delete, "boss"),
        ("tenant", delete, "boss"),
    ]


def test_what_is_written_outside_a_service_names_nobody(boss: User, lab: Tenant) -> None:
    services.tenant_update(actor=boss, tenant=lab, name="The lab")
    factories.tenant("later")
    assert LogEntry.objects.get(object_repr="later").actor is None
