"""Makes room for a waiting job by the laws: who may ask, whom it costs, and what is promised.

A job may ask when it has waited for `PreemptionPolicy.delay_s` and would not start by itself by the
time at which somebody evicted now is gone. What it costs is searched on a copy of the profile
(`search`, `trial`); only what was tried there is decided, and the job then holds a reservation in
the profile, so that nobody is started into its place.

In the next cycles those told to go are still there and free their places at `RunningJob.ending_s`.
The job has a promise (`JobSpec.promised_s`), goes first in the queue, is planned there again and
asks for nothing more. Where that room does not come it may ask again, once the delay has passed
since the promise, or since that was taken back (`JobSpec.not_before_s`). A job that was evicted has
a place in the queue like any other.

The turns ask here for each blocked job, so that it does not matter which strategy gave the turns:
a plan's evictions always belong to the starts and reservations that they were found with.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from scheduler.core.plan import EvictionCause, Preempt, Resize
from scheduler.core.policy import PreemptionPolicy
from scheduler.core.resources import CPU_FLAVOR
from scheduler.core.snapshot import JobSpec
from scheduler.decide.holdings import without
from scheduler.decide.kinds import Kind
from scheduler.decide.placement import Fit
from scheduler.decide.preemption.laws import Laws
from scheduler.decide.preemption.losers import Losers, losers_of
from scheduler.decide.preemption.room import Cut, Room
from scheduler.decide.preemption.search import Effort, cheapest_room
from scheduler.decide.quota import UNLIMITED, Charge
from scheduler.decide.session import Session, allows_any

__all__ = ["Outlook", "Preemption", "asks_from_s"]

MOST_ROOMS = 8
"""Room is made for so many jobs a cycle, so that a cycle stays short and what it does visible."""

MOST_STEPS = 8192
"""So many steps of searches may be in vain in a cycle, shared alike by the tenants that may ask."""

LEAST_SEARCHES = 2
"""So many searches in vain for each tenant, however many tenants there are."""

MOST_LOOKS = 512
"""So many times a cycle may look whether it is worth a search at all."""


class Outlook(NamedTuple):
    """How a blocked job will start.

    Attributes:
        fit: where and when; None = not foreseen.
        evidence: who gives room for it, and when, in numbers.
        for_others: it waits for jobs that are evicted or shrunk.
    """

    fit: Fit | None
    evidence: Mapping[str, object] = {}
    for_others: bool = False


class Preemption:
    """What one cycle takes from running jobs.

    Attributes:
        preempts, resizes: as decided so far.

    Args:
        session: the cycle's state.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._policy = session, session.policy.preemption
        self.preempts: list[Preempt] = []
        self.resizes: list[Resize] = []
        self._told_s = session.held.leaving_s()
        self._stays = [one.hold for one in session.held.active if one.leaves_s is None]
        self._booked: list[tuple[str, tuple[Charge, ...]]] = []
        self._known: tuple[Laws, Losers] | None = None
        self._hopeless: dict[tuple[Kind, str, int, bool], float] = {}
        self._effort, self._failed, self._spent = Effort(), Counter[str](), Counter[str]()
        self._rooms = 0
        asking = (
            job.tenant
            for job in session.snapshot.pending
            if asks_from_s(job, self._policy) <= session.now_s
        )
        self._share = MOST_STEPS // max(1, len(set(asking)))

    def book(self, tenant: str, charges: Iterable[Charge]) -> None:
        """Count what a tenant gets in this cycle, now or by a promise."""
        self._booked.append((tenant, tuple(charges)))

    def told(self) -> frozenset[str]:
        """Return the jobs that are evicted or shrunk in this cycle."""
        evicted, shrunk = (one.uid for one in self.preempts), (one.uid for one in self.resizes)
        return frozenset((*evicted, *shrunk))

    def consider(self, job: JobSpec, planned: Fit | None, *, preview: bool = False) -> Outlook:
        """Return how a blocked job will start, once room is made for it if it may ask.

        The caller places the job on `Outlook.fit`.

        Args:
            job: blocked at its turn.
            planned: how it would start by itself, None = never.
            preview: say also what it could ask for later.
        """
        if planned and self._is_coming(job, planned):
            self.book(job.tenant, self._charges(job, planned))
            return Outlook(planned, {"room_at_s": planned.start_s}, for_others=True)
        if self._rooms >= MOST_ROOMS:
            return Outlook(planned)
        if asks_from_s(job, self._policy) <= self._session.now_s:
            room = self._room(job, planned)
            if room:
                self._make(job, room)
                return Outlook(room.fit, _in_numbers(room), for_others=True)
        later = self._later(job, planned) if preview else None
        return Outlook(planned, {"would_evict": later} if later else {})

    def _later(self, job: JobSpec, planned: Fit | None) -> Mapping[str, object] | None:
        """Return what room a job could ask for later, when, and when it would be there.

        First with those who will have run for long enough when it may ask; then with all who run.
        """
        session, policy = self._session, self._policy
        if not allows_any(session.policy):
            return None
        asks_s = max(session.now_s, asks_from_s(job, policy))
        for at_s in (asks_s, asks_s + policy.min_runtime_s):
            losers = losers_of(session, at_s)
            laws, _ = self._standing()
            room = cheapest_room(session, laws, losers, job, Effort()) if losers.jobs else None
            if room is None:
                continue
            rested = (
                cut.job for cut in room.cuts if cut.evicts or cut.cause is EvictionCause.SHARED
            )
            spared_s = [one.started_s + policy.min_runtime_s for one in rested]
            from_s = max(asks_s, *spared_s) if spared_s else asks_s
            room_at_s = from_s + room.fit.start_s - session.now_s
            if planned is None or room_at_s < planned.start_s:
                return _in_numbers(room) | {"asks_at_s": from_s, "room_at_s": room_at_s}
        return None

    def _is_coming(self, job: JobSpec, planned: Fit) -> bool:
        """Return whether the job is promised room, and that of jobs told to go will do."""
        if not (job.promised_s and self._told_s):
            return False
        return min(self._told_s) <= planned.start_s <= max(self._told_s)

    def _room(self, job: JobSpec, planned: Fit | None) -> Room | None:
        """Return room that could be made for a job, so that it starts before it would anyway."""
        session = self._session
        if planned and planned.start_s <= session.notice_s:
            return None
        key = (session.kind(job), job.tenant, job.priority, job.preemptible)
        if (
            job.time_limit_s >= self._hopeless.get(key, math.inf)
            or self._failed.total() >= MOST_LOOKS
            or self._is_spent(job.tenant)
            or not allows_any(session.policy)
        ):
            return None
        room = self._search(job)
        if room is None:
            self._hopeless[key] = job.time_limit_s
        elif planned is None or room.fit.start_s < planned.start_s:
            return room
        return None

    def _is_spent(self, tenant: str) -> bool:
        """Return whether a tenant's searches took their share in vain."""
        return self._failed[tenant] >= LEAST_SEARCHES and self._spent[tenant] >= self._share

    def _search(self, job: JobSpec) -> Room | None:
        """Return the cheapest room; count what was in vain."""
        laws, losers = self._standing()
        if not losers.jobs:
            return None
        before = self._effort.steps
        room = cheapest_room(self._session, laws, losers, job, self._effort)
        spent = self._effort.steps - before
        if room is None and spent:
            self._failed[job.tenant] += 1
            self._spent[job.tenant] += spent
        return room

    def _make(self, job: JobSpec, room: Room) -> None:
        """Decide that room is made."""
        laws, losers = self._standing()
        for cut in room.cuts:
            uid = cut.job.spec.uid
            if cut.evicts:
                evidence = _evidence(cut, laws, self._session, job)
                self.preempts.append(Preempt(uid, job.uid, cut.cause, evidence))
            else:
                kept = without(cut.job.replicas, cut.lost)
                self.resizes.append(Resize(uid, kept, job.uid, cut.cause))
            losers.leave_alone(uid)
            self._session.let_go(cut.job, cut.lost)
        for cut in room.cuts:
            hold = self._session.held.hold_of(cut.job, cut.lost)
            laws.book(hold.tenant, hold.charges, -1)
        self.book(job.tenant, self._charges(job, room.fit))
        self._rooms += 1
        self._hopeless.clear()  # who is evicted whole may leave more room than is needed

    def _charges(self, job: JobSpec, fit: Fit) -> tuple[Charge, ...]:
        return self._session.charges(job, fit.flavor, fit.replicas)

    def _standing(self) -> tuple[Laws, Losers]:
        """Return the laws as they stand now, and who may lose."""
        if self._known is None:
            laws = Laws(self._session.tree, self._session.snapshot.tenants)
            for hold in self._stays:
                laws.book(hold.tenant, hold.charges)
            self._known = (laws, losers_of(self._session))
        laws, losers = self._known
        for tenant, charges in self._booked:
            laws.book(tenant, charges)
        self._booked.clear()
        return laws, losers


def asks_from_s(job: JobSpec, policy: PreemptionPolicy) -> float:
    """Return from when on a job may ask that somebody is evicted for it, epoch seconds."""
    return max(job.submitted_s, job.not_before_s, job.promised_s) + policy.delay_s


def _in_numbers(room: Room) -> dict[str, object]:
    """Return what room costs: jobs evicted and shrunk, of which tenants, and when it is there."""
    tenants: dict[str, int] = {}
    for cut in room.cuts:
        tenants[cut.job.spec.tenant] = tenants.get(cut.job.spec.tenant, 0) + 1
    return {
        "evicted_jobs": sum(cut.evicts for cut in room.cuts),
        "shrunk_jobs": sum(not cut.evicts for cut in room.cuts),
        "from_tenants": dict(sorted(tenants.items())),
        "room_at_s": room.fit.start_s,
    }


def _evidence(cut: Cut, laws: Laws, session: Session, job: JobSpec) -> dict[str, object]:
    """Return the numbers behind the choice of one job: work lost, and what its side may lose."""
    spec, index = cut.job.spec, session.tree.index
    flavor = session.flavor_name(session.held.flavor_held(cut.job)) or CPU_FLAVOR
    spare = laws.spare(index[job.tenant], index[spec.tenant], flavor)
    above = {} if spare == UNLIMITED else {"above_guarantee_milli": spare}
    return {
        "work_lost_s": round(cut.work, 3),
        "ran_s": round(session.now_s - cut.job.started_s, 3),
        "priority": spec.priority,
        "flavor": flavor,
        **above,
    }
