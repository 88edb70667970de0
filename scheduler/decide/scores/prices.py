"""Prices of device shares: the duals of the cutting-stock LP of the demand.

How much of a device is a share worth, if all demand were packed as well as it can be? Shares that
combine to a full device have prices that add up to 1; a share that always wastes the rest of its
device is dearer than its size.

Source: Gilmore and Gomory, "A linear programming approach to the cutting-stock problem", 1961.
"""

from collections.abc import Mapping

import numpy as np

from scheduler.decide.scores.compiled import compiled
from scheduler.decide.scores.state import WHOLE, FloatArray, IntArray

GRID_MILLI = 10
"""Sizes are rounded up and gaps rounded down to this grid."""
_ROUNDS = 400
_TOLERANCE = 1e-9


def share_prices(demand: Mapping[int, float]) -> dict[int, float]:
    """Return the price of a share of each size, in devices.

    Args:
        demand: size in milli, 1..1000 -> how many are asked for, > 0.

    Returns:
        size -> price, 0..1; of the most valuable packing of one device the prices add up to 1.

    Raises:
        ValueError: a size or an amount is out of range.
    """
    if any(not 0 < size <= WHOLE or not 0 < amount < np.inf for size, amount in demand.items()):
        raise ValueError("sizes must lie in 1..1000 milli and amounts above 0")
    if not demand:
        return {}
    sizes = np.array(sorted(demand), dtype=np.int64)
    cells = -(-sizes // GRID_MILLI)
    duals = _duals(cells, np.array([demand[size] for size in sizes.tolist()]))
    return dict(zip(sizes.tolist(), duals.tolist(), strict=True))


def gap_values(prices: Mapping[int, float]) -> FloatArray:
    """Return what a gap on a device is worth: its most valuable filling.

    Args:
        prices: as from `share_prices`.

    Returns:
        (101,) values of a gap of 0, 10, .. 1000 milli, ascending.
    """
    sizes = np.array(sorted(prices), dtype=np.int64)
    worth = np.array([prices[size] for size in sizes.tolist()], dtype=np.float64)
    return _knapsack(-(-sizes // GRID_MILLI), worth)[0]


def _duals(cells: IntArray, demand: FloatArray) -> FloatArray:
    """Return the duals by column generation: a simplex that asks the knapsack for its column."""
    capacity, count = WHOLE // GRID_MILLI, len(cells)
    basis = np.diag((capacity // cells).astype(np.float64))
    cost = np.ones(count)
    for _ in range(_ROUNDS):
        duals = np.linalg.solve(basis.T, cost).astype(np.float64)
        column, price = _entering(cells, duals)
        if price is None:
            break
        _pivot(basis, cost, demand, column, price)
    duals = np.maximum(duals, 0.0)
    best: float = _knapsack(cells, duals)[0][capacity]
    scaled: FloatArray = duals / best
    return scaled


def _entering(cells: IntArray, duals: FloatArray) -> tuple[FloatArray, float | None]:
    """Return a column that makes the packing better and its cost; None where there is none."""
    surplus = int(np.argmin(duals))
    if duals[surplus] < -_TOLERANCE:
        column = np.zeros(len(duals))
        column[surplus] = -1.0
        return column, 0.0
    values, last = _knapsack(cells, duals)
    column, cell = np.zeros(len(duals)), len(values) - 1
    if values[cell] <= 1.0 + _TOLERANCE:
        return column, None
    while last[cell] >= 0:
        column[last[cell]] += 1
        cell -= int(cells[last[cell]])
    return column, 1.0


def _pivot(
    basis: FloatArray, cost: FloatArray, demand: FloatArray, column: FloatArray, price: float
) -> None:
    """Let a column into the basis, in place of the one that is used up first."""
    packed = np.linalg.solve(basis, demand)
    moved = np.linalg.solve(basis, column)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(moved > _TOLERANCE, np.maximum(packed, 0.0) / moved, np.inf)
    leaving = int(np.argmin(ratio))
    basis[:, leaving] = column
    cost[leaving] = price


@compiled
def _knapsack(cells: IntArray, worth: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the best value of each capacity, and the item put in last, -1 for none."""
    capacity = WHOLE // GRID_MILLI
    values, last = np.zeros(capacity + 1), np.full(capacity + 1, -1, dtype=np.int64)
    for cell in range(1, capacity + 1):
        for k in range(len(cells)):
            if cells[k] <= cell and worth[k] > 0:
                value = values[cell - cells[k]] + worth[k]
                if value > values[cell] + 1e-12:
                    values[cell], last[cell] = value, k
    return values, last
