from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection

from telemetry.events import Topic
from telemetry.models import Cluster
from tenants import events, services
from tenants.choices import Role
from tenants.errors import ConflictError, InvalidValueError, NotAllowedError
from tenants.models import Membership, Quota, Tenant
from tests import factories

pytestmark = pytest.mark.django_db

OnCommit = Callable[..., AbstractContextManager[list[Callable[[], None]]]]


@pytest.fixture
def lab() -> Tenant:
    return factories.tenant("lab")


@pytest.fixture
def boss() -> User:
    return factories.admin("boss")


def _heard(monkeypatch: pytest.MonkeyPatch, topic: Topic[Any]) -> list[Any]:
    heard: list[Any] = []
    monkeypatch.setattr(topic, "_listeners", [])
    topic.subscribe(heard.append)
    return heard


# Tenants.


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


def test_an_admin_above_weighs_a_tenant(lab: Tenant) -> None:
    vision = factories.tenant("vision", lab)
    actor = factories.member(lab, Role.ADMIN)
    services.tenant_update(actor=actor, tenant=vision, fair_weight=0)
    vision.refresh_from_db()
    assert vision.fair_weight == 0.0


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
    quotas = _heard(monkeypatch, events.quota_changed)
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
    heard = _heard(monkeypatch, events.quota_changed)
    cluster = factories.cluster("demo")
    factories.quota(lab, cluster, nominal=4000)
    with django_capture_on_commit_callbacks(execute=True):
        services.tenant_delete(actor=boss, tenant=lab)
    assert not Quota.objects.exists()
    assert heard == [events.QuotaChanged(cluster.pk, "demo")]


def test_an_admin_does_not_delete_their_own_tenant(lab: Tenant) -> None:
    with pytest.raises(NotAllowedError):
        services.tenant_delete(actor=factories.member(lab, Role.ADMIN), tenant=lab)


# Members.


def test_a_lead_sets_and_changes_and_removes_members(lab: Tenant) -> None:
    lead, person = factories.member(lab, Role.LEAD), factories.user()
    services.membership_set(actor=lead, tenant=lab, user=person, role="member")
    services.membership_set(actor=lead, tenant=lab, user=person, role=Role.VIEWER)
    assert Membership.objects.get(user=person).role == Role.VIEWER
    services.membership_remove(actor=lead, tenant=lab, user=person)
    assert not Membership.objects.filter(user=person).exists()


def test_a_lead_neither_makes_nor_demotes_nor_removes_an_admin(lab: Tenant) -> None:
    lead, chief = factories.member(lab, Role.LEAD), factories.member(lab, Role.ADMIN)
    with pytest.raises(NotAllowedError):
        services.membership_set(actor=lead, tenant=lab, user=lead, role=Role.ADMIN)
    with pytest.raises(NotAllowedError):
        services.membership_set(actor=lead, tenant=lab, user=chief, role=Role.VIEWER)
    with pytest.raises(NotAllowedError):
        services.membership_remove(actor=lead, tenant=lab, user=chief)
    assert Membership.objects.get(user=chief).role == Role.ADMIN
    assert Membership.objects.get(user=lead).role == Role.LEAD


@pytest.mark.parametrize("role", [Role.MEMBER, Role.VIEWER])
def test_members_and_viewers_change_no_members(lab: Tenant, role: Role) -> None:
    actor = factories.member(lab, role)
    with pytest.raises(NotAllowedError):
        services.membership_set(actor=actor, tenant=lab, user=actor, role=Role.LEAD)
    with pytest.raises(NotAllowedError):
        services.membership_remove(actor=actor, tenant=lab, user=actor)


def test_an_unknown_role_is_refused(boss: User, lab: Tenant) -> None:
    with pytest.raises(InvalidValueError) as refused:
        services.membership_set(actor=boss, tenant=lab, user=boss, role="owner")
    assert list(refused.value.fields) == ["role"]


def test_a_lead_of_another_tenant_changes_no_members_here(lab: Tenant) -> None:
    actor = factories.member(factories.tenant("other"), Role.LEAD)
    with pytest.raises(NotAllowedError):
        services.membership_set(actor=actor, tenant=lab, user=actor, role=Role.MEMBER)


def test_removing_somebody_who_is_no_member_says_so(boss: User, lab: Tenant) -> None:
    with pytest.raises(Membership.DoesNotExist):
        services.membership_remove(actor=boss, tenant=lab, user=factories.user())


def test_a_change_of_members_is_told_on_commit(
    boss: User,
    lab: Tenant,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: OnCommit,
) -> None:
    heard = _heard(monkeypatch, events.membership_changed)
    person = factories.user()
    with django_capture_on_commit_callbacks(execute=True):
        services.membership_set(actor=boss, tenant=lab, user=person, role=Role.MEMBER)
        assert heard == []
    assert heard == [events.MembershipChanged(person.pk, "lab")]


# Quotas.


def _set(actor: User, tenant: Tenant, cluster: Cluster, **values: Any) -> Quota:
    wanted: dict[str, Any] = {"flavor": "cpu", "nominal": 4000, **values}
    return services.quota_set(actor=actor, tenant=tenant, cluster=cluster, **wanted)


def test_setting_a_quota_again_replaces_it(boss: User, lab: Tenant) -> None:
    cluster = factories.cluster()
    _set(boss, lab, cluster, nominal=4000, borrowing_limit=1000, lending_limit=4000)
    _set(boss, lab, cluster, nominal=0)
    row = Quota.objects.get()
    assert (row.nominal, row.borrowing_limit, row.lending_limit) == (0, None, None)


def test_a_quota_may_name_a_model_of_the_catalogue_or_of_a_device(boss: User, lab: Tenant) -> None:
    cluster = factories.cluster()
    factories.device(factories.node(cluster), flavor="acme-x1", model="Acme X1")
    for flavor in ("nvidia-h100-sxm", "acme-x1"):
        _set(boss, lab, cluster, flavor=flavor)
    for wrong in ("acme-x2", "cp\x00u", "", None, 7):
        with pytest.raises(InvalidValueError) as refused:
            _set(boss, lab, cluster, flavor=wrong)
        assert list(refused.value.fields) == ["flavor"]


@pytest.mark.parametrize(
    ("fields", "values"),
    [
        (["nominal"], {"nominal": -1}),
        (["nominal"], {"nominal": 10**9 + 1}),
        (["nominal"], {"nominal": 1.0}),
        (["nominal"], {"nominal": True}),
        (["nominal"], {"nominal": "4"}),
        (["nominal"], {"nominal": None}),
        (["borrowing_limit"], {"borrowing_limit": -1}),
        (["borrowing_limit"], {"borrowing_limit": 2**63}),
        (["lending_limit"], {"nominal": 4000, "lending_limit": 4001}),
        (["nominal", "lending_limit"], {"nominal": 1e3, "lending_limit": -5}),
    ],
)
def test_a_wrong_amount_is_refused_by_its_field(
    boss: User, lab: Tenant, fields: list[str], values: dict[str, Any]
) -> None:
    with pytest.raises(InvalidValueError) as refused:
        _set(boss, lab, factories.cluster(), **values)
    assert list(refused.value.fields) == fields
    assert not Quota.objects.exists()


def test_the_bounds_themselves_are_taken(boss: User, lab: Tenant) -> None:
    row = _set(
        boss, lab, factories.cluster(), nominal=10**9, borrowing_limit=0, lending_limit=10**9
    )
    row.refresh_from_db()
    assert (row.nominal, row.borrowing_limit, row.lending_limit) == (10**9, 0, 10**9)


@pytest.mark.parametrize("role", list(Role))
def test_nobody_in_a_tenant_sets_or_deletes_its_quota(lab: Tenant, role: Role) -> None:
    cluster = factories.cluster()
    vision = factories.tenant("vision", lab)
    row = factories.quota(vision, cluster, nominal=1000)
    actor = factories.member(vision, role)
    with pytest.raises(NotAllowedError):
        _set(actor, vision, cluster)
    with pytest.raises(NotAllowedError):
        services.quota_delete(actor=actor, quota=row)
    row.refresh_from_db()
    assert row.nominal == 1000


def test_an_admin_above_sets_and_deletes_a_quota(lab: Tenant) -> None:
    vision, cluster = factories.tenant("vision", lab), factories.cluster()
    actor = factories.member(lab, Role.ADMIN)
    row = _set(actor, vision, cluster)
    services.quota_delete(actor=actor, quota=row)
    assert not Quota.objects.exists()


def test_a_change_of_a_quota_is_told_on_commit_and_not_when_refused(
    boss: User,
    lab: Tenant,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: OnCommit,
) -> None:
    heard = _heard(monkeypatch, events.quota_changed)
    cluster = factories.cluster("demo")
    news = events.QuotaChanged(cluster.pk, "demo")
    with django_capture_on_commit_callbacks(execute=True):
        row = _set(boss, lab, cluster)
        assert heard == []
    assert heard == [news]
    with django_capture_on_commit_callbacks(execute=True):
        services.quota_delete(actor=boss, quota=row)
    assert heard == [news, news]
    with django_capture_on_commit_callbacks(execute=True), pytest.raises(InvalidValueError):
        _set(boss, lab, cluster, nominal=-1)
    assert heard == [news, news]


@pytest.mark.django_db(transaction=True)
def test_a_listener_that_fails_takes_nothing_from_the_others(
    boss: User, lab: Tenant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_news: object) -> None:
        raise ValueError("listener is broken")

    heard = _heard(monkeypatch, events.quota_changed)
    events.quota_changed._listeners.insert(0, fail)
    _set(boss, lab, factories.cluster())
    assert len(heard) == 1
    assert "listener is broken" in caplog.text


# Audit.


def test_every_change_leaves_an_audit_row_with_the_actors_name(boss: User, lab: Tenant) -> None:
    LogEntry.objects.all().delete()
    cluster, person = factories.cluster(), factories.user()
    services.tenant_update(actor=boss, tenant=lab, name="The lab")
    services.membership_set(actor=boss, tenant=lab, user=person, role=Role.MEMBER)
    services.membership_remove(actor=boss, tenant=lab, user=person)
    services.quota_delete(actor=boss, quota=_set(boss, lab, cluster))
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


# Two at once.


def _at_once(*acts: Callable[[], object]) -> list[object]:
    """Return what each act gives, or the refusal that it raises; all begin at the same moment."""
    start = Barrier(len(acts))

    def run(act: Callable[[], object]) -> object:
        try:
            connection.ensure_connection()
            start.wait(timeout=20)
            return act()
        except InvalidValueError as refused:
            return refused
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return [done.result(timeout=20) for done in [pool.submit(run, act) for act in acts]]


@pytest.mark.django_db(transaction=True)
def test_two_moves_at_once_never_make_a_ring(boss: User) -> None:
    one, two = factories.tenant("one"), factories.tenant("two")
    for _ in range(10):
        answers = _at_once(
            lambda: services.tenant_move(actor=boss, tenant=one, parent=two),
            lambda: services.tenant_move(actor=boss, tenant=two, parent=one),
        )
        assert sorted(type(answer).__name__ for answer in answers) == [
            "InvalidValueError",
            "Tenant",
        ]
        Tenant.objects.update(parent=None)


@pytest.mark.django_db(transaction=True)
def test_settings_of_one_quota_at_once_leave_one_row(boss: User, lab: Tenant) -> None:
    cluster = factories.cluster()
    for _ in range(5):
        answers = _at_once(*[partial(_set, boss, lab, cluster, nominal=n) for n in range(4)])
        assert [type(answer) for answer in answers] == [Quota] * 4
        assert Quota.objects.count() == 1
        Quota.objects.all().delete()
