"""Makes what comes from executors, solvers and people fit for a column, whatever it holds.

PostgreSQL refuses NUL in text and NaN in JSON. One such value must not stop a whole cycle.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

TEXT_LIMIT = 4000
INTEGER_MOST = 2**31 - 1
EPOCH_MOST_S = 4_102_444_800.0
"""The year 2100: what an executor dates later is no time."""


def stored_text(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return text that a column takes: without NUL, valid UTF-8, at most `limit` characters."""
    cleaned = text[:limit].replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return cleaned.encode("utf-8", "replace").decode("utf-8")


def stored_float(number: float | None) -> float | None:
    """Return a number, None where it is not a finite one."""
    return number if number is not None and math.isfinite(number) else None


def stored_integer(number: int | None) -> int | None:
    """Return a number that an integer column takes, None where it is out of its range."""
    return number if number is not None and abs(number) <= INTEGER_MOST else None


def stored_time(epoch_s: float | None) -> datetime | None:
    """Return a time of a column, None where the seconds are none or absurd."""
    if epoch_s is None or not 0 <= epoch_s <= EPOCH_MOST_S:
        return None
    return datetime.fromtimestamp(epoch_s, tz=UTC)


def stored_json(value: Any) -> Any:
    """Return a value as it would come back from a JSON column.

    Tuples become lists, numpy's scalars Python's, and numbers that are not finite null.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return stored_float(value)
    if isinstance(value, str):
        return stored_text(str(value))
    if isinstance(value, Mapping):
        return {stored_text(str(key)): stored_json(part) for key, part in value.items()}
    if isinstance(value, Sequence):
        return [stored_json(part) for part in value]
    return value
