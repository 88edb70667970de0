"""Who gets in, and who gets nothing."""

from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from tenants.services import token_create, token_revoke
from tests import factories
from tests.portal.live.browser import Page, cookie_of, fleet, of_job
from tests.portal.world import World

pytestmark = pytest.mark.django_db(transaction=True)

PATHS = (fleet(), "/ws/jobs/", "/ws/fairness/this-machine/")


def knock(path: str, cookie: bytes = b"", origin: bytes = b"http://localhost") -> tuple[bool, int]:
    async def scene() -> tuple[bool, int]:
        page = Page(path, cookie, origin=origin)
        let_in, code = await page.open()
        if let_in:
            await page.close()
        else:
            assert await page.socket.receive_nothing()
        return let_in, code or 0

    return async_to_sync(scene)()


@pytest.mark.parametrize("path", PATHS)
def test_somebody_who_is_not_signed_in_gets_nothing(world: World, path: str) -> None:
    del world
    assert knock(path) == (False, 4401)


@pytest.mark.parametrize("path", PATHS)
def test_a_member_gets_in(world: World, path: str) -> None:
    assert knock(path, cookie_of(world.ada)) == (True, 0)


def test_a_page_of_a_foreign_origin_gets_nothing(world: World) -> None:
    let_in, _code = knock(fleet(), cookie_of(world.ada), origin=b"https://evil.example")
    assert not let_in


def test_an_invented_session_gets_nothing(world: World) -> None:
    del world
    assert knock(fleet(), b"sessionid=" + b"x" * 32) == (False, 4401)


def test_somebody_deactivated_gets_nothing(world: World) -> None:
    cookie = cookie_of(world.ada)
    User.objects.filter(pk=world.ada.pk).update(is_active=False)
    assert knock(fleet(), cookie) == (False, 4401)


def test_another_teams_job_is_as_unknown_as_one_that_does_not_exist(world: World) -> None:
    job = factories.job(world.language, world.eve, world.cluster)
    assert knock(of_job(job.pk), cookie_of(world.ada)) == (False, 4404)
    assert knock(of_job(uuid4()), cookie_of(world.ada)) == (False, 4404)
    assert knock(of_job(job.pk), cookie_of(world.eve)) == (True, 0)


@pytest.mark.parametrize("path", ["/ws/fleet/nowhere/", "/ws/jobs/x/", "/ws/", "/other"])
def test_an_unknown_page_is_not_found(world: World, path: str) -> None:
    assert knock(path, cookie_of(world.ada)) == (False, 4404)


def knock_with(token: bytes, origin: bytes | None = None, path: str = fleet()) -> tuple[bool, int]:
    async def scene() -> tuple[bool, int]:
        page = Page(path, origin=origin, token=token)
        let_in, code = await page.open()
        if let_in:
            assert (await page.hear())["type"] == "snapshot"
            await page.close()
        return let_in, code or 0

    return async_to_sync(scene)()


def test_a_script_gets_in_with_its_token_and_needs_no_origin(world: World) -> None:
    _row, token = token_create(user=world.ada, days=1)
    assert knock_with(token.encode()) == (True, 0)
    assert knock_with(token.encode(), b"http://localhost") == (True, 0)


def test_a_token_opens_nothing_for_a_foreign_origin(world: World) -> None:
    _row, token = token_create(user=world.ada, days=1)
    assert not knock_with(token.encode(), b"https://evil.example")[0]


@pytest.mark.parametrize("token", [b"", b"x" * 64, b"\xff\x00", b"a b"])
def test_an_invented_token_gets_nothing(world: World, token: bytes) -> None:
    del world
    assert knock_with(token) == (False, 4401)


def test_a_revoked_token_gets_nothing(world: World) -> None:
    row, token = token_create(user=world.ada, days=1)
    token_revoke(user=world.ada, key=row.token_key)
    assert knock_with(token.encode()) == (False, 4401)


def test_a_token_shows_no_more_than_its_owner_may_see(world: World) -> None:
    _row, token = token_create(user=world.ada, days=1)
    job = factories.job(world.language, world.eve, world.cluster)
    assert knock_with(token.encode(), path=of_job(job.pk)) == (False, 4404)
