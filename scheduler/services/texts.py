"""Checks the texts of a job: name, command, image, environment, class.

Strange ones are shown safely.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from tenants.errors import InvalidValueError
from tenants.values import shown

NAME_LIMIT = 200
COMMAND_LIMIT_BYTES = 64 * 1024
IMAGE_LIMIT = 500
ENV_LIMIT_COUNT = 200
ENV_LIMIT_BYTES = 64 * 1024

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,78}[A-Za-z0-9])?")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")
_RESERVED_ENV = re.compile(r"KILTER_.*|.*_VISIBLE_DEVICES")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def checked_name(value: Any) -> str:
    """Return a job's name without blanks around it.

    Raises:
        InvalidValueError: says what is wrong with it; of no field yet.
    """
    if not isinstance(value, str) or not value.strip():
        raise InvalidValueError.of("", _("A job needs a name."))
    name = value.strip()
    if len(name) > NAME_LIMIT:
        raise InvalidValueError.of(
            "",
            _("The name has %(length)s characters; %(most)s are the most.")
            % {"length": len(name), "most": NAME_LIMIT},
        )
    for character in name:
        if unicodedata.category(character) in _HIDDEN_CATEGORIES:
            raise InvalidValueError.of(
                "",
                _("The name holds the invisible character U+%(code)s; remove it.")
                % {"code": f"{ord(character):04X}"},
            )
    return name


def checked_command(value: Any) -> str:
    """Return a command whose lines end in a line feed.

    Raises:
        InvalidValueError: says what is wrong with it; of no field yet.
    """
    if not isinstance(value, str) or not value.strip():
        raise InvalidValueError.of("", _("A job needs a command."))
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > COMMAND_LIMIT_BYTES:
        raise InvalidValueError.of(
            "",
            _(
                "The command has %(size)s bytes; %(most)s are the most. "
                "Put it into a file and call that."
            )
            % {"size": size, "most": COMMAND_LIMIT_BYTES},
        )
    text = value.replace("\r\n", "\n")
    _refuse_controls(text, _("The command"))
    return text


def _refuse_controls(text: str, what: str) -> None:
    for character in text:
        if unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t":
            raise InvalidValueError.of(
                "",
                _("%(what)s holds the control character U+%(code)s; remove it.")
                % {"what": what, "code": f"{ord(character):04X}"},
            )


def checked_image(value: Any) -> str:
    """Return the name of a container image, or "".

    Raises:
        InvalidValueError: says what is wrong with it; of no field yet.
    """
    if value == "":
        return ""
    if not isinstance(value, str) or len(value) > IMAGE_LIMIT or not _IMAGE.fullmatch(value):
        raise InvalidValueError.of(
            "",
            _("%(value)s is not the name of a container image; write registry/name:tag.")
            % {"value": shown(value)},
        )
    return value


def checked_env(value: Any) -> dict[str, str]:
    """Return environment variables.

    Raises:
        InvalidValueError: says what is wrong with it; of no field yet.
    """
    if not isinstance(value, Mapping):
        raise InvalidValueError.of(
            "", _("Environment variables are pairs of a name and a text value.")
        )
    if len(value) > ENV_LIMIT_COUNT:
        raise InvalidValueError.of(
            "",
            _("There are %(count)s environment variables; %(most)s are the most.")
            % {"count": len(value), "most": ENV_LIMIT_COUNT},
        )
    found = {name: _env_value(name, text) for name, text in value.items()}
    if sum(len(n) + len(v.encode()) for n, v in found.items()) > ENV_LIMIT_BYTES:
        raise InvalidValueError.of(
            "",
            _("The environment variables have more than %(most)s bytes; put them into a file.")
            % {"most": ENV_LIMIT_BYTES},
        )
    return found


def _env_value(name: Any, text: Any) -> str:
    if not isinstance(name, str) or not _ENV_NAME.fullmatch(name):
        raise InvalidValueError.of(
            "",
            _("%(name)s is not a name of an environment variable: letters, digits and _.")
            % {"name": shown(name)},
        )
    if _RESERVED_ENV.fullmatch(name):
        raise InvalidValueError.of(
            "", _("%(name)s is set by Kilter; choose another name.") % {"name": name}
        )
    if not isinstance(text, str):
        raise InvalidValueError.of(
            "", _("The value of %(name)s is not text; put it in quotes.") % {"name": name}
        )
    _refuse_controls(text, _("The value of %(name)s") % {"name": name})
    return text


def checked_job_class(value: object) -> str:
    """Return a class of jobs, "" where none is named; a refusal is of field ""."""
    return _word(
        value, _("%(value)s is not a class: letters, digits, dots and hyphens, 80 at most.")
    )


def checked_group(value: object) -> str:
    """Return the name of a group of jobs, "" where none is named; a refusal is of field ""."""
    return _word(
        value,
        _("%(value)s is not the name of a group: letters, digits, dots and hyphens, 80 at most."),
    )


def _word(value: object, refusal: str) -> str:
    if value == "" or (isinstance(value, str) and _WORD.fullmatch(value)):
        return str(value)
    raise InvalidValueError.of("", refusal % {"value": shown(value)})
