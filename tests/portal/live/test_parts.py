"""The small parts behind live pages."""

import asyncio
from typing import Any

import pytest
from channels.layers import get_channel_layer

from portal.live.deltas import Rows, diff
from portal.live.language import language_of
from portal.live.nudges import listener_of, watching
from portal.live.shared import Shared
from scheduler.events import fleet_group


def test_a_delta_holds_whole_rows_that_differ_and_keys_that_are_gone() -> None:
    old = {"a": {"n": 1}, "b": {"n": 2}, "c": {"n": 3}}
    new = {"a": {"n": 1}, "b": {"n": 9, "m": 0}, "d": {"n": 4}}
    delta = diff(old, new)
    assert delta.changed == {"b": {"n": 9, "m": 0}, "d": {"n": 4}}
    assert delta.removed == ["c"]


def test_equal_states_make_no_delta() -> None:
    assert not diff({"a": {"n": 1}}, {"a": {"n": 1}})


HEADERS = {
    "the cookie first": ([(b"cookie", b"django_language=zh-hans")], "zh-hans"),
    "the browser's wish": ([(b"accept-language", b"zh-CN,en;q=0.5")], "zh-hans"),
    "the cookie before the browser": (
        [(b"cookie", b"django_language=en"), (b"accept-language", b"zh-CN")],
        "en",
    ),
    "nothing that exists": ([(b"cookie", b"django_language=xx; a=\xff"), (b"x", b"y")], "en"),
    "nothing": ([], "en"),
}


@pytest.mark.parametrize(("headers", "language"), HEADERS.values(), ids=HEADERS.keys())
def test_a_page_speaks_as_its_html_did(headers: list[Any], language: str) -> None:
    assert language_of({"headers": headers}) == language


def test_many_who_ask_together_share_one_reading() -> None:
    reads = 0

    async def read() -> Rows:
        nonlocal reads
        reads += 1
        await asyncio.sleep(0.01)
        return {"n": {"reads": reads}}

    async def scene() -> list[Rows]:
        shared = Shared(read)
        return await asyncio.gather(*(shared.rows() for _ in range(20)))

    assert asyncio.run(scene()) == [{"n": {"reads": 1}}] * 20


def test_who_asks_during_a_reading_gets_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portal.live.shared.LEAST_APART_S", 0.05)
    world = {"n": {"value": 1}}
    started = asyncio.Event()

    async def read() -> Rows:
        seen = {key: dict(row) for key, row in world.items()}
        started.set()
        await asyncio.sleep(0.01)
        return seen

    async def scene() -> tuple[Rows, Rows]:
        shared = Shared(read)
        first = asyncio.create_task(shared.rows())
        await started.wait()
        world["n"]["value"] = 2  # after the first reading began
        return await first, await shared.rows()

    assert asyncio.run(scene()) == ({"n": {"value": 1}}, {"n": {"value": 2}})


def test_a_nudge_wakes_who_watches_the_cluster_and_nobody_else() -> None:
    async def scene() -> tuple[bool, bool]:
        layer: Any = get_channel_layer()
        async with watching(["here"]) as here, watching(["there"]) as there:
            async with asyncio.timeout(5):
                while not here.is_set():
                    await layer.group_send(fleet_group("here"), {"type": "fleet.changed"})
                    await asyncio.sleep(0.05)
            return here.is_set(), there.is_set()

    assert asyncio.run(scene()) == (True, False)


def test_nobody_listens_once_the_last_watcher_is_gone() -> None:
    async def scene() -> None:
        async with watching(["here"]):
            async with watching(["here"]):
                assert len(listener_of("here").watchers) == 2
            assert listener_of("here").is_listening
        assert not listener_of("here").watchers
        assert not listener_of("here").is_listening

    asyncio.run(scene())
