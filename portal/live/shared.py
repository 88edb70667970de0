"""Reads a cluster's fleet once for all who watch it in this process."""

import asyncio
from collections.abc import Awaitable, Callable
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async

from portal.live.deltas import Rows
from scheduler.selectors.fleet import fleet_rows
from telemetry.selectors import cluster_get

LEAST_APART_S = 1.0


class Shared:
    """A state that many want and that is read at most once a second.

    Whoever asks gets a reading that began after they asked, so that nothing that happened before is
    missed; all who ask meanwhile share the next one.
    """

    def __init__(self, read: Callable[[], Awaitable[Rows]]) -> None:
        self._read = read
        self._lock = asyncio.Lock()
        self._began_s = float("-inf")
        self._rows: Rows = {}

    async def rows(self) -> Rows:
        """Return the state as it is now or was a moment ago, after this call."""
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        async with self._lock:
            if self._began_s < asked_s:
                await asyncio.sleep(max(0.0, self._began_s + LEAST_APART_S - loop.time()))
                began_s = loop.time()
                self._rows = await self._read()
                self._began_s = began_s
            return self._rows


_fleets: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Shared]] = WeakKeyDictionary()


def shared_fleet(slug: str) -> Shared:
    """Return the shared reading of a cluster's fleet in this process and loop."""
    of_loop = _fleets.setdefault(asyncio.get_running_loop(), {})
    if slug not in of_loop:
        of_loop[slug] = Shared(lambda: database_sync_to_async(_read_fleet)(slug))
    return of_loop[slug]


def _read_fleet(slug: str) -> Rows:
    return fleet_rows(cluster_get(slug=slug))
