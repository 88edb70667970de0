"""Finds whom to evict: least harm first, tried on a copy, and put back whoever is not needed.

1. Shrinking alone. Where that makes room, nobody is evicted.
2. Evictions, node by node: lower priority first, then less work. Where quota or power is short,
   more losers in order, wherever they run.
3. Sets of losers, the cheapest first, for as long as they are cheaper than what 2 found.
4. Where nothing was found: 2 again with all nodes, if that was with those that offer most; then
   each time from another node, as what is taken first may use up what the laws allow (law 2).

After each, walk back (Kueue): undo what the job fits without, the dearest first, and shrink whom it
need not evict. 3 is exact where `MOST_CANDIDATES` or fewer could give anything and not more than
`MOST_SETS` sets are cheaper; elsewhere the price is that of 2 or better.

Source: Kueue pkg/scheduler/preemption/preemption.go (minimalPreemptions, fillBackWorkloads).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

import numpy as np

from scheduler.core.snapshot import BoolArray, IntArray, JobSpec
from scheduler.decide.feasibility import Free
from scheduler.decide.preemption.bound import Bound
from scheduler.decide.preemption.claim import CAUSES, NOBODY, Claim
from scheduler.decide.preemption.laws import Laws
from scheduler.decide.preemption.losers import Losers, ints
from scheduler.decide.preemption.offers import Offer, Offered, pieces_of, release
from scheduler.decide.preemption.room import Cut, Room
from scheduler.decide.preemption.subsets import by_price
from scheduler.decide.preemption.trial import Trial, rows_of
from scheduler.decide.session import Session
from scheduler.decide.topology import reach, sum_domains

MORE_OFFERS = 64
"""So many offers are tried first beyond twice the replicas that the job needs; then all."""

MORE_FREE_NODES = 512
"""So many nodes that have room already are looked at first beyond the replicas; then all."""

MOST_STEPS = 8192
"""A search on one flavor takes so many steps: a second or two."""

LOOK_NODES = 256
"""To look at so many nodes, or losers, counts as one step."""

MOST_CANDIDATES = 16
"""Sets are made of so many losers."""

MOST_SETS = 1024
"""So many sets are looked at for one job on one flavor."""

MOST_TRIALS = 64
"""So many of them are tried."""

MOST_TRIALS_A_CYCLE = 512
"""So many are tried in a cycle; then what is found node by node must do."""

MOST_BEGINNINGS = 8
"""From so many nodes a search begins that finds nothing."""


@dataclass(slots=True)
class Effort:
    """What one cycle spends on searches.

    Attributes:
        trials: sets that may still be tried.
        steps: what searches took so far (`Trial.steps`, `LOOK_NODES`).
    """

    trials: int = MOST_TRIALS_A_CYCLE
    steps: int = 0


def cheapest_room(
    session: Session, laws: Laws, losers: Losers, job: JobSpec, effort: Effort | None = None
) -> Room | None:
    """Return the cheapest room for a job over the flavors that it may use, None if there is none.

    Neither the session nor the laws are changed.
    """
    best: Room | None = None
    effort = effort or Effort()
    rows = rows_of(session, job)
    for flavor in session.allowed(job):
        if not session.allowance.may_own(job, flavor, *rows):
            continue
        room = _Search(session, laws.copy(), losers, job, flavor).room(effort)
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
        one = self._claim.causes(everyone, np.ones_like(losers.replicas), shrinks=True)
        self._shrinks: BoolArray = (one != NOBODY) & (losers.extra > 0)
        self._evicts: BoolArray = (whole != NOBODY) & (losers.evictable > 0)
        wish = job.topology if job.topology and job.topology.required else None
        self._domains = session.layout.domains(wish.level) if wish else None

    def room(self, effort: Effort) -> Room | None:
        """Return the room that was found, None if there is none."""
        may = self._shrinks | self._evicts
        self._best: Room | None = None
        effort.steps += 1 + (len(may) + self._session.layout.nodes) // LOOK_NODES
        if may.any() and self._look(may):
            for all_nodes in (False, True):
                if self._best is None and (not all_nodes or self._is_cut):
                    trial = self._trial(all_nodes=all_nodes)
                    self._search(trial, effort)
                    effort.steps += trial.steps + len(trial.place) // LOOK_NODES
        return self._best

    def _search(self, trial: Trial, effort: Effort) -> None:
        """Shrink, evict, try sets, and begin elsewhere, until room is found."""
        for evicts in (np.zeros_like(self._evicts), self._evicts):
            self._may_evict = evicts
            if self._best is None and (evicts | self._shrinks).any():
                self._try(trial, self._offers)
                self._try_sets(trial, effort)
        for k in range(1, min(len(self._offers), MOST_BEGINNINGS)):
            if self._best is None and self._is_refused and not self._is_cut:
                self._try(trial, [*self._offers[k:], *self._offers[:k]])

    def _try(self, trial: Trial, offered: Sequence[Offer]) -> None:
        """Take what is offered, in order, until the job fits or it takes too long."""
        self._is_refused = False
        self._kept: set[int] = set()
        for _ in self._taken(trial, offered):
            if trial.steps > MOST_STEPS:
                break
        else:
            if trial.fits():
                self._keep(trial)
        trial.undo()

    def _keep(self, trial: Trial) -> None:
        """Note what was taken, less what is not needed, if it is cheaper than what is known."""
        self._walk_back(trial)
        fit = trial.fit() if trial.given else None
        room = Room(fit, self._cuts(trial)) if fit else None
        if room and (self._best is None or room.price < self._best.price):
            self._best = room

    def _try_sets(self, trial: Trial, effort: Effort) -> None:
        """Try sets of losers, the cheapest first, while they are cheaper than what is known."""
        who, bound = self._candidates(trial)
        levels, works = self._losers.priority[who].tolist(), self._losers.lost[who].tolist()
        barred: list[set[int]] = []
        left = MOST_TRIALS
        for some in by_price(levels, works, most=MOST_SETS):
            price = max(levels[i] for i in some), fsum(works[i] for i in some)
            if self._best and price >= self._best.price[1:3]:
                return
            chosen = [who[i] for i in some]
            if not bound.allows(chosen) or any(one.issubset(chosen) for one in barred):
                continue
            left, effort.trials = left - 1, effort.trials - 1
            if min(left, effort.trials) < 0:
                return
            if self._try_set(trial, chosen, barred):
                return

    def _try_set(self, trial: Trial, chosen: Sequence[int], barred: list[set[int]]) -> bool:
        """Take all that some losers may give; return whether the job fits.

        Args:
            trial: on which nothing is taken.
            chosen: the losers.
            barred: sets that can't all give anything; what is found here is added.
        """
        homes = {place.node for i in chosen for place in self._losers.jobs[i].replicas}
        evicted = [i for i in chosen if self._may_evict[i]]
        for home in sorted(homes & trial.place.keys()) or [-1]:
            for n, loser in enumerate(evicted):
                if not trial.evict(loser) and not self._shrinks[loser]:
                    barred.append(set(evicted[: n + 1]))
                    trial.undo()
                    return False
            self._shrink_from(trial, [i for i in chosen if i not in trial.given], home)
            fits = trial.fits()
            if fits:
                self._keep(trial)
            trial.undo()
            if fits or len(evicted) == len(chosen):
                return fits
        return False

    def _shrink_from(self, trial: Trial, shrunk: Sequence[int], home: int) -> None:
        """Shrink some losers until the job fits: on one node first, then wherever they are."""
        for loser, replica in self._replicas_of(shrunk, lambda node: node == home):
            if trial.has_room():
                break
            trial.shrink(loser, replica)
        for loser, replica in self._replicas_of(shrunk, lambda _: True):
            if trial.fits():
                break
            trial.shrink(loser, replica)

    def _replicas_of(
        self, some: Sequence[int], at: Callable[[int], bool]
    ) -> Iterator[tuple[int, int]]:
        """Give (loser, index) of the replicas on certain nodes of those who may be shrunk."""
        for loser in some:
            for replica, place in enumerate(self._losers.jobs[loser].replicas):
                if self._shrinks[loser] and at(place.node):
                    yield loser, replica

    def _candidates(self, trial: Trial) -> tuple[list[int], Bound]:
        """Return whom sets are made of, in order: who is where offers are, then whoever helps."""
        may = self._may_evict | self._shrinks
        found: dict[int, None] = {}
        for offer in self._offers:
            if len(found) >= MOST_CANDIDATES:
                break
            ends = [np.searchsorted(self._pieces.node, offer.node, side) for side in _SIDES]
            found |= dict.fromkeys(self._pieces.loser[slice(*ends)].tolist())
        found |= dict.fromkeys(i for i in self._in_order() if len(found) < MOST_CANDIDATES)
        who = {i: self._losers.jobs[i] for i in found if may[i]}
        bound = Bound(trial, self._job, who)
        return sorted([i for i in who if bound.helps(i)][:MOST_CANDIDATES]), bound

    def _look(self, may: BoolArray) -> bool:
        """Look at what everybody could give; return whether that would be enough."""
        session, job = self._session, self._job
        demand = session.filter(session.demand(job, self._flavor))
        row = session.profile.row(session.profile.until(session.notice_s))
        is_open = np.ones(session.layout.nodes, dtype=np.bool_)
        is_open[self._closed()] = False
        self._pieces = pieces_of(self._losers, may, self._shrinks, demand.node_ok & is_open)
        most = Free(*(table.copy() for table in row))
        cells = (self._pieces.of_replica, self._pieces.of_device)
        release(most, self._losers, *(np.flatnonzero(piece >= 0) for piece in cells))
        if reach(session.layout, demand.count(most) * is_open, job.topology) < job.replicas_min:
            return False
        self._ready = demand.count(row) * is_open
        self._offered = Offered(
            self._losers,
            self._pieces,
            self._shrinks,
            Free(*(table.copy() for table in row)),
            demand,
            ready=self._ready,
            replicas=job.replicas_min,
            domains=self._domains,
        )
        return True

    def _trial(self, *, all_nodes: bool) -> Trial:
        """Return the trial on the nodes that matter: all, or those that offer or have most."""
        wanted = self._job.replicas_min
        ready, most = self._ready_nodes(), 2 * wanted + MORE_OFFERS
        some = wanted + MORE_FREE_NODES
        self._is_cut = not all_nodes and (len(ready) > some or len(self._offered) > most)
        if not all_nodes:
            ready = ready[:some]
        self._offers = self._offered.first(len(self._offered) if all_nodes else most)
        return Trial(
            self._session,
            self._job,
            self._flavor,
            claim=self._claim,
            losers=self._losers,
            nodes=np.union1d(ready, ints([offer.node for offer in self._offers])),
        )

    def _ready_nodes(self) -> IntArray:
        """Return the nodes with room already, those first whose domain has room for most."""
        nodes, domains = np.flatnonzero(self._ready), self._domains
        near = self._ready[nodes]
        if domains is not None:
            near = np.where(domains >= 0, sum_domains(self._ready, domains)[domains], 0)[nodes]
        return nodes[np.lexsort((nodes, -near))]

    def _closed(self) -> IntArray:
        """Return the nodes that are kept for others while the job would run."""
        session, start_s = self._session, self._session.notice_s
        return session.closed(session.kind(self._job), start_s, start_s + self._job.time_limit_s)

    def _taken(self, trial: Trial, offered: Sequence[Offer]) -> Iterator[int]:
        """Take from one loser after the other until the job fits; give each that was asked."""
        for offer in offered:
            if trial.has_room():
                break
            yield from self._take_on_node(trial, offer)
        for loser in self._in_order():
            missing = trial.missing()
            if not missing or not trial.has_room():
                return
            if any(trial.relief(loser).get(name) for name in missing):
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
        if self._is_whole(trial, loser):
            return
        for replica in replicas:
            if enough():
                return
            if self._shrinks[loser]:
                self._is_refused |= not trial.shrink(loser, replica)
                yield loser
        if self._may_evict[loser] and loser not in self._kept and not enough():
            if not trial.evict(loser):
                self._is_refused = True
                self._kept.add(loser)  # the laws allow less and less as more is taken
            yield loser

    def _in_order(self) -> list[int]:
        may = self._shrinks | self._may_evict
        order = np.lexsort((np.arange(len(may)), ~self._shrinks))
        return [i for i in order.tolist() if may[i]]

    def _walk_back(self, trial: Trial) -> None:
        """Undo what the job fits without: whole jobs first, the last in order first."""
        for loser in sorted(trial.given, reverse=True, key=lambda i: (self._is_whole(trial, i), i)):
            if self._is_whole(trial, loser):
                given = list(trial.given[loser])
                trial.take_back(loser, given)
                if not trial.fits() and not self._shrinks_enough(trial, loser):
                    trial.give_again(loser, given)
        for loser in sorted(trial.given, reverse=True):
            for replica in [] if self._is_whole(trial, loser) else list(trial.given[loser]):
                trial.take_back(loser, [replica])
                if not trial.fits():
                    trial.give_again(loser, [replica])

    def _shrinks_enough(self, trial: Trial, loser: int) -> bool:
        """Shrink a loser until the job fits; return whether it does, and undo it if not."""
        cause = trial.causes[loser]
        for replica in range(int(self._losers.replicas[loser])) if self._shrinks[loser] else ():
            if trial.shrink(loser, replica) and trial.fits():
                return True
        if loser in trial.given:
            trial.take_back(loser, list(trial.given[loser]))
        trial.causes[loser] = cause
        return False

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


_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
