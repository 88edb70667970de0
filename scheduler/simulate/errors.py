"""What a simulation raises."""

from scheduler.core.errors import EngineError


class InvalidSimulationError(EngineError):
    """A job, a change of the fleet or a setting cannot be simulated; says which, and why."""


class EndlessSimulationError(EngineError):
    """The simulation passed the most cycles that it may take: jobs evict each other for ever."""


class TraceError(EngineError):
    """A trace cannot be read.

    Attributes:
        file: its name, as given to the reader.
        line: 1 = the first; 0 = the file as a whole.
        column: name of the column or key, "" = the line as a whole.
        value: what stands there, cut to 80 characters.
    """

    def __init__(self, file: str, line: int, column: str, value: object, why: str) -> None:
        self.file, self.line, self.column = file, line, column
        self.value = repr(value)[:80]
        place = f"{file}, line {line}" if line else file
        super().__init__(f"{place}{f', {column}' if column else ''}: {self.value} {why}")
