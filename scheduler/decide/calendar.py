"""Which nodes are closed to a job while it would run: reservations of others, and maintenance.

A job is placed on a node only if it ends before the node is reserved, or begins when that is over,
by its time limit. Who runs there already is left alone: its time limit was known when it started,
and nobody is evicted for a reservation.

Source: Slurm reservations.shtml (advanced reservations, MAINT; jobs are scheduled around them by
their time limits).
"""

from collections.abc import Sequence

import numpy as np

from scheduler.core.snapshot import IntArray, JobSpec, Reservation
from scheduler.decide.quota import QuotaTree

NOBODY = np.zeros(0, dtype=np.int64)
NOBODY.setflags(write=False)


class Calendar:
    """The reservations of a snapshot that are not over.

    Attributes:
        begins_s, ends_s: when one begins, and when one ends, after now, ascending.

    Args:
        reservations: any order.
        tree: of quotas; what is reserved for a tenant is so for all below it.
        now_s: epoch seconds.
    """

    def __init__(
        self, reservations: Sequence[Reservation], tree: QuotaTree, *, now_s: float
    ) -> None:
        self._tree = tree
        self._all = [one for one in reservations if one.end_s > now_s]
        self.begins_s = sorted({one.start_s for one in self._all if one.start_s > now_s})
        self.ends_s = sorted({one.end_s for one in self._all})
        self._closed: dict[tuple[frozenset[int], tuple[int, ...]], IntArray] = {}
        self._kept: dict[tuple[int, ...], IntArray] = {}

    def open_to(self, job: JobSpec) -> frozenset[int]:
        """Return which reservations the job may use, as positions known to this calendar."""
        if not self._all:
            return frozenset()
        n = self._tree.index.get(job.tenant, -1)
        names = {self._tree.slugs[k] for k in self._tree.path(n)} if n >= 0 else set()
        return frozenset(
            i for i, one in enumerate(self._all) if job.uid in one.jobs or names & one.tenants
        )

    def in_the_way(
        self, mine: frozenset[int], begin_s: float, end_s: float
    ) -> Sequence[Reservation]:
        """Return the reservations that a run in [begin_s, end_s) would get into, by start and id.

        With both times equal, those that hold at that moment.
        """
        found = [self._all[i] for i in self._met(mine, begin_s, end_s)]
        return sorted(found, key=lambda one: (one.start_s, one.id))

    def _met(self, mine: frozenset[int], begin_s: float, end_s: float) -> tuple[int, ...]:
        return tuple(
            i for i, one in enumerate(self._all) if i not in mine and _meets(one, begin_s, end_s)
        )

    def closed(self, mine: frozenset[int], begin_s: float, end_s: float) -> IntArray:
        """Return the nodes that a run in [begin_s, end_s) must not use, ascending.

        Args:
            mine: what `open_to` said of the job.
            begin_s: start of the run, epoch seconds.
            end_s: end of the run by its time limit; before `begin_s` = whatever is reserved.
        """
        if not self._all or end_s < begin_s:
            return NOBODY
        met = self._met(mine, begin_s, end_s)
        key = (mine, met)
        found = self._closed.get(key)
        if found is None:
            found = self._closed[key] = self._nodes(met)
        return found

    def kept(self, mine: frozenset[int], begin_s: float, end_s: float) -> IntArray:
        """Return the nodes that are reserved for a job while it would run, ascending.

        Who may use them takes them before others: those are for everybody.

        Args:
            mine: what `open_to` said of the job.
            begin_s: start of the run, epoch seconds.
            end_s: its end, as for `closed`.
        """
        if not mine or end_s < begin_s:
            return NOBODY
        met = tuple(i for i in sorted(mine) if _meets(self._all[i], begin_s, end_s))
        found = self._kept.get(met)
        if found is None:
            found = self._kept[met] = self._nodes(met)
        return found

    def _nodes(self, some: Sequence[int]) -> IntArray:
        nodes = sorted({node for i in some for node in self._all[i].nodes})
        return np.array(nodes, dtype=np.int64)


def _meets(one: Reservation, begin_s: float, end_s: float) -> bool:
    return one.end_s > begin_s and (one.start_s < end_s or one.start_s <= begin_s)
