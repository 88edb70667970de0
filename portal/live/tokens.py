"""Scripts watch with the token that they ask with."""

from collections.abc import Awaitable, Callable
from typing import Any

from channels.security.websocket import AllowedHostsOriginValidator
from django.contrib.auth.models import User
from rest_framework.exceptions import AuthenticationFailed

from portal.api.v1.auth import TokenAuthentication

App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class TokenDoor:
    """Lets `Authorization: Token …` in beside the session of pages.

    No browser lets a page set that header on a websocket, so whoever sends it is no other site's
    page; an Origin that is sent all the same must be ours.

    Args:
        pages: for whoever comes without a token: checks Origin and session.
        scripts: for whoever comes with one; `scope["token"]` holds it.
    """

    def __init__(self, pages: App, scripts: App) -> None:
        self._pages = pages
        self._scripts = scripts
        self._ours: App = AllowedHostsOriginValidator(scripts)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        word, _, token = headers.get(b"authorization", b"").partition(b" ")
        if word.lower() != b"token":
            await self._pages(scope, receive, send)
            return
        app = self._ours if b"origin" in headers else self._scripts
        await app({**scope, "token": token.strip()}, receive, send)


def user_of_token(token: bytes) -> User | None:
    """Return whose token it is; None where it is unknown, expired or revoked."""
    try:
        user, _row = TokenAuthentication().authenticate_credentials(token)
    except AuthenticationFailed:
        return None
    return user
