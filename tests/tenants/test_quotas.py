from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.auth.models import User

from tenants import events, services
from tenants.choices import Role
from tenants.errors import InvalidValueError, NotAllowedError
from tenants.models import Quota, Tenant
from tests import factories
from tests.tenants.acts import hear, own

pytestmark = pytest.mark.django_db

OnCommit = Callable[..., AbstractContextManager[list[Callable[[], None]]]]


def test_setting_a_quota_again_replaces_it(boss: User, lab: Tenant) -> None:
    cluster = factories.cluster()
    own(boss, lab, cluster, nominal=4000, borrowing_limit=1000, lending_limit=4000)
    own(boss, lab, cluster, nominal=0)
    row = Quota.objects.get()
    assert (row.nominal, row.borrowing_limit, row.lending_limit) == (0, None, None)


def test_a_quota_may_name_a_model_of_the_catalogue_or_of_a_device(boss: User, lab: Tenant) -> None:
    cluster = factories.cluster()
    factories.device(factories.node(cluster), flavor="acme-x1", model="Acme X1")
    for flavor in ("nvidia-h100-sxm", "acme-x1"):
        own(boss, lab, cluster, flavor=flavor)
    for wrong in ("acme-x2", "cp\x00u", "", None, 7):
        with pytest.raises(InvalidValueError) as refused:
            own(boss, lab, cluster, flavor=wrong)
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
        own(boss, lab, factories.cluster(), **values)
    assert list(refused.value.fields) == fields
    assert not Quota.objects.exists()


def test_the_bounds_themselves_are_taken(boss: User, lab: Tenant) -> None:
    row = own(boss, lab, factories.cluster(), nominal=10**9, borrowing_limit=0, lending_limit=10**9)
    row.refresh_from_db()
    assert (row.nominal, row.borrowing_limit, row.lending_limit) == (10**9, 0, 10**9)


@pytest.mark.parametrize("role", list(Role))
def test_nobody_in_a_tenant_sets_or_deletes_its_quota(lab: Tenant, role: Role) -> None:
    cluster = factories.cluster()
    vision = factories.tenant("vision", lab)
    row = factories.quota(vision, cluster, nominal=1000)
    actor = factories.member(vision, role)
    with pytest.raises(NotAllowedError):
        own(actor, vision, cluster)
    with pytest.raises(NotAllowedError):
        services.quota_delete(actor=actor, quota=row)
    row.refresh_from_db()
    assert row.nominal == 1000


def test_an_admin_above_sets_and_deletes_a_quota(lab: Tenant) -> None:
    vision, cluster = factories.tenant("vision", lab), factories.cluster()
    actor = factories.member(lab, Role.ADMIN)
    row = own(actor, vision, cluster)
    services.quota_delete(actor=actor, quota=row)
    assert not Quota.objects.exists()


def test_a_change_of_a_quota_is_told_on_commit_and_not_when_refused(
    boss: User,
    lab: Tenant,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: OnCommit,
) -> None:
    heard = hear(monkeypatch, events.quota_changed)
    cluster = factories.cluster("demo")
    news = events.QuotaChanged(cluster.pk, "demo")
    with django_capture_on_commit_callbacks(execute=True):
        row = own(boss, lab, cluster)
        assert heard == []
    assert heard == [news]
    with django_capture_on_commit_callbacks(execute=True):
        services.quota_delete(actor=boss, quota=row)
    assert heard == [news, news]
    with django_capture_on_commit_callbacks(execute=True), pytest.raises(InvalidValueError):
        own(boss, lab, cluster, nominal=-1)
    assert heard == [news, news]


@pytest.mark.django_db(transaction=True)
def test_a_listener_that_fails_takes_nothing_from_the_others(
    boss: User, lab: Tenant, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_news: object) -> None:
        raise ValueError("listener is broken")

    heard = hear(monkeypatch, events.quota_changed)
    events.quota_changed._listeners.insert(0, fail)
    own(boss, lab, factories.cluster())
    assert len(heard) == 1
    assert "listener is broken" in caplog.text
