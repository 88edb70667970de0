"""Refuses large bodies at the door.

Django reads a whole body before any view sees it; what announces or turns out to be larger than any
form or request needs is answered here, after at most 1 MiB.
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from portal.api.v1.auth import BODY_LIMIT_BYTES, BodyTooLargeError

Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
App: TypeAlias = Callable[..., Awaitable[None]]


class BodyLimit:
    """An ASGI application that lets another one see bodies of at most 1 MiB."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        """Answer 413 where the body is too large, else what the application answers."""
        if _announced(scope) > BODY_LIMIT_BYTES:
            await _refuse(send)
            return
        body, is_whole = await _read(receive)
        if not is_whole:
            await _refuse(send)
            return
        await self.app(scope, _replay(body, receive), send)


def _announced(scope: Event) -> int:
    for name, value in scope.get("headers", ()):
        if name == b"content-length" and value.isdigit():
            return int(value[:20])
    return 0


async def _read(receive: Receive) -> tuple[list[Event], bool]:
    """Return the events of the body, and False where it grew too large."""
    events: list[Event] = []
    size = 0
    while True:
        event = await receive()
        events.append(event)
        size += len(event.get("body", b""))
        if size > BODY_LIMIT_BYTES:
            return events, False
        if event["type"] != "http.request" or not event.get("more_body", False):
            return events, True


def _replay(events: list[Event], receive: Receive) -> Receive:
    waiting = iter(events)

    async def again() -> Event:
        event = next(waiting, None)
        return await receive() if event is None else event

    return again


async def _refuse(send: Send) -> None:
    refusal = BodyTooLargeError()
    body = {"code": refusal.default_code, "message": str(refusal.detail), "fields": {}}
    text = json.dumps(body).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(text)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": text})
