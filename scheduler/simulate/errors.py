"""What a simulation raises."""

from scheduler.core.errors import EngineError


class InvalidSimulationError(EngineError):
    """A job, a change of the fleet or a setting cannot be simulated; says which, and why."""


class EndlessSimulationError(EngineError):
    """The simulation passed the most cycles that it may take: jobs evict each other for ever."""
