"""What a simulated site remembers of the starts that it told jobs to expect, as the portal does."""

import math
from collections import deque
from dataclasses import replace
from typing import NamedTuple

from scheduler.core.plan import Plan
from scheduler.core.snapshot import Expectation, Snapshot
from scheduler.simulate.decider import Decider, looks_at_mix

RECORD_COUNT = 100
"""So many of the last jobs that waited say what an expectation is worth: times change."""


class _Said(NamedTuple):
    """What was planned first for a job, and when, and the P90 that it was told."""

    at_s: float
    p50_s: float
    p90_s: float
    gang: bool
    told_p90_s: float

    def so_far(self, now_s: float, *, started: bool) -> Expectation:
        waited_s = now_s - self.at_s
        return Expectation(self.p50_s, self.p90_s, waited_s, started, self.gang, self.told_p90_s)


class Expectations:
    """What each job was told first of its first start, and what became of it."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Said] = {}
        self._seen: set[str] = set()
        self._over: deque[Expectation] = deque(maxlen=RECORD_COUNT)

    def now(self, now_s: float) -> tuple[Expectation, ...]:
        """Return what is known: of the last that started, and of all that still wait."""
        waiting = (one.so_far(now_s, started=False) for one in self._waiting.values())
        return (*self._over, *waiting)

    def note(self, snapshot: Snapshot, plan: Plan) -> None:
        """Keep what a plan says first of a job, and whose wait it ends."""
        for start in plan.starts:
            self._seen.add(start.uid)
            said = self._waiting.pop(start.uid, None)
            if said:
                self._over.append(said.so_far(plan.now_s, started=True))
        gangs = {job.uid for job in snapshot.pending if job.replicas_min > 1}
        for told in plan.pending:
            p50_s, p90_s = told.planned_p50_s, told.planned_p90_s
            if told.uid in self._seen or p50_s is None or p90_s is None:
                continue
            self._seen.add(told.uid)
            late_s = told.expected_start_p90_s
            told_s = math.inf if late_s is None else late_s - plan.now_s
            waits = (p50_s - plan.now_s, p90_s - plan.now_s)
            self._waiting[told.uid] = _Said(plan.now_s, *waits, told.uid in gangs, told_s)


def remembering(decider: Decider) -> Decider:
    """Return a decider that is told what its past expectations were worth."""
    return _Remembering(decider)


class _Remembering:
    """Tells another decider, and notes what it says."""

    def __init__(self, decider: Decider) -> None:
        self._decider, self._memory = decider, Expectations()
        self.looks_at_mix = looks_at_mix(decider)

    def __call__(self, snapshot: Snapshot, now_s: float) -> Plan:
        """Return the plan of one cycle."""
        told = replace(snapshot, expectations=self._memory.now(now_s))
        plan = self._decider(told, now_s)
        self._memory.note(snapshot, plan)
        return plan
