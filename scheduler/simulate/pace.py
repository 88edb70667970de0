"""When cycles run, and when a simulation is over."""

import math
from dataclasses import dataclass

from scheduler.simulate.errors import InvalidSimulationError


@dataclass(frozen=True, slots=True)
class Pace:
    """The rhythm of a simulation.

    Attributes:
        least_s: seconds between two cycles, at least.
        wake_s: seconds between two cycles while jobs wait, at most; 0 = only at events.
        grace_s: between the order to end and the end.
        keep_size_s: for which a resized job keeps its size, from the order on (the portal's grace
            and min run time).
        idle_too: cycles run while anything runs, also where nothing waits.
        until_s: epoch seconds at which it is over; inf = when nothing is left to happen.
        most_cycles: more than that are taken for a simulation without an end.
    """

    least_s: float = 1.0
    wake_s: float = 60.0
    grace_s: float = 30.0
    keep_size_s: float = 630.0
    idle_too: bool = False
    until_s: float = math.inf
    most_cycles: int = 50_000_000

    def __post_init__(self) -> None:
        durations = {"least_s": self.least_s, "wake_s": self.wake_s, "grace_s": self.grace_s}
        durations |= {"keep_size_s": self.keep_size_s}
        for name, value in durations.items():
            if not 0 <= value < math.inf:
                raise InvalidSimulationError(f"{name} of a pace is {value}")
        if math.isnan(self.until_s):
            raise InvalidSimulationError("until_s of a pace is not a number")
