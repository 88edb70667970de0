"""The one way in which live pages are told: a snapshot, then deltas, then ticks.

    {"type": "snapshot", "seq": 1, "data": {key: row}}
    {"type": "delta", "seq": 2, "changed": {key: row}, "removed": [key]}
    {"type": "tick", "seq": 3}

`seq` grows by one a message. Each connection keeps what it sent last and sends the difference to
what is true now, at most once a second; so a slow reader gets the latest state, never a queue.
"""

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.utils import translation

from portal.live.deltas import Rows, diff
from portal.live.groups import Sight, sight_of
from portal.live.language import language_of
from portal.live.nudges import watching

logger = logging.getLogger(__name__)

APART_S = 1.0
LOOK_S = 2.0
QUIET_S = 2.5
"""After so long without news a tick is due: with a look every 2 s, none is later than 5 s."""
RECHECK_S = 10.0
SEND_S = 20.0
SIGNED_OUT, NOT_FOUND, FAILED, SLOW = 4401, 4404, 1011, 4408
LEFT = (OSError, RuntimeError)
"""What servers raise on sending to a browser that has left or is just leaving."""


class GoneError(Exception):
    """The browser has left; there is nobody to tell."""


class LiveConsumer(AsyncWebsocketConsumer, ABC):
    """Base of what pages watch; a subclass says what and for whom."""

    seq = 0
    sent_at_s = 0.0
    known: Rows
    language = "en"
    task: asyncio.Task[None] | None = None

    @abstractmethod
    def find(self, sight: Sight) -> bool:
        """Look for what is watched; return whether the viewer may see it. Runs in a thread."""

    @abstractmethod
    def clusters(self) -> Iterable[str]:
        """Return the slugs of the clusters whose news concern this page."""

    @abstractmethod
    async def rows(self, sight: Sight) -> Rows:
        """Return what the viewer may see now."""

    async def connect(self) -> None:
        """Let in who may, and start telling."""
        sight = await sight_of(self.scope)
        if sight is None:
            await self.close(code=SIGNED_OUT)
            return
        if not await database_sync_to_async(self.find)(sight):
            await self.close(code=NOT_FOUND)
            return
        self.language = language_of(self.scope)
        await self.accept()
        self.task = asyncio.create_task(self._tell(sight))

    async def disconnect(self, code: int) -> None:  # noqa: ARG002
        """Stop telling."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Ignore what a page says: there is nothing to be asked for here."""

    async def translated(self, read: Any, *arguments: Any) -> Rows:
        """Return what `read` gives in a thread, its sentences in the viewer's language."""

        def run() -> Rows:
            with translation.override(self.language):
                rows: Rows = read(*arguments)
                return rows

        return await database_sync_to_async(run)()  # type: ignore[no-any-return]

    async def _tell(self, sight: Sight) -> None:
        try:
            async with watching(self.clusters()) as nudged:
                await self._follow(sight, nudged)
        except GoneError:
            return
        except TimeoutError:
            await self._close(SLOW)
        except Exception:  # the edge of a loop: whatever broke, the page is told to come again
            logger.exception("live page failed page=%s", type(self).__name__)
            await self._close(FAILED)

    async def _follow(self, sight: Sight, nudged: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        checked_s = loop.time()
        self.known = await self.rows(sight)
        await self._send(type="snapshot", data=self.known)
        while True:
            await asyncio.sleep(APART_S)
            await _wait(nudged, LOOK_S - APART_S)
            nudged.clear()  # what changes from here on wakes the next look
            if loop.time() - checked_s >= RECHECK_S:
                checked_s, found = loop.time(), await self._check()
                if found is None:
                    return
                sight = found
            await self._send_news(await self.rows(sight))

    async def _check(self) -> Sight | None:
        """Return what the viewer may see now; close where it is nothing any more."""
        sight = await sight_of(self.scope)
        if sight is None:
            await self._close(SIGNED_OUT)
        elif not await database_sync_to_async(self.find)(sight):
            await self._close(NOT_FOUND)
            return None
        return sight

    async def _send_news(self, rows: Rows) -> None:
        news = diff(self.known, rows)
        if news:
            self.known = rows
            await self._send(type="delta", changed=news.changed, removed=news.removed)
        elif asyncio.get_running_loop().time() - self.sent_at_s >= QUIET_S:
            await self._send(type="tick")

    async def _send(self, **message: Any) -> None:
        self.seq += 1
        message["seq"] = self.seq
        text = json.dumps(message, separators=(",", ":"))
        try:
            await asyncio.wait_for(self.send(text_data=text), SEND_S)
        except TimeoutError:
            raise
        except LEFT as exc:
            raise GoneError from exc
        self.sent_at_s = asyncio.get_running_loop().time()

    async def _close(self, code: int) -> None:
        """Close with a code; one who has left meanwhile needs none."""
        with suppress(*LEFT):
            await self.close(code=code)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
