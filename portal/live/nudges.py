"""Hears, once a process, that something changed on a cluster, and wakes everybody who watches it.

A nudge carries nothing: who is woken reads the state anew. A lost one costs latency only, for every
watcher also looks by itself every few seconds.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from scheduler.events import fleet_group

logger = logging.getLogger(__name__)

RETRY_S = 2.0


class Listener:
    """Receives the nudges of one cluster while somebody listens."""

    def __init__(self, slug: str) -> None:
        self.slug = slug
        self.watchers: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_listening(self) -> bool:
        """Return whether nudges are received now."""
        return self._task is not None

    def add(self, watcher: asyncio.Event) -> None:
        """Wake `watcher` from now on."""
        self.watchers.add(watcher)
        if self._task is None:
            self._task = asyncio.create_task(self._listen())

    async def remove(self, watcher: asyncio.Event) -> None:
        """Wake `watcher` no more; the last one to go ends the listening."""
        self.watchers.discard(watcher)
        if not self.watchers and self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _listen(self) -> None:
        while True:
            try:
                await self._receive()
            except (OSError, RuntimeError, RedisError) as exc:
                logger.warning("nudges interrupted cluster=%s error=%s", self.slug, exc)
                await asyncio.sleep(RETRY_S)

    async def _receive(self) -> None:
        layer: Any = get_channel_layer()
        channel = await layer.new_channel()
        group = fleet_group(self.slug)
        await layer.group_add(group, channel)
        try:
            while True:
                await layer.receive(channel)
                for watcher in self.watchers:
                    watcher.set()
        finally:
            await layer.group_discard(group, channel)


_listeners: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Listener]] = WeakKeyDictionary()


def listener_of(slug: str) -> Listener:
    """Return the listener of a cluster in this process and loop."""
    of_loop = _listeners.setdefault(asyncio.get_running_loop(), {})
    return of_loop.setdefault(slug, Listener(slug))


@asynccontextmanager
async def watching(slugs: Iterable[str]) -> AsyncIterator[asyncio.Event]:
    """Give an event that is set whenever one of the clusters changes."""
    watcher = asyncio.Event()
    async with AsyncExitStack() as stack:
        for slug in slugs:
            listener = listener_of(slug)
            listener.add(watcher)
            stack.push_async_callback(listener.remove, watcher)
        yield watcher
