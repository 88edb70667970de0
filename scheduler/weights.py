"""The numbers of a policy that an admin may tune: names, defaults and bounds, in one table.

`SchedulingPolicy.weights` keeps those that differ from the defaults: group -> name -> value.
"""

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Final

from scheduler.core.policy import Policy
from scheduler.decide.bounds import MOST_WEIGHT

logger = logging.getLogger(__name__)

Values = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Bound:
    """What a number may be.

    Attributes:
        default: holds where nothing is stored.
        most: the largest; the least is 0.
        whole: it counts something.
    """

    default: float
    most: float
    whole: bool = False

    def takes(self, value: object) -> bool:
        """Return whether a value is such a number."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return 0 <= value <= self.most and (not self.whole or isinstance(value, int))


def _bounds(defaults: Mapping[str, float], most: float) -> Mapping[str, Bound]:
    return MappingProxyType({name: Bound(value, most) for name, value in defaults.items()})


_POLICY: Final = Policy()

GROUPS: Final[Mapping[str, Mapping[str, Bound]]] = MappingProxyType(
    {
        "order": _bounds(asdict(_POLICY.order), MOST_WEIGHT),
        "objective": _bounds(asdict(_POLICY.objective), MOST_WEIGHT),
        "qos": _bounds(asdict(_POLICY.qos), 1.0),
        "queue": MappingProxyType(
            {
                "backfill_depth": Bound(_POLICY.backfill_depth, 10_000, whole=True),
                "remedy_depth": Bound(_POLICY.remedy_depth, 100, whole=True),
                "patience_s": Bound(_POLICY.patience_s, MOST_WEIGHT),
            }
        ),
    }
)
"""Group -> name -> what it may be; `queue` holds fields of `Policy` itself."""


def in_force(stored: object) -> Values:
    """Return every number, the default where none that can be obeyed is stored."""
    groups = stored if isinstance(stored, dict) else {}
    return {group: _in_force(group, groups.get(group)) for group in GROUPS}


def _in_force(group: str, stored: object) -> dict[str, float]:
    values = stored if isinstance(stored, dict) else {}
    bounds = GROUPS[group]
    good = {n: v for n, v in values.items() if n in bounds and bounds[n].takes(v)}
    if len(good) < len(values):
        logger.error("weights not obeyed group=%s names=%s", group, sorted(values.keys() - good))
    return {
        name: (int if bound.whole else float)(good.get(name, bound.default))
        for name, bound in bounds.items()
    }


def differing(values: Values) -> Values:
    """Return the numbers that are not the defaults; groups without any are left out."""
    found = {
        group: {
            name: value for name, value in numbers.items() if value != GROUPS[group][name].default
        }
        for group, numbers in values.items()
    }
    return {group: numbers for group, numbers in found.items() if numbers}
