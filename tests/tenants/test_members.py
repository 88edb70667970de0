from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from django.contrib.auth.models import User

from tenants import events, services
from tenants.choices import Role
from tenants.errors import InvalidValueError, NotAllowedError
from tenants.models import Membership, Tenant
from tests import factories
from tests.tenants.acts import hear

pytestmark = pytest.mark.django_db

OnCommit = Callable[..., AbstractContextManager[list[Callable[[], None]]]]


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
    heard = hear(monkeypatch, events.membership_changed)
    person = factories.user()
    with django_capture_on_commit_callbacks(execute=True):
        services.membership_set(actor=boss, tenant=lab, user=person, role=Role.MEMBER)
        assert heard == []
    assert heard == [events.MembershipChanged(person.pk, "lab")]
