"""Is advice true where another strategy than the rules decides? What is promised is tried with it.

The turns try advice with turns (`turns`). A program may choose otherwise about the changed job, and
about those beside it. So whoever is promised a start is decided again with the change, by what
decides, while there is time. What fails is left out; what could not be tried, or came out one way
because time ran out, stays as what makes the start possible, and promises nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from scheduler.core.plan import NOT_NEEDED, Plan
from scheduler.core.reasons import NEVER, Pending
from scheduler.core.snapshot import JobSpec, Snapshot
from scheduler.decide import remedies

Tried: TypeAlias = Mapping[tuple[str, str], bool | None]
"""(uid, code of advice) -> whether the job starts with it; None = was not tried."""

MOST_TRIALS = 16
"""So many pieces of advice a decision tries, those first in the queue first."""

TIME_PART = 0.5
"""Of the time left when all is decided, trials may take this part."""

PROVED = frozenset({"optimal", NOT_NEEDED, "rules_kept"})
"""Statuses of a decision that comes out alike when it is made again."""


class Trials:
    """Decides again and again, until the time is used up.

    Args:
        decides: returns the plan of a world, within so many seconds.
        left_s: seconds that are left.
        each_s: seconds that one decision takes, as known so far; 0 without a clock.
        spent_s: tells the seconds since the trials began; 0 without a clock.
    """

    def __init__(
        self,
        decides: Callable[[Snapshot, float], Plan],
        *,
        left_s: float,
        each_s: float,
        spent_s: Callable[[], float],
    ) -> None:
        self._decides, self._spent_s = decides, spent_s
        self._until_s, self._each_s, self._trials = left_s * TIME_PART, each_s, 0

    def starts(self, world: Snapshot, job: JobSpec) -> bool | None:
        """Return whether a job would start in a world that it is put into; None = not known."""
        left_s = self._until_s - self._spent_s()
        if self._trials >= MOST_TRIALS or left_s <= 0 or left_s < self._each_s:
            return None
        self._trials += 1
        others = (other for other in world.pending if other.uid != job.uid)
        plan = self._decides(replace(world, pending=(*others, job)), left_s)
        if plan.solver.status not in PROVED:
            return None
        return any(start.uid == job.uid for start in plan.starts)


def kept(snapshot: Snapshot, answers: Iterable[Pending], trials: Trials) -> tuple[Pending, ...]:
    """Return answers with the promises that were kept when tried, and no others."""
    jobs = {job.uid: job for job in snapshot.pending}
    found = []
    for pending in answers:
        tried = {
            (pending.uid, remedy.code): trials.starts(
                *remedies.apply(snapshot, jobs[pending.uid], remedy)
            )
            for remedy in pending.remedies
            if remedy.params.get("starts_now")
        }
        found.append(sure(pending, tried))
    return tuple(found)


def sure(pending: Pending, tried: Tried) -> Pending:
    """Return the answer without advice that failed, and without promises that were not tried.

    What makes a job possible that can never run, or is in others' hands, helps all the same.
    """
    helps = []
    for remedy in pending.remedies:
        works = tried.get((pending.uid, remedy.code), True)
        if works:
            helps.append(remedy)
        elif works is None or pending.code in NEVER or remedy.code in remedies.OF_OTHERS:
            helps.append(replace(remedy, params={**remedy.params, "starts_now": False}))
    return replace(pending, remedies=tuple(helps))
