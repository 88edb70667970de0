"""What an open page is told: old state and deltas give the state that a fresh page sees."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.sessions.models import Session

from portal.live import consumer
from scheduler.events import nudge
from scheduler.models import Job
from scheduler.services.jobs import job_cancel
from tenants.models import Membership
from tests import factories
from tests.portal.live.browser import Page, cookie_of, fleet, of_job
from tests.portal.world import A100, World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "APART_S", 0.2)
    monkeypatch.setattr(consumer, "LOOK_S", 0.4)
    monkeypatch.setattr(consumer, "RECHECK_S", 0.5)
    monkeypatch.setattr(consumer, "QUIET_S", 0.8)


async def fresh(path: str, cookie: bytes) -> dict[str, Any]:
    page = Page(path, cookie)
    await page.open()
    await page.hear()
    await page.close()
    return page.state


async def until(page: Page, wanted: Callable[[dict[str, Any]], bool]) -> None:
    async with asyncio.timeout(10):
        while not wanted(page.state):
            await page.hear()


def test_a_fleet_page_follows_a_job_that_takes_devices(
    world: World, cycle: Callable[..., None]
) -> None:
    cookie = cookie_of(world.ada)

    async def scene() -> None:
        page = Page(fleet(), cookie)
        await page.open()
        first = await page.hear()
        assert (first["type"], first["seq"]) == ("snapshot", 1)
        assert {key.partition(":")[0] for key in page.state} == {"cluster", "node", "device"}
        assert page.state["cluster"]["running"] == 0
        await sync_to_async(place)()
        await until(page, lambda state: state["cluster"]["running"] == 1)
        held = [row for row in page.state.values() if row.get("holders")]
        assert [(row["holders"][0]["name"], row["allocated_milli"]) for row in held] == [
            ("mine", 1000)
        ]
        assert page.state == await fresh(fleet(), cookie)
        await page.close()

    def place() -> None:
        factories.job(world.vision, world.ada, world.cluster, name="mine", devices=1)
        cycle()
        nudge(world.cluster.slug)

    async_to_sync(scene)()


def test_another_team_sees_that_a_device_is_held_but_not_by_whom(
    world: World, cycle: Callable[..., None]
) -> None:
    job = factories.job(
        world.vision, world.ada, world.cluster, name="secret", devices=1, flavors=[A100]
    )
    cycle()
    seen = async_to_sync(fresh)(fleet(), cookie_of(world.eve))
    holders = [holder for row in seen.values() for holder in row.get("holders", ())]
    assert holders == [{"job": None, "name": None, "tenant": None, "gpu_milli": 1000}]
    assert str(job.pk) not in str(seen)
    assert "secret" not in str(seen)


def test_a_quiet_page_hears_a_tick(world: World) -> None:
    async def scene() -> dict[str, Any]:
        page = Page(fleet(), cookie)
        await page.open()
        await page.hear()
        message = await page.hear()
        await page.close()
        return message

    cookie = cookie_of(world.ada)
    assert async_to_sync(scene)() == {"type": "tick", "seq": 2}


def test_what_a_page_says_is_ignored(world: World) -> None:
    async def scene() -> str:
        page = Page(fleet(), cookie)
        await page.open()
        await page.hear()
        await page.say(text='{"type": "give me everything"}')
        await page.say(bytes=b"\xff\x00")
        kind: str = (await page.hear())["type"]
        await page.close()
        return kind

    cookie = cookie_of(world.ada)
    assert async_to_sync(scene)() == "tick"


def test_a_job_page_follows_its_job_to_the_end(world: World, run_first: Callable[[], None]) -> None:
    job = factories.job(world.vision, world.ada, world.cluster)
    cookie, path = cookie_of(world.ada), of_job(job.pk)

    async def scene() -> None:
        page = Page(path, cookie)
        await page.open()
        await page.hear()
        assert page.state["job"]["state"] == "queued"
        assert page.state["log"]["size"] == 0
        await sync_to_async(run_first)()
        await until(page, lambda state: state["job"]["state"] == "running")
        assert page.state["placement"]["replicas"] == [{"node": "n1", "devices": []}]
        await until(page, lambda state: state["log"]["size"] > 0)
        assert page.state == await fresh(path, cookie)
        await page.close()

    async_to_sync(scene)()


def test_the_list_of_jobs_shows_the_viewers_own(world: World) -> None:
    mine = factories.job(world.vision, world.ada, world.cluster, pending={"code": "reserved"})
    factories.job(world.language, world.eve, world.cluster)

    async def scene() -> None:
        page = Page("/ws/jobs/", cookie)
        await page.open()
        await page.hear()
        assert list(page.state) == [str(mine.pk)]
        assert page.state[str(mine.pk)]["pending"]["message"].startswith("It would fit now")
        await sync_to_async(cancel)()
        await until(page, lambda state: state[str(mine.pk)]["state"] == "cancelled")
        await page.close()

    def cancel() -> None:
        job_cancel(actor=world.ada, job=Job.objects.get(pk=mine.pk), now=datetime.now(UTC))

    cookie = cookie_of(world.ada)
    async_to_sync(scene)()


def test_a_member_who_is_removed_loses_the_job_page(world: World) -> None:
    job = factories.job(world.vision, world.ada, world.cluster)
    cookie = cookie_of(world.ada)

    async def scene() -> int:
        page = Page(of_job(job.pk), cookie)
        await page.open()
        await page.hear()
        await sync_to_async(Membership.objects.all().delete)()
        return await closing_code(page)

    assert async_to_sync(scene)() == 4404


@pytest.mark.parametrize("ending", ["sign out", "deactivate"])
def test_a_page_is_closed_soon_after_its_person_may_no_longer_see(
    world: World, ending: str
) -> None:
    cookie = cookie_of(world.ada)

    def end() -> None:
        if ending == "sign out":
            Session.objects.all().delete()
        else:
            world.ada.is_active = False
            world.ada.save()

    async def scene() -> int:
        page = Page(fleet(), cookie)
        await page.open()
        await page.hear()
        await sync_to_async(end)()
        return await closing_code(page)

    assert async_to_sync(scene)() == 4401


async def closing_code(page: Page) -> int:
    async with asyncio.timeout(10):
        while True:
            message = await page.receive()
            if message["type"] == "websocket.close":
                return int(message["code"])
