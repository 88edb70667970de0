"""A browser's side of a live page: a session cookie, an Origin, and the state built from deltas."""

import json
from typing import Any
from uuid import UUID

from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from portal.asgi import application

PATIENCE_S = 8.0


def cookie_of(user: User) -> bytes:
    """Return the Cookie header of somebody who has signed in."""
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    return f"{name}={client.cookies[name].value}".encode()


class Page:
    """One open page."""

    def __init__(
        self,
        path: str,
        cookie: bytes = b"",
        *,
        origin: bytes | None = b"http://localhost",
        token: bytes | None = None,
    ) -> None:
        headers = [(b"host", b"localhost"), (b"cookie", cookie)]
        headers += [(b"origin", origin)] if origin is not None else []
        headers += [(b"authorization", b"Token " + token)] if token is not None else []
        self.socket = ApplicationCommunicator(
            application,
            {
                "type": "websocket",
                "path": path,
                "query_string": b"",
                "subprotocols": [],
                "headers": headers,
            },
        )
        self.state: dict[str, Any] = {}
        self.seq = 0

    async def open(self) -> tuple[bool, int | None]:
        """Return whether it was let in, and the closing code where not."""
        await self.socket.send_input({"type": "websocket.connect"})
        answer = await self.receive()
        if answer["type"] == "websocket.accept":
            return True, None
        assert answer["type"] == "websocket.close"
        return False, answer.get("code", 1000)

    async def receive(self) -> dict[str, Any]:
        """Return the server's next event."""
        event: dict[str, Any] = await self.socket.receive_output(timeout=PATIENCE_S)
        return event

    async def say(self, **message: Any) -> None:
        """Send something to the server."""
        await self.socket.send_input({"type": "websocket.receive", **message})

    async def hear(self) -> dict[str, Any]:
        """Return the next message, after bringing `state` up to it."""
        event = await self.receive()
        assert event["type"] == "websocket.send", event
        message: dict[str, Any] = json.loads(event["text"])
        assert message["seq"] == self.seq + 1
        self.seq = message["seq"]
        if message["type"] == "snapshot":
            self.state = message["data"]
        elif message["type"] == "delta":
            self.state.update(message["changed"])
            for key in message["removed"]:
                del self.state[key]
        return message

    async def close(self) -> None:
        await self.socket.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.socket.wait(timeout=PATIENCE_S)


def fleet(slug: str = "this-machine") -> str:
    return f"/ws/fleet/{slug}/"


def of_job(uid: UUID | str) -> str:
    return f"/ws/jobs/{uid}/"
