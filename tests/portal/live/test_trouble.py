"""A page that can't keep up, or that can't be told, is closed and comes again by itself."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from portal.live import consumer
from portal.live.consumers import FleetConsumer
from tests.portal.live.browser import Page, cookie_of, fleet
from tests.portal.world import World

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "APART_S", 0.1)
    monkeypatch.setattr(consumer, "LOOK_S", 0.2)
    monkeypatch.setattr(consumer, "QUIET_S", 0.1)
    monkeypatch.setattr(consumer, "SEND_S", 0.3)


def ending(cookie: bytes) -> int:
    """Return the code with which a page is closed after its snapshot."""

    async def scene() -> int:
        page = Page(fleet(), cookie)
        await page.open()
        assert (await page.hear())["type"] == "snapshot"
        event = await page.receive()
        assert event["type"] == "websocket.close"
        await page.close()
        return int(event["code"])

    return async_to_sync(scene)()


def test_a_reader_who_takes_nothing_is_let_go_and_nothing_piles_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, waiting = FleetConsumer.send, []

    async def stuck(self: FleetConsumer, **message: Any) -> None:
        if self.seq > 1:
            waiting.append(message)
            await asyncio.sleep(60)
        await send(self, **message)

    monkeypatch.setattr(FleetConsumer, "send", stuck)
    assert ending(cookie_of(world.ada)) == 4408
    assert len(waiting) == 1


@pytest.mark.parametrize("fault", [OSError("ClientDisconnected"), RuntimeError("after close")])
def test_a_browser_that_has_left_is_no_fault(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    fault: Exception,
) -> None:
    told = asyncio.Event()

    async def gone(_page: FleetConsumer, **_message: Any) -> None:
        told.set()
        raise fault

    cookie = cookie_of(world.ada)

    async def scene() -> None:
        page = Page(fleet(), cookie)
        await page.open()
        await asyncio.wait_for(told.wait(), 5)
        await asyncio.sleep(0.3)
        await page.close()

    monkeypatch.setattr(FleetConsumer, "send", gone)
    async_to_sync(scene)()
    assert "live page failed" not in caplog.text


def test_a_page_that_can_not_be_read_any_more_is_told_to_come_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, reads = FleetConsumer.rows, []

    async def broken(self: FleetConsumer, sight: Any) -> Any:
        reads.append(sight)
        if len(reads) > 1:
            raise RuntimeError("the database went away")
        return await rows(self, sight)

    monkeypatch.setattr(FleetConsumer, "rows", broken)
    assert ending(cookie_of(world.ada)) == 1011
