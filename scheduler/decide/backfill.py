"""The time profile: what is free from now on, row by row, and who has reserved what.

Row 0 is now; every further row begins where a running or planned job ends. A job may start now only
if it fits in *every* row until its own end, so nobody starts in the way of a reservation: that is
conservative backfill, and a reservation's row is the planned start.

Source: Slurm sched/backfill (bf_window, bf_resolution, bf_max_job_test; sched_config).
"""

import bisect
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import IntArray, ReplicaPlacement, RunningJob
from scheduler.decide.feasibility import Free, Layout
from scheduler.decide.quota import Charge, QuotaLedger, QuotaTree

OVERRUN_SLACK_S = 60.0
"""A job past its time limit is expected to end this soon (Slurm's bf_resolution)."""

RUNNING_ROWS = 48
"""Ends of running jobs are merged (rounded up) into at most this many rows."""

SOFT_ROWS = 96
"""Beyond this many rows a new end is rounded up to a row that exists."""

HARD_ROWS = 192
"""There are never more rows than this, however long the time limits grow."""


class Hold(NamedTuple):
    """What one job takes: its tenant's charges and the places of its replicas."""

    tenant: str
    charges: tuple[Charge, ...]
    shape: ReplicaShape
    replicas: tuple[ReplicaPlacement, ...]


class Profile:
    """Free capacity and quota usage over time.

    Logical row k covers [times[k], times[k+1]); `rows[k]` is its place in the arrays, so that a row
    can be inserted by copying one.

    Attributes:
        touched: nodes whose state changed, in order, for whoever keeps counts of them.
        version: changes whenever row 0 does.
        first_reserved_s: start of the earliest reservation; until then nothing is taken later.
    """

    def __init__(
        self,
        layout: Layout,
        free: Free,
        tree: QuotaTree,
        running: Sequence[tuple[float, Hold]],
        *,
        now_s: float,
    ) -> None:
        self.layout = layout
        self.now_s = now_s
        self.times = [now_s]
        self.rows = [0]
        self._tables = Free(*(table[None].copy() for table in free))
        self.ledger = QuotaLedger(tree)
        self.touched: list[int] = []
        self.version = 0
        self.first_reserved_s = float("inf")
        for _, hold in running:
            self._charge(hold, slice(None))
        self._release_all(running)

    def _release_all(self, running: Sequence[tuple[float, Hold]]) -> None:
        ends = _merged_ends([end for end, _ in running])
        for end_s in ends:
            self._insert(len(self.times), end_s)
        for end_s, hold in running:
            later = self.rows[bisect.bisect_left(self.times, end_s) :]
            self._charge(hold, later, sign=-1)
            self._take(hold, later, sign=-1)

    # -- rows ---------------------------------------------------------------------------------

    def until(self, end_s: float) -> int:
        """Return the number of rows that begin before `end_s`; at least 1."""
        return max(1, bisect.bisect_left(self.times, end_s))

    def _insert(self, at: int, time_s: float) -> None:
        """Insert a row that begins at `time_s` as a copy of the row before it."""
        source, target = self.rows[at - 1], len(self.times)
        if target == len(self._tables.cpu):
            self._grow(2 * target)
        for table in self._tables:
            table[target] = table[source]
        self.ledger.usage[target] = self.ledger.usage[source]
        self.times.insert(at, time_s)
        self.rows.insert(at, target)

    def _grow(self, rows: int) -> None:
        grown = []
        for table in self._tables:
            larger = np.zeros((rows, *table.shape[1:]), dtype=np.int64)
            larger[: len(table)] = table
            grown.append(larger)
        self._tables = Free(*grown)
        self.ledger.resize(rows)

    def _row_at(self, end_s: float) -> int:
        """Return the logical row in which something that ends at `end_s` is free again.

        That is one past the last row where rows are used up: then it is never seen to end, which
        keeps the profile bounded and errs on the side of those who wait.
        """
        at, rows = bisect.bisect_left(self.times, end_s), len(self.times)
        most = HARD_ROWS if at == rows else SOFT_ROWS
        known = at < rows and self.times[at] == end_s
        if rows < most and not known:
            self._insert(at, end_s)
        return at

    # -- reading ------------------------------------------------------------------------------

    def row(self, k: int) -> Free:
        """Return the state in logical row k (a view)."""
        return Free(*(table[self.rows[k]] for table in self._tables))

    def floor(self, first: int, last: int, nodes: IntArray | None = None) -> Free:
        """Return what is free in all of the logical rows first..last-1, on all or some nodes."""
        rows = np.array(self.rows[first:last])
        if nodes is None:
            return Free(*(_minimum(table, rows) for table in self._tables))
        at = np.ix_(rows, nodes)
        return Free(*(table[at].min(axis=0) for table in self._tables))

    def quota_rows(self, first: int, last: int) -> list[int]:
        """Return the array rows of a window, for the ledger."""
        return self.rows[first:last]

    # -- writing ------------------------------------------------------------------------------

    def hold(self, hold: Hold, start_s: float, end_s: float) -> None:
        """Take a hold's capacity and quota from `start_s` (a row's time) until `end_s`."""
        last = self._row_at(end_s)
        first = bisect.bisect_left(self.times, start_s)
        rows = self.rows[first:last]
        self._charge(hold, rows)
        self._take(hold, rows)
        self.touched.extend(place.node for place in hold.replicas)
        self.version += first == 0
        if first > 0:
            self.first_reserved_s = min(self.first_reserved_s, start_s)

    def _charge(self, hold: Hold, rows: list[int] | slice, *, sign: int = 1) -> None:
        for charge in hold.charges:
            self.ledger.add(hold.tenant, Charge(charge.flavor, sign * charge.amount), rows)

    def _take(self, hold: Hold, rows: list[int], *, sign: int = 1) -> None:
        tables, index = self._tables, np.array(rows, dtype=np.int64)
        for place in hold.replicas:
            tables.cpu[index, place.node] -= sign * hold.shape.cpu_milli
            tables.memory[index, place.node] -= sign * hold.shape.memory_mib
            if place.devices:
                at = np.ix_(index, np.array([place.node]), self.layout.column[list(place.devices)])
                tables.milli[at] -= sign * place.gpu_milli
                tables.device_memory[at] -= sign * place.gpu_memory_mib


def _minimum(table: IntArray, rows: IntArray) -> IntArray:
    """Return the minimum over some rows without copying them together."""
    least: IntArray = table[rows[0]].copy()
    for row in rows[1:]:
        np.minimum(least, table[row], out=least)
    return least


def _merged_ends(ends: Sequence[float]) -> list[float]:
    """Return at most RUNNING_ROWS ends, ascending; the last of each group stands for the group."""
    distinct = sorted(set(ends))
    step = -(-len(distinct) // RUNNING_ROWS) or 1
    merged = distinct[step - 1 :: step]
    if distinct and merged[-1:] != distinct[-1:]:
        merged.append(distinct[-1])
    return merged


def expected_end_s(job: RunningJob, now_s: float) -> float:
    """Return when a running job frees its placement: its time limit, taken at its word."""
    end_s = job.started_s + job.spec.time_limit_s
    return end_s if end_s > now_s else now_s + OVERRUN_SLACK_S
