"""Who asks, and what a body may hold."""

import json
import math
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication as KnoxTokenAuthentication
from rest_framework.authentication import SessionAuthentication as DRFSessionAuthentication
from rest_framework.exceptions import APIException, AuthenticationFailed, ParseError
from rest_framework.parsers import BaseParser

BODY_LIMIT_BYTES = 1024 * 1024


class BodyTooLargeError(APIException):
    """The body of a request has more bytes than any request needs."""

    status_code = 413
    default_code = "body_too_large"

    def __init__(self) -> None:
        super().__init__(
            _("The body has more than %(most)s bytes; send less.") % {"most": BODY_LIMIT_BYTES}
        )


class TokenAuthentication(KnoxTokenAuthentication):  # type: ignore[misc]
    """`Authorization: Token …`; only hashes are kept, and tokens expire."""

    def authenticate_credentials(self, token: bytes) -> tuple[User, Any]:
        """Return user and token; what is not made of ASCII letters and digits is none of ours."""
        if not token.isalnum():
            raise AuthenticationFailed(_("Invalid token."))
        found: tuple[User, Any] = super().authenticate_credentials(token)
        return found


class SessionAuthentication(DRFSessionAuthentication):
    """The session of the pages; every change needs its CSRF token."""


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes the token in the schema."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:  # noqa: ARG002
        """Return the header's description."""
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token …`, from `manage.py token USER` or `POST /api/v1/me/tokens/`.",
        }


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes the session cookie in the schema."""

    target_class = SessionAuthentication
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:  # noqa: ARG002
        """Return the cookie's description."""
        return {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME}


class StrictJSONParser(BaseParser):
    """Takes one JSON object of at most 1 MiB and refuses everything that is doubtful."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the object.

        Raises:
            BodyTooLargeError: more than 1 MiB was announced or sent.
            ParseError: no JSON object, or one with a double key, NaN, half characters or NUL.
        """
        request = (parser_context or {}).get("request")
        announced = "" if request is None else str(request.META.get("CONTENT_LENGTH") or "")
        if announced.isdigit() and int(announced[:20]) > BODY_LIMIT_BYTES:
            raise BodyTooLargeError
        raw = stream.read(BODY_LIMIT_BYTES + 1)
        if len(raw) > BODY_LIMIT_BYTES:
            raise BodyTooLargeError
        return parse_object(raw)


def parse_object(raw: bytes) -> dict[str, Any]:
    """Return the JSON object that `raw` holds.

    Raises:
        ParseError: see `StrictJSONParser`.
    """
    try:
        found = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_without_doubles,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
        _check_texts(found)
    except RecursionError as exc:
        raise ParseError(_("The JSON is nested too deeply.")) from exc
    except ValueError as exc:  # also bytes that are no UTF-8, and integers of 5000 digits
        raise ParseError(_("The body is not JSON: %(why)s.") % {"why": _why(exc)}) from exc
    if not isinstance(found, dict):
        raise ParseError(_("The body is not a JSON object; send {…}."))
    return found


def _why(exc: ValueError) -> str:
    text = "it is not UTF-8" if isinstance(exc, UnicodeDecodeError) else str(exc)
    return text[:200].encode("utf-8", "replace").decode()


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        double = next(name for name, _value in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {double[:60]!r} stands there twice")
    return found


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _check_texts(found: Any) -> None:
    """Refuse NUL and half surrogate pairs, which no database column takes, anywhere in a value."""
    stack = [found]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            if "\x00" in value:
                raise ValueError("a text holds the character U+0000")
            if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
                raise ValueError("a text holds half a surrogate pair")
        elif isinstance(value, dict):
            stack += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            stack += value
