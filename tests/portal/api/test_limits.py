"""A body that is too large is refused before it is read."""

import asyncio
from collections.abc import Iterator
from typing import Any

from portal.api.limits import BodyLimit, Event, Receive, Send
from portal.api.v1.auth import BODY_LIMIT_BYTES


class Front:
    """The door, with something behind it that counts what gets through."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.read = 0
        self.answers: list[Event] = []

    async def _behind(self, _scope: Event, receive: Receive, send: Send) -> None:
        while True:
            event = await receive()
            self.seen.append(event.get("body", b""))
            if not event.get("more_body"):
                break
        await send({"type": "http.response.start", "status": 204, "headers": []})

    def knock(self, chunks: Iterator[bytes], **headers: str) -> int:
        """Return the status for a body that comes in chunks."""

        async def receive() -> dict[str, Any]:
            chunk = next(chunks, None)
            self.read += len(chunk or b"")
            return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}

        async def send(event: Event) -> None:
            self.answers.append(event)

        scope = {
            "type": "http",
            "headers": [
                (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
            ],
        }
        asyncio.run(BodyLimit(self._behind)(scope, receive, send))
        return int(self.answers[0]["status"])


def test_a_small_body_goes_through_unchanged() -> None:
    front = Front()
    assert front.knock(iter([b"ab", b"c"])) == 204
    assert b"".join(front.seen) == b"abc"


def test_a_body_of_just_the_limit_goes_through() -> None:
    front = Front()
    assert front.knock(iter([b"x" * BODY_LIMIT_BYTES])) == 204


def test_what_is_announced_too_large_is_not_read_at_all() -> None:
    front = Front()
    assert front.knock(iter([b"x"]), content_length="10000000") == 413
    assert (front.read, front.seen) == (0, [])
    assert b"body_too_large" in front.answers[1]["body"]


def test_an_endless_body_is_read_to_the_limit_only() -> None:
    front = Front()
    assert front.knock(iter(lambda: b"x" * 65536, None)) == 413
    assert front.read <= BODY_LIMIT_BYTES + 65536
    assert front.seen == []


def test_a_length_that_is_no_number_is_left_to_the_server() -> None:
    assert Front().knock(iter([b"x"]), content_length="x") == 204
