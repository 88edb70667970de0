"""In which language a live page speaks: as its HTML did."""

from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any

from django.conf import settings
from django.utils.translation import get_supported_language_variant
from django.utils.translation.trans_real import parse_accept_lang_header


def language_of(scope: dict[str, Any]) -> str:
    """Return the language of the cookie, else of the browser, else the default."""
    headers = {name: value.decode("latin-1") for name, value in scope.get("headers", ())}
    wishes = [_cookie(headers.get(b"cookie", ""))]
    wishes += [code for code, _q in parse_accept_lang_header(headers.get(b"accept-language", ""))]
    return _first_supported(wishes)


def _cookie(header: str) -> str:
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(header)
    except CookieError:
        return ""
    found = cookies.get(settings.LANGUAGE_COOKIE_NAME)
    return found.value if found else ""


def _first_supported(wishes: Iterable[str]) -> str:
    for wish in wishes:
        try:
            return get_supported_language_variant(wish)
        except LookupError:
            continue
    return str(settings.LANGUAGE_CODE)
