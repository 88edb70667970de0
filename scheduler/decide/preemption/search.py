"""Finds whom to evict: least harm first, tried on a copy, and put back whoever is not needed.

1. Offers in order: jobs that only shrink before any that is evicted, lower priority, less work.
2. Where quota is short, more losers in order, wherever they run.
3. Walk back (Kueue): undo what the job fits without, the dearest first.

Source: Kueue pkg/scheduler/preemption/preemption.go (minimalPreemptions, fillBackWorkloads).
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from scheduler.core.plan import EvictionCause
from scheduler.core.snapshot import BoolArray, IntArray, JobSpec, ReplicaPlacement, RunningJob
from scheduler.decide.feasibility import Free
from scheduler.decide.preemption.claim import CAUSES, NOBODY, Claim
from scheduler.decide.preemption.laws import Laws
from scheduler.decide.preemption.losers import Losers
from scheduler.decide.preemption.offers import Offer, offers, pieces_of, release
from scheduler.decide.preemption.trial import Trial
from scheduler.decide.session import Fit, Session

MORE_OFFERS = 64
"""So many offers are tried beyond twice the replicas that the job needs."""

MOST_FREE_NODES = 512
"""So many nodes that have room already are looked at."""

MOST_CUTS = 256
"""More losers than this are not taken from for one job."""


class Cut(NamedTuple):
    """What one job gives.

    Attributes:
        job: that gives.
        lost: the replicas that it loses; all of them = it is evicted.
        cause: by which law.
        work: device-seconds (core-seconds) that it loses.
    """

    job: RunningJob
    lost: tuple[ReplicaPlacement, ...]
    cause: EvictionCause
    work: float

    @property
    def evicts(self) -> bool:
        """Return whether nothing is left to the job."""
        return len(self.lost) == len(self.job.replicas)


class Room(NamedTuple):
    """Room for one job, and at what price.

    Attributes:
        fit: where and when it fits.
        cuts: who gives it, in the order of the losers.
    """

    fit: Fit
    cuts: tuple[Cut, ...]

    @property
    def price(self) -> tuple[bool, int, float]:
        """Return what is compared: is anybody evicted, of which priority, how much work."""
        evicted = any(cut.evicts for cut in self.cuts)
        highest = max(cut.job.spec.priority for cut in self.cuts)
        return evicted, highest, sum(cut.work for cut in self.cuts)


def cheapest_room(session: Session, laws: Laws, losers: Losers, job: JobSpec) -> Room | None:
    """Return the cheapest room for a job over the flavors that it may use, None if there is none.

    Neither the session nor the laws are changed.
    """
    best: Room | None = None
    for flavor in session.allowed(job):
        room = _Search(session, laws.copy(), losers, job, flavor).room()
        if room and (best is None or room.price < best.price):
            best = room
    return best


class _Search:
    """The search for one job on one flavor."""

    def __init__(
        self, session: Session, laws: Laws, losers: Losers, job: JobSpec, flavor: int
    ) -> None:
        self._session, self._losers, self._job, self._flavor = session, losers, job, flavor
        self._claim = Claim(
            laws,
            losers,
            session.policy.preemption,
            job,
            taker=session.tree.index[job.tenant],
            charges=session.charges(job, flavor, job.replicas_min),
        )
        everyone = np.arange(len(losers.jobs))
        whole = self._claim.causes(everyone, losers.replicas)
        one = self._claim.causes(everyone, np.ones_like(losers.replicas))
        self._shrinks: BoolArray = (one != NOBODY) & (losers.extra > 0)
        self._evicts: BoolArray = (whole != NOBODY) & (losers.evictable > 0)

    def room(self) -> Room | None:
        """Return the room that was found, None if there is none."""
        may = self._shrinks | self._evicts
        if not may.any():
            return None
        trial = self._trial(may)
        if trial is None:
            return None
        cuts = sum(1 for _ in islice(self._taken(trial), MOST_CUTS + 1))
        if cuts > MOST_CUTS or not trial.fits() or not trial.given:
            return None
        self._walk_back(trial)
        fit = trial.fit()
        return Room(fit, self._cuts(trial)) if fit and trial.given else None

    def _trial(self, may: BoolArray) -> Trial | None:
        """Return the trial on the nodes that matter; None where all who may give are too few."""
        session, wanted = self._session, self._job.replicas_min
        demand = session.filter(session.demand(self._job, self._flavor))
        row = session.profile.row(session.profile.until(session.notice_s))
        pieces = pieces_of(self._losers, may, self._shrinks, demand.node_ok)
        most = Free(*(table.copy() for table in row))
        release(most, self._losers, pieces, np.ones(len(pieces.loser), dtype=np.bool_))
        if demand.count(most).sum() < wanted:
            return None
        free = Free(*(table.copy() for table in row))
        ready = np.flatnonzero(demand.count(free))[:MOST_FREE_NODES]
        self._offers = offers(
            self._losers, pieces, self._shrinks, free, demand, most=2 * wanted + MORE_OFFERS
        )
        nodes = np.union1d(ready, _ints([offer.node for offer in self._offers]))
        nodes = np.setdiff1d(nodes, self._closed())
        return Trial(
            session,
            self._job,
            self._flavor,
            claim=self._claim,
            losers=self._losers,
            nodes=nodes,
        )

    def _closed(self) -> IntArray:
        """Return the nodes that are kept for others while the job would run."""
        session, start_s = self._session, self._session.notice_s
        mine = session.kind(self._job).mine
        return session.calendar.closed(mine, start_s, start_s + self._job.time_limit_s)

    def _taken(self, trial: Trial) -> Iterator[int]:
        """Take from one loser after the other until the job fits; give each."""
        for offer in self._offers:
            if trial.has_room():
                break
            yield from self._take_on_node(trial, offer)
        for loser in self._in_order():
            short = trial.short_of()
            if not short or not trial.has_room():
                return
            if self._charged(loser, short):
                everything = range(int(self._losers.replicas[loser]))
                yield from self._take(trial, loser, everything, trial.fits)

    def _take_on_node(self, trial: Trial, offer: Offer) -> Iterator[int]:
        for loser in offer.losers:
            replicas = self._losers.jobs[loser].replicas
            here = [r for r, place in enumerate(replicas) if place.node == offer.node]
            yield from self._take(trial, loser, here, trial.has_room)

    def _take(
        self, trial: Trial, loser: int, replicas: Sequence[int], enough: Callable[[], bool]
    ) -> Iterator[int]:
        """Shrink a loser by some replicas; evict it where that is not enough or not possible."""
        for replica in replicas:
            if enough():
                return
            if self._shrinks[loser] and trial.shrink(loser, replica):
                yield loser
        if self._evicts[loser] and not enough() and trial.evict(loser):
            yield loser

    def _in_order(self) -> list[int]:
        order = np.lexsort((np.arange(len(self._shrinks)), ~self._shrinks))
        return [i for i in order.tolist() if self._shrinks[i] or self._evicts[i]]

    def _charged(self, loser: int, flavors: Sequence[str]) -> bool:
        job = self._losers.jobs[loser]
        charges = self._session.hold_of(job).charges
        return any(charge.flavor in flavors and charge.amount > 0 for charge in charges)

    def _walk_back(self, trial: Trial) -> None:
        """Undo what the job fits without: whole jobs first, the last in order first."""
        for loser in sorted(trial.given, reverse=True, key=lambda i: (self._is_whole(trial, i), i)):
            if self._is_whole(trial, loser):
                given = list(trial.given[loser])
                trial.take_back(loser, given)
                if not trial.fits():
                    trial.evict(loser)
        for loser in sorted(trial.given, reverse=True):
            for replica in [] if self._is_whole(trial, loser) else list(trial.given[loser]):
                trial.take_back(loser, [replica])
                if not trial.fits():
                    trial.shrink(loser, replica)

    def _is_whole(self, trial: Trial, loser: int) -> bool:
        return len(trial.given.get(loser, ())) == int(self._losers.replicas[loser])

    def _cuts(self, trial: Trial) -> tuple[Cut, ...]:
        return tuple(
            Cut(
                job := self._losers.jobs[loser],
                tuple(job.replicas[r] for r in sorted(given)),
                CAUSES[trial.causes[loser]],
                float(self._losers.lost[loser]),
            )
            for loser, given in sorted(trial.given.items())
        )


def _ints(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
