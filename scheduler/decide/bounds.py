"""What each number of a snapshot and a policy may be: one table, field by field.

Beyond these bounds a number is a mistake, does not fit the arrays' integers, or swallows the digits
of the others in a sum. NaN is in no bounds.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from scheduler.core.policy import (
    ObjectiveWeights,
    PreemptionPolicy,
    PriorityWeights,
    QosFactors,
)
from scheduler.core.resources import WHOLE_MILLI

MOST_AMOUNT, MOST_COUNT = 1 << 40, 1 << 20
"""Of milli-cores or MiB, and of replicas, devices or evictions: sums of a million fit 64 bits."""

MOST_QUOTA = 1 << 50
"""Of one line: a sum of a thousand of them still fits 64 bits."""

MOST_REAL = 1e15
"""Of seconds, arrivals, or use against capacity: beside it an eighth can still be told."""

MOST_WEIGHT = 1e9
"""Beyond, a part swallows the digits of the others, and their sum is soon infinite."""

MOST_POWER_W = 1e9
"""A gigawatt: no cluster is larger, and microwatts still fit 64 bits."""

MOST_SEED = (1 << 32) - 1
"""Of chance; numpy's compiled generator takes no more."""

POSITIVE = sys.float_info.min
"""The least number above 0 of which the inverse is one, too."""


class Bound(NamedTuple):
    """What a number may be.

    Attributes:
        least, most: both allowed.
        whole: an integer.
        optional: None is allowed.
    """

    least: float
    most: float
    whole: bool = False
    optional: bool = False

    def takes(self, value: object) -> bool:
        """Return whether a value is such a number."""
        if value is None:
            return self.optional
        if not isinstance(value, WHOLE if self.whole else REAL):
            return False
        return bool(self.least <= value <= self.most)


WHOLE: Final = (int, np.integer)
REAL: Final = (int, float, np.integer, np.floating)

Bounds: TypeAlias = Mapping[str, Bound]
"""Field -> what it may be."""


def stray(thing: object, bounds: Bounds) -> str:
    """Return the first field of a thing that is out of its bounds, "" if none is."""
    return next((name for name, b in bounds.items() if not b.takes(getattr(thing, name))), "")


def _whole(least: int, most: int, *, optional: bool = False) -> Bound:
    return Bound(least, most, whole=True, optional=optional)


def _each(kind: type, bound: Bound) -> Bounds:
    return MappingProxyType({field.name: bound for field in fields(kind)})


_AMOUNT, _COUNT = _whole(0, MOST_AMOUNT), _whole(0, MOST_COUNT)
_SIGNED = _whole(-MOST_AMOUNT, MOST_AMOUNT)
_MOMENT, _SECONDS = Bound(-MOST_REAL, MOST_REAL), Bound(0.0, MOST_REAL)
_MAYBE_MOMENT = _MOMENT._replace(optional=True)
_POSITIVE = Bound(POSITIVE, MOST_REAL)
_MAYBE_QUOTA = _whole(0, MOST_QUOTA, optional=True)

TIME, PART, USAGE = _MOMENT, Bound(0.0, 1.0), Bound(0.0, MOST_REAL)
"""A moment of epoch seconds; something in 0..1; use as a fraction of capacity."""

THROUGHPUT = Bound(POSITIVE, 1.0)
"""Of a job class on a flavor."""

BUDGET = _SECONDS
"""Seconds that a decision may take."""

SHAPE: Final[Bounds] = MappingProxyType(
    {
        "cpu_milli": _whole(1, MOST_AMOUNT),
        "memory_mib": _whole(1, MOST_AMOUNT),
        "devices": _COUNT,
        "gpu_milli": _whole(1, WHOLE_MILLI),
        "gpu_memory_mib": _AMOUNT,
    }
)
JOB: Final[Bounds] = MappingProxyType(
    {
        "replicas_min": _whole(1, MOST_COUNT),
        "replicas_max": _whole(1, MOST_COUNT),
        "priority": _SIGNED,
        "time_limit_s": _POSITIVE,
        "submitted_s": _MOMENT,
        "not_before_s": _MOMENT,
        "min_throughput": PART,
        "promised_s": _SECONDS,
        "preempted_count": _COUNT,
    }
)
RUNNING: Final[Bounds] = MappingProxyType(
    {"started_s": _MOMENT, "checkpointed_s": _MAYBE_MOMENT, "ending_s": _MAYBE_MOMENT}
)
HELD: Final[Bounds] = MappingProxyType(
    {"node": _AMOUNT, "gpu_milli": _whole(0, WHOLE_MILLI), "gpu_memory_mib": _AMOUNT}
)
QUOTA: Final[Bounds] = MappingProxyType(
    {
        "nominal": _whole(0, MOST_QUOTA),
        "borrowing_limit": _MAYBE_QUOTA,
        "lending_limit": _MAYBE_QUOTA,
    }
)
TENANT: Final[Bounds] = MappingProxyType(
    {"fair_weight": Bound(0.0, MOST_WEIGHT), "queue_priority": _SIGNED, "created_s": _MOMENT}
)
FLAVOR: Final[Bounds] = MappingProxyType(
    {
        "compute_units": Bound(POSITIVE, MOST_WEIGHT, optional=True),
        "memory_mib": _AMOUNT,
        "power_w": Bound(0.0, MOST_POWER_W, optional=True),
    }
)
FLEET: Final[Bounds] = MappingProxyType(
    {
        "node_cpu_milli": _AMOUNT,
        "node_memory_mib": _AMOUNT,
        "node_cpu_free_milli": _SIGNED,
        "node_memory_free_mib": _SIGNED,
        "device_free_milli": _whole(0, WHOLE_MILLI),
        "device_free_memory_mib": _SIGNED,
        "device_memory_mib": _AMOUNT,
        "device_link_group": _SIGNED,
        "device_numa": _SIGNED,
        "device_nic": _SIGNED,
    }
)
"""Of each entry of the arrays; indices are held against what they point to."""

RESERVATION: Final[Bounds] = MappingProxyType({"start_s": _MOMENT, "end_s": _MOMENT})
EXPECTATION: Final[Bounds] = MappingProxyType(
    {
        "p50_s": _MOMENT,
        "p90_s": _MOMENT,
        "waited_s": _MOMENT,
        "told_p90_s": Bound(-MOST_REAL, math.inf),
    }
)
DEMAND: Final[Bounds] = MappingProxyType({"count": _POSITIVE})

POLICY: Final[Bounds] = MappingProxyType(
    {
        "budget_s": BUDGET,
        "seed": _whole(0, MOST_SEED),
        "backfill_depth": _COUNT,
        "remedy_depth": _COUNT,
        "power_cap_w": Bound(0.0, MOST_POWER_W, optional=True),
        "patience_s": _SECONDS,
    }
)
WEIGHT: Final = Bound(0.0, MOST_WEIGHT)
POLICY_PARTS: Final[Mapping[str, Bounds]] = MappingProxyType(
    {
        "order": _each(PriorityWeights, WEIGHT),
        "objective": _each(ObjectiveWeights, WEIGHT),
        "qos": _each(QosFactors, PART),
        "preemption": MappingProxyType(
            {
                **_each(PreemptionPolicy, _SECONDS),
                "most_evictions": _COUNT,
            }
        ),
    }
)
"""Field of the policy -> the numbers in it; a switch of the preemption counts as 0 or 1."""
