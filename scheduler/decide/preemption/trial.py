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
from scheduler.decide.preemption.claim import NOBODY, Claim
from scheduler.decide.preemption.losers import Losers
from scheduler.decide.quota import Charge, QuotaLedger
from scheduler.decide.session import Fit, Session
from scheduler.decide.topology import reach


class Trial:
    """One job on one flavor, and what others would have to give for it.

    Attributes:
        given: loser -> indices of the replicas that it gives; all of them = it is evicted.
        causes: loser -> key of `claim.CAUSES`, by which law it gave last.

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
        profile = session.profile
        self._first = profile.until(session.notice_s)
        self._last = max(self._first + 1, profile.until(session.notice_s + job.time_limit_s))
        self._block = profile.block(self._first, self._last, nodes)
        self._place = {node: i for i, node in enumerate(nodes.tolist())}
        self._ledger = QuotaLedger(session.tree)
        self._ledger.usage = profile.ledger.usage[profile.quota_rows(self._first, self._last)]
        self._held_uw = profile.powers_uw(self._first, self._last)
        self._floor = Free(*(table.min(axis=0) for table in self._block))
        self._wanted = session.filter(session.demand(job, flavor))
        self._counts = np.zeros(session.layout.nodes, dtype=np.int64)
        self._counts[nodes] = self._wanted.count(self._floor, nodes)

    # -- what it needs ------------------------------------------------------------------------

    def has_room(self) -> bool:
        """Return whether all its replicas find a place."""
        reached = reach(self._session.layout, self._counts, self._job.topology)
        return reached >= self._job.replicas_min

    def short_of(self) -> list[str]:
        """Return the flavors of which the tenant's quota does not suffice."""
        wanted = self._session.charges(self._job, self._flavor, self._job.replicas_min)
        return [
            charge.flavor
            for charge in wanted
            if self._ledger.available(self._job.tenant, charge.flavor) < charge.amount
        ]

    def fits(self) -> bool:
        """Return whether places, quota and power suffice."""
        return self.has_room() and not self.short_of() and self._has_power()

    def _has_power(self) -> bool:
        power = self._session.power
        left = power.left_uw(int(self._held_uw.max()))
        return left is None or left >= power.needs_uw(
            self._job, self._flavor, self._job.replicas_min
        )

    def fit(self) -> Fit | None:
        """Return how the job fits, as the session itself would find it."""
        if self.short_of() or not self._has_power():
            return None
        return self._session.fit_in(self._job, self._flavor, self._first, self._nodes, self._floor)

    # -- what others give ---------------------------------------------------------------------

    def shrink(self, loser: int, replica: int) -> bool:
        """Let a loser give one replica; return whether the laws and its least size allow it."""
        given = self.given.get(loser, [])
        if replica in given or len(given) >= int(self._losers.extra[loser]):
            return False
        return self._give(loser, [replica])

    def evict(self, loser: int) -> bool:
        """Let a loser give all that it still has; return whether the laws allow it."""
        given = self.given.get(loser, [])
        rest = [r for r in range(int(self._losers.replicas[loser])) if r not in given]
        return bool(rest and self._losers.evictable[loser]) and self._give(loser, rest)

    def _give(self, loser: int, replicas: list[int]) -> bool:
        cause = int(self._claim.causes(np.array([loser]), np.array([len(replicas)]))[0])
        if cause == NOBODY:
            return False
        self.causes[loser] = cause
        self._move(loser, replicas, 1)
        self.given.setdefault(loser, []).extend(replicas)
        return True

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
        job, session = self._losers.jobs[loser], self._session
        end_s = by_limit(session.now_s)(job.spec, job.started_s)
        rows = slice(0, session.profile.released_row(end_s) - self._first)
        hold = session.held.hold_of(job, [job.replicas[r] for r in replicas])
        for flavor, amount in hold.charges:
            self._ledger.add(hold.tenant, Charge(flavor, -sign * amount), rows)
            if flavor in session.flavor_of:
                each_mw = session.power.board_mw[session.flavor_of[flavor]]
                self._held_uw[rows] -= sign * amount * each_mw
        for place in hold.replicas:
            if place.node in self._place:
                self._free(hold, place, rows, sign)
        touched = {self._place[p.node] for p in hold.replicas if p.node in self._place}
        self._count_again(np.array(sorted(touched), dtype=np.int64))
        self._claim.book(loser, len(replicas), sign)

    def _free(self, hold: Hold, place: ReplicaPlacement, rows: slice, sign: int) -> None:
        at = self._place[place.node]
        self._block.cpu[rows, at] += sign * hold.shape.cpu_milli
        self._block.memory[rows, at] += sign * hold.shape.memory_mib
        columns = self._session.layout.column[list(place.devices)]
        self._block.milli[rows, at, columns] += sign * place.gpu_milli
        self._block.device_memory[rows, at, columns] += sign * place.gpu_memory_mib
        if hold.interference != ANYBODY:
            against = self._session.layout.foes.against[hold.interference]
            self._block.foes[rows, at, columns] += sign * against

    def _count_again(self, at: IntArray) -> None:
        for floor, table in zip(self._floor, self._block, strict=True):
            floor[at] = table[:, at].min(axis=0)
        part = Free(*(table[at] for table in self._floor))
        self._counts[self._nodes[at]] = self._wanted.count(part, self._nodes[at])
