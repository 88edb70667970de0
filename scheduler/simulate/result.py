"""What a simulation has seen; everything else (`metrics`) is worked out from it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from scheduler.core.reasons import WaitReason


class End(StrEnum):
    """How a job stood when the simulation ended, or how it ended before."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    """Its time limit was over first."""
    RUNNING = "running"
    WAITING = "waiting"


class Eta(NamedTuple):
    """The expected start that a job was given in the first cycle that let it wait.

    Attributes:
        given_s: when, epoch seconds.
        p50_s, p90_s: epoch seconds; None = none was given.
        code: why it waits.
    """

    given_s: float
    p50_s: float | None
    p90_s: float | None
    code: WaitReason


@dataclass(frozen=True, slots=True)
class History:
    """What became of one job.

    Attributes:
        starts: epoch seconds of each start, ascending.
        end_s: epoch seconds of its end; None = it had not ended.
        evictions: how often it was evicted for others.
        losses: how often it lost a node.
        resizes: how often it went on with other replicas.
        lost_s: seconds of work that had to be done again.
        lost_device_s: the same, times its devices.
        eta: None = it was started in its first cycle, or no cycle spoke of it.
        device_milli: thousandths of devices that it asks for, with its least replicas.
    """

    uid: str
    tenant: str
    submitted_s: float
    state: End
    starts: tuple[float, ...]
    end_s: float | None
    evictions: int = 0
    losses: int = 0
    resizes: int = 0
    lost_s: float = 0.0
    lost_device_s: float = 0.0
    eta: Eta | None = None
    device_milli: int = 0

    @property
    def wait_s(self) -> float | None:
        """Return the seconds from submit to first start, None if it never started."""
        return self.starts[0] - self.submitted_s if self.starts else None

    @property
    def completion_s(self) -> float | None:
        """Return the seconds from submit to end, None if it had not ended."""
        return None if self.end_s is None else self.end_s - self.submitted_s

    def waited_s(self, end_s: float) -> float:
        """Return `wait_s`, or what it had waited by the end, epoch seconds, without a start."""
        return (self.starts[0] if self.starts else end_s) - self.submitted_s

    def lasted_s(self, end_s: float) -> float:
        """Return `completion_s`, or how long it was there by the end, epoch seconds, still."""
        return (end_s if self.end_s is None else self.end_s) - self.submitted_s


class Span(NamedTuple):
    """One job held one placement, from `start_s` to `end_s`; a resize begins a new span.

    Attributes:
        flavor: of its devices, "" for none.
        cpu_milli, device_milli: what it held in all.
        kept_s: seconds in which work was done that did not have to be done again; they lie
            together, right behind the start-up.
        final: the job ended with it.
        startup_s: seconds until work began.
    """

    uid: str
    tenant: str
    flavor: str
    replicas: int
    cpu_milli: int
    device_milli: int
    start_s: float
    end_s: float
    kept_s: float
    final: bool
    startup_s: float = 0.0

    def kept_until_s(self, moment_s: float) -> float:
        """Return how many of its `kept_s` had passed at a moment, epoch seconds."""
        return min(self.kept_s, max(0.0, moment_s - self.start_s - self.startup_s))


class Capacity(NamedTuple):
    """From `at_s` on, the nodes that may take work have so many thousandths of each flavor."""

    at_s: float
    milli: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Result:
    """All that was seen.

    Attributes:
        begin_s, end_s: epoch seconds of the first and the last moment.
        jobs: one history per job, in order of uid.
        spans: in order of end, then uid; those that still ran are closed at `end_s`.
        capacity: steps, ascending; the first at `begin_s`.
        events: how many events of jobs there were: arrivals, starts, ends, evictions, resizes,
            losses.
        cycles: how often the decider was asked.
    """

    begin_s: float
    end_s: float
    jobs: tuple[History, ...]
    spans: tuple[Span, ...]
    capacity: tuple[Capacity, ...]
    events: int
    cycles: int

    def until(self, moment_s: float) -> "Result":
        """Return it with another end, so that rates are those of the time before that.

        What happened to jobs stays as it was, also what happened later; inf = all of it.
        """
        return self if moment_s == math.inf else replace(self, end_s=moment_s)
