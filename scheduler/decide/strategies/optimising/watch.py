"""What is left of a budget."""

from collections.abc import Callable
from dataclasses import dataclass


class OutOfTimeError(Exception):
    """A budget is spent before there is anything to show for it."""


@dataclass(slots=True)
class Watch:
    """Seconds that may still be spent.

    Without a clock, the limits that solves were given count as spent.

    Attributes:
        budget_s: seconds from `began_s` on.
        clock: monotonic seconds; None = no time is measured.
        began_s: what the clock said at the beginning.
        given_s: sum of the limits given; only looked at without a clock.
    """

    budget_s: float
    clock: Callable[[], float] | None
    began_s: float = 0.0
    given_s: float = 0.0

    def left_s(self) -> float:
        """Return the seconds that are left, < 0 where it is too late."""
        spent = self.clock() - self.began_s if self.clock else self.given_s
        return self.budget_s - spent

    def give(self, limit_s: float) -> float:
        """Return a limit, and count it where nothing else tells the time."""
        self.given_s += limit_s
        return limit_s

    def part(self, limit_s: float) -> "Watch":
        """Return a watch on the next seconds of this one."""
        return Watch(limit_s, self.clock, self.clock() if self.clock else 0.0)
