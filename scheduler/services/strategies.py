"""Checks who is to decide: by kind of job, in the shadow, and with which solver."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from scheduler.choices import STRATEGY_NAMES, JobKind, Solver
from scheduler.decide.strategies.base import RULES
from tenants.errors import InvalidValueError


def checked_strategies(kinds: object, shadow: object, solver: object) -> dict[str, Any]:
    """Return the values that were given, None leaves one out.

    Raises:
        InvalidValueError: one can't be taken.
    """
    wrong: dict[str, list[str]] = {}
    wanted: dict[str, Any] = {}
    for name, value, choices in (
        ("shadow", shadow, ("", *STRATEGY_NAMES)),
        ("solver", solver, tuple(Solver.values)),
    ):
        if value is not None and value not in choices:
            wrong[name] = [_one_of(choices)]
        elif value is not None:
            wanted[name] = value
    if kinds is not None:
        mistake = _mistake(kinds)
        if mistake:
            wrong["kinds"] = [mistake]
        else:
            wanted["kinds"] = kinds
    if wrong:
        raise InvalidValueError(wrong)
    return wanted


def _mistake(kinds: object) -> str:
    """Return what is wrong with the strategies of kinds, "" if nothing."""
    if not isinstance(kinds, Mapping):
        return _("Give an object of kinds of jobs and their strategies.")
    if any(kind not in JobKind.values for kind in kinds):
        return _("The kinds of jobs are %(kinds)s.") % {"kinds": ", ".join(JobKind.values)}
    if any(strategy not in STRATEGY_NAMES for strategy in kinds.values()):
        return _one_of(STRATEGY_NAMES)
    return ""


def _one_of(choices: tuple[str, ...]) -> str:
    return _("Choose one of %(choices)s.") % {"choices": ", ".join(filter(None, choices))}


def refuse_two(strategy: str, kinds: Mapping[str, str]) -> None:
    """Check that one plan can be made of all kinds: beside the rules one strategy may decide.

    Raises:
        InvalidValueError: there are two.
    """
    beside = {strategy, *kinds.values()} - {RULES}
    if len(beside) > 1:
        raise InvalidValueError.of(
            "kinds",
            _("Beside the rules one strategy may decide, not %(count)s.") % {"count": len(beside)},
        )
