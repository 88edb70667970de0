"""Checks the numbers of a policy that an admin tunes."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from scheduler.weights import GROUPS, Bound, Values, in_force
from tenants.errors import InvalidValueError
from tenants.values import shown

NAME_SHOWN = 60


def changed_weights(stored: object, given: object) -> Values:
    """Return the numbers in force after a change.

    Args:
        stored: `SchedulingPolicy.weights`.
        given: group -> name -> number, of what changes; None in the place of a number, a group or
            the whole brings the defaults back.

    Raises:
        InvalidValueError: a name is unknown, or a value can't be taken; each is named.
    """
    values = in_force({} if given is None else stored)
    wrong: dict[str, list[str]] = {}
    for group, numbers in _entries("weights", {} if given is None else given, GROUPS, wrong):
        if numbers is None:
            values[group] = in_force({})[group]
            continue
        bounds = GROUPS[group]
        for name, value in _entries(f"weights.{group}", numbers, bounds, wrong):
            bound = bounds[name]
            if value is None:
                values[group][name] = bound.default
            elif isinstance(value, int | float) and bound.takes(value):
                values[group][name] = value
            else:
                wrong[f"weights.{group}.{name}"] = [_refusal(bound, value)]
    if wrong:
        raise InvalidValueError(wrong)
    return values


def _entries(
    path: str, given: object, known: Mapping[str, object], wrong: dict[str, list[str]]
) -> list[tuple[str, object]]:
    """Return the known entries of an object; add to `wrong` what is none."""
    choices = ", ".join(known)
    if not isinstance(given, Mapping):
        wrong[path] = [
            _("Write an object with any of %(names)s, not %(value)s.")
            % {"names": choices, "value": shown(given)}
        ]
        return []
    for name in given.keys() - known.keys():
        wrong[f"{path}.{str(name)[:NAME_SHOWN]}"] = [
            _("There is no such weight; choose any of %(names)s.") % {"names": choices}
        ]
    return [(name, value) for name, value in given.items() if name in known]


def _refusal(bound: Bound, value: object) -> str:
    numbers = {"most": f"{bound.most:.0f}", "value": shown(value)}
    if bound.whole:
        return _("Write a whole number from 0 to %(most)s, not %(value)s.") % numbers
    return _("Write a number from 0 to %(most)s, not %(value)s.") % numbers
