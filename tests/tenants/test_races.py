from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from threading import Barrier

import pytest
from django.contrib.auth.models import User
from django.db import connection

from tenants import services
from tenants.errors import InvalidValueError
from tenants.models import Quota, Tenant
from tests import factories
from tests.tenants.acts import own

pytestmark = pytest.mark.django_db

OnCommit = Callable[..., AbstractContextManager[list[Callable[[], None]]]]


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
        answers = _at_once(*[partial(own, boss, lab, cluster, nominal=n) for n in range(4)])
        assert [type(answer) for answer in answers] == [Quota] * 4
        assert Quota.objects.count() == 1
        Quota.objects.all().delete()
