"""The policy of a trace, field by field as in `scheduler/core/policy.py`."""

from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any, TypeVar

from scheduler.core.errors import InvalidPolicyError
from scheduler.core.policy import Policy
from scheduler.decide.validate import validate_policy
from scheduler.simulate.errors import TraceError
from scheduler.simulate.traces.cells import Cell
from scheduler.simulate.traces.exported.content import Content
from scheduler.simulate.traces.exported.line import Line

T = TypeVar("T")


def read_policy(line: Line, content: Content) -> None:
    """Read how decisions are made; a field that is left out has its default."""
    if content.policy is not None:
        raise TraceError(line.file, line.number, "record", "policy", "occurs twice")
    kinds = tuple((kind, cell.text()) for kind, cell in line.mapping("kinds").items())
    policy = replace(_read(Policy(), line), kinds=kinds)
    try:
        validate_policy(policy)
    except InvalidPolicyError as wrong:
        raise TraceError(line.file, line.number, "", "policy", f"cannot be: {wrong}") from wrong
    content.policy = policy


def _read(usual: T, line: Line) -> T:
    """Return a group of settings, those of a line in place of the usual ones."""
    given: dict[str, Any] = {}
    for name in (field.name for field in fields(usual)):  # type: ignore[arg-type]
        value = getattr(usual, name)
        if is_dataclass(value):
            inner = line.inner(name)
            given[name] = _read(value, inner)
            inner.done()
        elif name in line.values:
            given[name] = _value(value, line.cell(name))
    return replace(usual, **given)  # type: ignore[type-var]


def _value(usual: object, cell: Cell) -> object:
    """Return a value of the same kind as the usual one; None is a number that need not be."""
    if isinstance(usual, bool):
        return cell.flag()
    if isinstance(usual, str):
        return cell.text(empty=True)
    return cell.integer() if isinstance(usual, int) else cell.number()


def policy_values(policy: Policy) -> dict[str, object]:
    """Return what `read_policy` reads."""
    return asdict(policy) | {"kinds": dict(policy.kinds)}
