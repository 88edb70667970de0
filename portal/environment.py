"""Read settings from environment variables, loudly: a wrong value names itself and the remedy."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off"}
POSTGRES = re.compile(r"(postgres|postgresql|psql|pgsql)://")


def masked(url: str) -> str:
    """Return the URL with everything that may be a password hidden.

    >>> masked("redis://me:p@ss@host/0?password=x")
    'redis://me:***@host/0?password=***'
    """
    hidden = re.sub(r"^([^:/?#]*://[^:@/]*):.*@", r"\1:***@", url)
    return re.sub(r"(?i)(password=)[^&]*", r"\1***", hidden)


class Environment:
    """The variables of one process; an empty one counts as unset.

    Every method raises ImproperlyConfigured where the value does not fit.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, name: str, default: str = "") -> str:
        """Return a variable without the space around it."""
        return self._variables.get(name, "").strip() or default

    def words(self, name: str, default: Sequence[str] = ()) -> list[str]:
        """Return a comma-separated list."""
        text = self.text(name)
        return [word.strip() for word in text.split(",") if word.strip()] if text else [*default]

    def choice(self, name: str, default: str, among: Sequence[str]) -> str:
        """Return one of some words, written in any case."""
        text = self.text(name, default).upper()
        if text not in among:
            raise ImproperlyConfigured(f"{name}={text!r} is none of {', '.join(among)}.")
        return text

    def flag(self, name: str, *, default: bool) -> bool:
        """Return yes or no."""
        text = self.text(name).lower()
        if text and text not in TRUE | FALSE:
            raise ImproperlyConfigured(f"{name}={text!r} is neither yes nor no: set it to 1 or 0.")
        return text in TRUE if text else default

    def whole(self, name: str, default: int, *, low: int, high: int) -> int:
        """Return a whole number within bounds, both included."""
        text = self.text(name)
        if not text:
            return default
        if not re.fullmatch(r"-?[0-9]{1,18}", text) or not low <= int(text) <= high:
            raise ImproperlyConfigured(
                f"{name}={text!r} does not fit: set it to a whole number from {low} to {high}."
            )
        return int(text)

    def number(self, name: str, default: float, *, low: float, high: float) -> float:
        """Return a number within bounds, both included."""
        text = self.text(name)
        if not text:
            return default
        value = float(text) if re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,9})?", text) else math.nan
        if not low <= value <= high:  # false for NaN as well
            raise ImproperlyConfigured(
                f"{name}={text!r} does not fit: set it to a number from {low:g} to {high:g}."
            )
        return value

    def database(self, name: str) -> dict[str, Any] | None:
        """Return Django's settings from a PostgreSQL URL, None where the variable is unset."""
        url = self.text(name)
        if not url:
            return None
        form = "postgresql://USER:PASSWORD@HOST:PORT/NAME"
        try:
            settings = dict(environ.Env.db_url_config(url)) if POSTGRES.match(url) else {}
        except ValueError:
            settings = {}
        if not settings.get("NAME"):
            raise ImproperlyConfigured(
                f"{name}={masked(url)} is no PostgreSQL URL: write it as {form}, or unset it for "
                "the embedded PostgreSQL."
            )
        return settings
