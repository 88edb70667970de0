"""Deciders by name, and policies out of settings that somebody typed."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from scheduler.core.errors import InvalidPolicyError
from scheduler.core.policy import Policy
from scheduler.decide.strategies.base import STRATEGIES
from scheduler.decide.validate import validate_policy
from scheduler.simulate.baselines import fifo, priority_only
from scheduler.simulate.decider import Decider, by_policy

PRESENT = "present"
"""The policy as it is."""

BASELINES = {"fifo": fifo, "priority_only": priority_only}
"""Name -> what makes a decider that knows no policy."""

NAMES = (PRESENT, *STRATEGIES, *BASELINES)

T = TypeVar("T")


def decider_of(name: str, policy: Policy) -> Decider:
    """Return the decider of a name: the policy itself, with another strategy, or a baseline.

    Advice is left out, as nobody reads it here.

    Raises:
        InvalidPolicyError: no decider has that name, or the policy cannot be followed.
    """
    if name in BASELINES:
        return BASELINES[name]()
    if name not in NAMES:
        raise InvalidPolicyError(f"policy {name!r} is not one of {', '.join(NAMES)}")
    quiet = replace(policy, remedy_depth=0, expects_starts=False, shadow="")
    if name != PRESENT:
        quiet = replace(quiet, strategy=name, kinds=())
    validate_policy(quiet)
    return by_policy(quiet)


def policy_with(policy: Policy, settings: Mapping[str, str]) -> Policy:
    """Return a policy with some fields changed, as `order.fair_share` = "0".

    Raises:
        InvalidPolicyError: a name is no field, a value is not of its kind, or the policy cannot be
            followed.
    """
    for path, text in settings.items():
        policy = _with(policy, path, path.split("."), text)
    validate_policy(policy)
    return policy


def _with(part: T, path: str, names: list[str], text: str) -> T:
    known = {field.name for field in fields(part)}  # type: ignore[arg-type]
    name, *deeper = names
    if name not in known:
        raise InvalidPolicyError(f"{path!r} is no setting: {name!r} is not one of {sorted(known)}")
    value: Any = getattr(part, name)
    if is_dataclass(value) != bool(deeper):
        raise InvalidPolicyError(
            f"{path!r} is no setting: it names a group, or something within a value"
        )
    changed = _with(value, path, deeper, text) if deeper else _parsed(path, value, text)
    return replace(part, **{name: changed})  # type: ignore[type-var]


def _parsed(path: str, now: object, text: str) -> object:
    """Return a text as a value of the same kind as the present one."""
    if isinstance(now, bool):
        if text not in {"true", "false"}:
            raise InvalidPolicyError(f"{path} is true or false, not {text!r}")
        return text == "true"
    if not isinstance(now, str | int | float):
        raise InvalidPolicyError(f"{path} cannot be set here")
    try:
        return type(now)(text)
    except ValueError as wrong:
        raise InvalidPolicyError(f"{path} is a {type(now).__name__}, not {text!r}") from wrong
