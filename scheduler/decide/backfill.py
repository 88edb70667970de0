"""The time profile: what is free from now on, row by row, and who has reserved what.

Row 0 is now; every further row begins where a running or planned job ends. A job may start now only
if it fits in *every* row until its own end, so nobody starts in the way of a reservation: that is
conservative backfill, and a reservation's row is the planned start.

Where rows begin that nobody planned, and how ends are rounded so that they are few, says `moments`.

Source: Slurm sched/backfill (bf_window, bf_resolution, bf_max_job_test, bf_node_space_size: it
plans no further when that table is full; sched_config).
"""

import bisect
import math
import mmap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import IntArray, ReplicaPlacement
from scheduler.decide.feasibility import Free, Layout, Nodes
from scheduler.decide.foes import ANYBODY, Foes
from scheduler.decide.power import held_uw
from scheduler.decide.quota import Charge, QuotaLedger, QuotaTree

SOFT_ROWS = 128
"""Up to so many rows one begins wherever a job ends; beyond, the end may be rounded up."""

HARD_ROWS = 224
"""There are never more rows than this; with as many, nobody else is planned ahead."""

HUGE_BYTES = 4 << 20
"""From so many bytes on, numpy asks for huge pages (its NUMPY_MADVISE_HUGEPAGE)."""


class Hold(NamedTuple):
    """What one job takes: its tenant's charges, the places of its replicas, its class of foes."""

    tenant: str
    charges: tuple[Charge, ...]
    shape: ReplicaShape
    replicas: tuple[ReplicaPlacement, ...]
    interference: int = ANYBODY


class Cells(NamedTuple):
    """What many holds take, flat: one entry a replica, a device, and a charge that is limited.

    Attributes:
        replica: (4, replicas) index of its hold, node, milli-cores, MiB.
        device: (6, devices) index of its hold, node, column, thousandths, MiB, class (`foes`).
        charge: (4, charges) index of its hold, flavor and tenant of the tree, milli-units.
    """

    replica: IntArray
    device: IntArray
    charge: IntArray

    def and_then(self, more: "Cells", holds: int) -> "Cells":
        """Return these cells, which are of so many holds, and those of more holds behind them."""
        for table in more:
            table[0] += holds
        return Cells(*(np.hstack(pair) for pair in zip(self, more, strict=True)))


def cells_of(layout: Layout, tree: QuotaTree, holds: Sequence[Hold]) -> Cells:
    """Return what the holds take, as arrays."""
    column = layout.column.tolist()
    replica = [
        (i, place.node, hold.shape.cpu_milli, hold.shape.memory_mib)
        for i, hold in enumerate(holds)
        for place in hold.replicas
    ]
    device = [
        (i, place.node, column[device], place.gpu_milli, place.gpu_memory_mib, hold.interference)
        for i, hold in enumerate(holds)
        for place in hold.replicas
        for device in place.devices
    ]
    charge = [
        (i, tree.flavors[flavor], tree.index[hold.tenant], amount)
        for i, hold in enumerate(holds)
        if hold.tenant in tree.index
        for flavor, amount in hold.charges
        if flavor in tree.flavors
    ]
    return Cells(_table(replica, 4), _table(device, 6), _table(charge, 4))


def _table(rows: Sequence[tuple[int, ...]], columns: int) -> IntArray:
    """Return (columns, rows)."""
    return np.array(rows, dtype=np.int64).reshape(-1, columns).T.copy()


class Profile:
    """Free capacity and quota usage over time.

    Logical row k covers [times[k], times[k+1]); `rows[k]` is its place in the arrays, so that a row
    can be inserted by copying one.

    Attributes:
        touched: nodes whose state changed, in order, for whoever keeps counts of them.
        version: changes whenever row 0 does.
        first_reserved_s: start of the earliest reservation; until then nothing is taken later.
        idle_uw: board power of what is taken now but draws none, microwatts.

    Args:
        layout: the fleet's grid.
        free: what is free now.
        tree: the quota tree.
        running: what is held now.
        ends_s: (holds,) when each of the holds ends, epoch seconds after `now_s`.
        now_s: epoch seconds.
        grid: times after now at which rows begin, ascending; the last is no earlier than an end.
        exact: more such times, at which nothing ends.
        board: (nodes, width) board power in milliwatts; None = nobody asks for it.
        idle_uw: of what is not free although nothing runs there.
    """

    def __init__(
        self,
        layout: Layout,
        free: Free,
        tree: QuotaTree,
        running: Cells,
        ends_s: Sequence[float],
        *,
        now_s: float,
        grid: Sequence[float],
        exact: Sequence[float] = (),
        board: IntArray | None = None,
        idle_uw: int = 0,
    ) -> None:
        self.layout, self._grid = layout, grid
        self.times = sorted({now_s, *grid, *exact})
        self.rows = list(range(len(self.times)))
        released = self._released(ends_s)
        self._tables = _freed(free, running, released, len(self.rows), layout.foes)
        self.ledger = QuotaLedger(tree, HARD_ROWS)
        self.ledger.load(_held(tree, running, released, len(self.rows)))
        self._board = board
        self._power = np.zeros(HARD_ROWS, dtype=np.int64)
        if board is not None:
            taken_uw = held_uw(board, self._tables.milli[: len(self.rows)])
            self._power[: len(self.rows)] = taken_uw - idle_uw
        self.idle_uw = idle_uw
        self._windows: dict[tuple[int, int], IntArray] = {}
        self._left: dict[tuple[str, str, int, int], int] = {}
        self.touched: list[int] = []
        self.version = 0
        self.first_reserved_s = float("inf")

    # -- rows ---------------------------------------------------------------------------------

    def until(self, end_s: float) -> int:
        """Return the number of rows that begin before `end_s`; at least 1."""
        return max(1, bisect.bisect_left(self.times, end_s))

    def _insert(self, at: int, time_s: float) -> None:
        """Insert a row that begins at `time_s` as a copy of the row before it."""
        source, target = self.rows[at - 1], len(self.times)
        for table in self._tables:
            table[target] = table[source]
        self.ledger.usage[target] = self.ledger.usage[source]
        self._power[target] = self._power[source]
        self.times.insert(at, time_s)
        self.rows.insert(at, target)
        self._windows.clear()

    @property
    def is_full(self) -> bool:
        """Return whether rows are used up: then what is planned cannot be told apart."""
        return len(self.times) == HARD_ROWS

    def _row_at(self, start_s: float, end_s: float) -> int:
        """Return the logical row in which something that runs in [start_s, end_s) is free again.

        The fewer rows are left, the larger the part of its length by which its end is rounded up:
        so jobs that follow each other add up to no larger a part of their wait. Where rows are used
        up it is free with the next one, or never seen to end, at the cost of those who wait.
        """
        at, rows = bisect.bisect_left(self.times, end_s), len(self.times)
        part = max(0.0, (rows - SOFT_ROWS) / (HARD_ROWS - SOFT_ROWS))
        latest_s = end_s + part * (end_s - start_s)
        known = at < rows and self.times[at] <= latest_s
        if not (known or self.is_full):
            self._insert(at, latest_s)
        return at

    # -- reading ------------------------------------------------------------------------------

    def row(self, k: int) -> Free:
        """Return the state in logical row k (a view)."""
        row = self.rows[k]
        return Free._make([table[row] for table in self._tables])

    def floor(self, first: int, last: int, nodes: Nodes | None = None) -> Free:
        """Return what is free in all of the logical rows first..last-1, on all or some nodes."""
        rows = self.quota_rows(first, last)
        if nodes is None:
            return Free(*(_minimum(table, rows) for table in self._tables))
        at = (rows, nodes) if isinstance(nodes, slice) else np.ix_(rows, nodes)
        return Free._make([table[at].min(axis=0) for table in self._tables])

    def block(self, first: int, last: int, nodes: IntArray) -> Free:
        """Return (rows, nodes, ...) copies of some nodes in the logical rows first..last-1."""
        at = np.ix_(self.quota_rows(first, last), nodes)
        return Free(*(table[at] for table in self._tables))

    def quota_rows(self, first: int, last: int) -> IntArray:
        """Return the array rows of a window, for the ledger; kept, so not to be written to."""
        rows = self._windows.get((first, last))
        if rows is None:
            rows = self._windows[first, last] = np.array(self.rows[first:last], dtype=np.int64)
            rows.setflags(write=False)
        return rows

    def quota_left(self, tenant: str, flavor: str, first: int, last: int) -> int:
        """Return what a tenant's quota leaves in all of the logical rows first..last-1."""
        key = (tenant, flavor, first, last)
        left = self._left.get(key)
        if left is None:
            left = self.ledger.available(tenant, flavor, self.quota_rows(first, last))
            self._left[key] = left
        return left

    def power_uw(self, first: int, last: int) -> int:
        """Return the most microwatts that are held in one of the logical rows first..last-1."""
        return int(self.powers_uw(first, last).max())

    def powers_uw(self, first: int, last: int) -> IntArray:
        """Return (rows,) microwatts held in the logical rows first..last-1, a copy."""
        return self._power[self.quota_rows(first, last)]

    # -- writing ------------------------------------------------------------------------------

    def hold(self, hold: Hold, start_s: float, end_s: float, *, draws: bool = True) -> None:
        """Take a hold's capacity and quota from `start_s` (a row's time) until `end_s`.

        Its board power, too, unless nothing of it `draws` any: who only waits there needs none.
        """
        self._left.clear()
        last = self._row_at(start_s, end_s)
        first = bisect.bisect_left(self.times, start_s)
        rows = self.quota_rows(first, last)
        for charge in hold.charges:
            self.ledger.add(hold.tenant, charge, rows)
        self._take(hold, rows)
        if draws:
            self._power[rows] += self._draws_uw(hold)
        else:
            self.idle_uw += self._draws_uw(hold)
        self.touched.extend(place.node for place in hold.replicas)
        self.version += first == 0
        if first > 0:
            self.first_reserved_s = min(self.first_reserved_s, start_s)

    def release(self, hold: Hold, start_s: float, end_s: float) -> None:
        """Give back from `start_s` (a row's time) what a running job would hold until `end_s`."""
        self._left.clear()
        first = bisect.bisect_left(self.times, start_s)
        rows = self.quota_rows(first, self.released_row(end_s))
        for flavor, amount in hold.charges:
            self.ledger.add(hold.tenant, Charge(flavor, -amount), rows)
        self._take(hold, rows, sign=-1)
        self._power[rows] -= self._draws_uw(hold)
        self.touched.extend(place.node for place in hold.replicas)

    def released_row(self, end_s: float) -> int:
        """Return the logical row in which a running job that ends then is gone."""
        return bisect.bisect_left(self.times, self._grid[bisect.bisect_left(self._grid, end_s)])

    def _released(self, ends_s: Sequence[float]) -> IntArray:
        """Return (holds,) `released_row` of many."""
        grid = np.array(self._grid)
        return np.searchsorted(self.times, grid[np.searchsorted(grid, ends_s)])

    def _take(self, hold: Hold, rows: IntArray, sign: int = 1) -> None:
        tables = self._tables
        for place in hold.replicas:
            tables.cpu[rows, place.node] -= sign * hold.shape.cpu_milli
            tables.memory[rows, place.node] -= sign * hold.shape.memory_mib
            if place.devices:
                at = (rows[:, None], place.node, self.layout.column[list(place.devices)])
                tables.milli[at] -= sign * place.gpu_milli
                tables.device_memory[at] -= sign * place.gpu_memory_mib
                if hold.interference != ANYBODY:
                    tables.foes[at] -= sign * self.layout.foes.against[hold.interference]

    def _draws_uw(self, hold: Hold) -> int:
        """Return the microwatts that a hold draws; 0 where nobody asks for them."""
        drawn = 0
        if self._board is not None:
            for place in hold.replicas:
                if place.devices:
                    columns = self.layout.column[list(place.devices)]
                    drawn += place.gpu_milli * int(self._board[place.node, columns].sum())
        return drawn


def _freed(free: Free, running: Cells, released: IntArray, rows: int, foes: Foes) -> Free:
    """Return (HARD_ROWS, ...) what is free once the holds released up to each row have ended.

    Only the first `rows` are filled; the others cost nothing until they are written.
    """
    tables = Free(*(_zeros((HARD_ROWS, *table.shape)) for table in free))
    hold, node, cpu, memory = running.replica
    _add(tables.cpu, (released[hold], node), cpu)
    _add(tables.memory, (released[hold], node), memory)
    hold, node, column, milli, device_memory, _ = running.device
    _add(tables.milli, (released[hold], node, column), milli)
    _add(tables.device_memory, (released[hold], node, column), device_memory)
    release_foes(tables.foes, running, foes, released[hold])
    for table, now in zip(tables, free, strict=True):
        table[0] = now
        np.cumsum(table[:rows], axis=0, out=table[:rows])
    return tables


def _zeros(shape: tuple[int, ...]) -> IntArray:
    """Return zeros whose pages cost nothing before they are written.

    Never huge pages: the kernel has to clear them whole, and a virtual machine often has to get
    them from its host first. On 5,000 nodes that was a third of a cycle.
    """
    size = 8 * math.prod(shape)
    if size < HUGE_BYTES:
        return np.zeros(shape, dtype=np.int64)
    plain = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(plain, dtype=np.int64).reshape(shape)


def release_foes(
    table: IntArray, cells: Cells, foes: Foes, row: IntArray | None = None, sign: int = 1
) -> None:
    """Add to a table of `Free.foes` what is gone with some cells, in place; take it with -1.

    Args:
        table: (nodes, width, classes), or (rows, ...) of them.
        cells: of the holds.
        foes: the classes.
        row: (devices,) where to add; None = the table has no rows.
        sign: 1 or -1.
    """
    _, node, column, _, _, number = cells.device
    some = number != ANYBODY
    at = (node[some], column[some]) if row is None else (row[some], node[some], column[some])
    if some.any():
        np.add.at(table, at, sign * foes.against[number[some]])


def _held(tree: QuotaTree, running: Cells, released: IntArray, rows: int) -> IntArray:
    """Return (rows, flavors, tenants) what each tenant itself holds until its holds end."""
    held = np.zeros((rows, len(tree.flavors), len(tree.slugs)), dtype=np.int64)
    hold, flavor, tenant, amount = running.charge
    _add(held, (np.zeros_like(hold), flavor, tenant), amount)
    _add(held, (released[hold], flavor, tenant), -amount)
    return np.cumsum(held, axis=0)


def _add(table: IntArray, at: tuple[IntArray, ...], amounts: IntArray) -> None:
    """Add amounts at places that may repeat; numpy is faster on a flat table."""
    if len(amounts):
        np.add.at(table.reshape(-1), np.ravel_multi_index(at, table.shape), amounts)


def _minimum(table: IntArray, rows: IntArray) -> IntArray:
    """Return the minimum over some rows without copying them together."""
    least: IntArray = table[rows[0]].copy()
    for row in rows[1:]:
        np.minimum(least, table[row], out=least)
    return least
