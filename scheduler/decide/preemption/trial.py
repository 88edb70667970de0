"""A copy of the profile on which evictions are tried before anybody is evicted.

The window is that in which the beneficiary would run: from the moment at which those told to go are
gone until its time limit, with everything in it that is reserved for others. Nothing here changes
the session.
"""

from collections.abc import Sequence

import numpy as np

from scheduler.core.snapshot import IntArray, JobSpec, ReplicaPlacement
from scheduler.decide.backfill import Hold
from scheduler.decide.feasibility import Free
from scheduler.decide.foes import ANYBODY
from scheduler.decide.holdings import by_limit
from scheduler.decide.later import fit_in
from scheduler.decide.placement import Fit
from scheduler.decide.preemption.claim import NOBODY, Claim
from scheduler.decide.preemption.losers import Losers
from scheduler.decide.quota import Charge, QuotaLedger
from scheduler.decide.session import Session
from scheduler.decide.topology import reach

POWER = ""
"""Stands beside the names of flavors for the power cap; no flavor has that name."""


def rows_of(session: Session, job: JobSpec) -> tuple[int, int]:
    """Return the rows first..last-1 of the window in which a job would run."""
    profile, start_s = session.profile, session.notice_s
    first = profile.until(start_s)
    return first, max(first + 1, profile.until(start_s + job.time_limit_s))


class Trial:
    """One job on one flavor, and what others would have to give for it.

    Attributes:
        given: loser -> indices of the replicas that it gives; all of them = it is evicted.
        causes: loser -> key of `claim.CAUSES`, by which law it gave last.
        place: node -> its position among those that are looked at.
        floor: what is free on those for all of the window.
        counts: (those,) replicas that each has room for.
        steps: how often the laws were asked or a profile was changed, which is what takes time.

    Args:
        session: the state at the job's turn.
        job: that waits.
        flavor: index of the flavor that it would run on.
        claim: what it may take; books what is taken.
        losers: who may lose.
        nodes: that are looked at, ascending.
    """

    def __init__(
        self,
        session: Session,
        job: JobSpec,
        flavor: int,
        *,
        claim: Claim,
        losers: Losers,
        nodes: IntArray,
    ) -> None:
        self._session, self._job, self._flavor = session, job, flavor
        self._claim, self._losers, self._nodes = claim, losers, nodes
        self.given: dict[int, list[int]] = {}
        self.causes: dict[int, int] = {}
        self.steps = 0
        profile = session.profile
        self._first, last = rows_of(session, job)
        self._block = profile.block(self._first, last, nodes)
        self.place = {node: i for i, node in enumerate(nodes.tolist())}
        self._ledger = QuotaLedger(session.tree)
        self._ledger.usage = profile.ledger.usage[profile.quota_rows(self._first, last)]
        self._held_uw = profile.powers_uw(self._first, last)
        self.floor = Free(*(table.min(axis=0) for table in self._block))
        self._wanted = session.filter(session.demand(job, flavor))
        self._counts = np.zeros(session.layout.nodes, dtype=np.int64)
        self._counts[nodes] = self._wanted.count(self.floor, nodes)
        charges = session.charges(job, flavor, job.replicas_min)
        self._wants = [charge for charge in charges if charge.flavor in session.tree.flavors]

    # -- what it needs ------------------------------------------------------------------------

    def has_room(self) -> bool:
        """Return whether all its replicas find a place."""
        reached = reach(self._session.layout, self._counts, self._job.topology)
        return reached >= self._job.replicas_min

    @property
    def counts(self) -> IntArray:
        return self._counts[self._nodes]

    def missing(self) -> dict[str, int]:
        """Return flavor -> what the tenant's quota lacks of it; `POWER` -> microwatts."""
        lacks = {
            charge.flavor: charge.amount - self._ledger.available(self._job.tenant, charge.flavor)
            for charge in self._wants
        }
        power = self._session.power
        left = power.left_uw(int(self._held_uw.max()))
        if left is not None:
            lacks[POWER] = power.needs_uw(self._job, self._flavor, self._job.replicas_min) - left
        return {name: amount for name, amount in lacks.items() if amount > 0}

    def relief(self, loser: int) -> dict[str, int]:
        """Return what a loser gives back if it is evicted, in the terms of `missing`."""
        session = self._session
        charges = session.hold_of(self._losers.jobs[loser]).charges
        return {POWER: self._power_uw(charges), **dict(charges)}

    def _power_uw(self, charges: Sequence[Charge]) -> int:
        board_mw, flavor_of = self._session.power.board_mw, self._session.flavor_of
        return sum(n * board_mw[flavor_of[name]] for name, n in charges if name in flavor_of)

    def fits(self) -> bool:
        """Return whether places, quota and power suffice."""
        return self.has_room() and not self.missing()

    def fit(self) -> Fit | None:
        """Return how the job fits, as the session itself would find it."""
        if self.missing():
            return None
        job, flavor, first = self._job, self._flavor, self._first
        return fit_in(self._session, job, flavor, first, nodes=self._nodes, part=self.floor)

    # -- what others give ---------------------------------------------------------------------

    def shrink(self, loser: int, replica: int) -> bool:
        """Let a loser give one replica; return whether the laws and its least size allow it."""
        given = self.given.get(loser, [])
        if replica in given or len(given) >= int(self._losers.extra[loser]):
            return False
        return self._give(loser, [replica], shrinks=True)

    def evict(self, loser: int) -> bool:
        """Let a loser give all that it still has; return whether the laws allow it."""
        given = self.given.get(loser, [])
        rest = [r for r in range(int(self._losers.replicas[loser])) if r not in given]
        return bool(rest and self._losers.evictable[loser]) and self._give(loser, rest)

    def _give(self, loser: int, replicas: list[int], *, shrinks: bool = False) -> bool:
        self.steps += 1
        who, count = np.array([loser]), np.array([len(replicas)])
        cause = int(self._claim.causes(who, count, shrinks=shrinks)[0])
        if cause == NOBODY:
            return False
        self.causes[loser] = cause
        self.give_again(loser, replicas)
        return True

    def give_again(self, loser: int, replicas: Sequence[int]) -> None:
        """Have a loser give what was just taken back; the laws allowed it before."""
        self._move(loser, list(replicas), 1)
        self.given.setdefault(loser, []).extend(replicas)

    def undo(self) -> None:
        """Undo what all gave."""
        for loser in sorted(self.given):
            self.take_back(loser, list(self.given[loser]))

    def take_back(self, loser: int, replicas: Sequence[int]) -> None:
        """Undo what a loser gave."""
        self._move(loser, list(replicas), -1)
        left = [r for r in self.given[loser] if r not in replicas]
        if left:
            self.given[loser] = left
        else:
            del self.given[loser]

    def _move(self, loser: int, replicas: list[int], sign: int) -> None:
        """Free replicas in the rows in which they would be held; hold them again with -1."""
        self.steps += 1
        job, session = self._losers.jobs[loser], self._session
        end_s = by_limit(session.now_s)(job.spec, job.started_s)
        rows = slice(0, session.profile.released_row(end_s) - self._first)
        hold = session.held.hold_of(job, [job.replicas[r] for r in replicas])
        for flavor, amount in hold.charges:
            self._ledger.add(hold.tenant, Charge(flavor, -sign * amount), rows)
        self._held_uw[rows] -= sign * self._power_uw(hold.charges)
        for place in hold.replicas:
            if place.node in self.place:
                self._free(hold, place, rows, sign)
        touched = {self.place[p.node] for p in hold.replicas if p.node in self.place}
        self._count_again(np.array(sorted(touched), dtype=np.int64))
        self._claim.book(loser, len(replicas), sign)

    def _free(self, hold: Hold, place: ReplicaPlacement, rows: slice, sign: int) -> None:
        at = self.place[place.node]
        self._block.cpu[rows, at] += sign * hold.shape.cpu_milli
        self._block.memory[rows, at] += sign * hold.shape.memory_mib
        columns = self._session.layout.column[list(place.devices)]
        self._block.milli[rows, at, columns] += sign * place.gpu_milli
        self._block.device_memory[rows, at, columns] += sign * place.gpu_memory_mib
        if hold.interference != ANYBODY:
            against = self._session.layout.foes.against[hold.interference]
            self._block.foes[rows, at, columns] += sign * against

    def _count_again(self, at: IntArray) -> None:
        for floor, table in zip(self.floor, self._block, strict=True):
            floor[at] = table[:, at].min(axis=0)
        part = Free(*(table[at] for table in self.floor))
        self._counts[self._nodes[at]] = self._wanted.count(part, self._nodes[at])
