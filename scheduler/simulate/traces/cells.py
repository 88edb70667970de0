"""Numbers out of text that anybody may have written: a value within bounds, or a `TraceError`."""

import math
from typing import NamedTuple

from scheduler.simulate.errors import TraceError

MOST = 1e15
"""More seconds, steps or bytes than that are a mistake."""


class Cell(NamedTuple):
    """One value of a file, and where it stands."""

    file: str
    line: int
    column: str
    value: object

    def error(self, why: str) -> TraceError:
        """Return what is wrong with the value."""
        return TraceError(self.file, self.line, self.column, self.value, why)

    def number(self, *, low: float = 0.0, high: float = MOST) -> float:
        """Return a finite number within bounds."""
        number = self._parsed()
        if not low <= number <= high:  # NaN is in no bounds
            raise self.error(f"is not a number from {low:g} to {high:g}")
        return number

    def positive(self, *, high: float = MOST) -> float:
        """Return a finite number above 0."""
        return self.number(low=math.ulp(0.0), high=high)

    def integer(self, *, low: int = 0, high: int = 1 << 40) -> int:
        """Return a whole number within bounds."""
        number = self._parsed()
        if not (low <= number <= high and number == int(number)):
            raise self.error(f"is not a whole number from {low} to {high}")
        return int(number)

    def text(self, *, most: int = 512, empty: bool = False) -> str:
        """Return a text; it is not empty, unless it may be."""
        least = 0 if empty else 1
        if not isinstance(self.value, str) or not least <= len(self.value) <= most:
            raise self.error(f"is not a text of {least} to {most} characters")
        return self.value

    def flag(self) -> bool:
        """Return what is true or false."""
        if not isinstance(self.value, bool):
            raise self.error("is neither true nor false")
        return self.value

    def _parsed(self) -> float:
        value = self.value
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return math.nan
        try:
            return float(value)
        except (ValueError, OverflowError):
            return math.nan
