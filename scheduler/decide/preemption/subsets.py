"""Sets of losers, the cheapest first: what an exact search goes through."""

import heapq
from collections.abc import Iterator, Sequence
from math import fsum


def by_price(
    levels: Sequence[int], works: Sequence[float], *, most: int
) -> Iterator[tuple[int, ...]]:
    """Give sets of indices in the order of their price: highest level first, then sum of work.

    Every set that is not empty comes once, unless so many were looked at before.

    Args:
        levels: of each.
        works: of each, at least 0.
        most: so many sets are looked at.
    """
    for level in sorted(set(levels)):
        items = sorted((i for i in range(len(levels)) if levels[i] <= level), key=works.__getitem__)
        heap: list[tuple[float, int, tuple[int, ...]]] = [(works[items[0]], 1, (0,))]
        while heap:
            most -= 1
            if most < 0:
                return
            _, _, at = heapq.heappop(heap)
            some = tuple(items[k] for k in at)
            if any(levels[i] == level for i in some):
                yield tuple(sorted(some))
            if at[-1] + 1 < len(items):  # every other set has exactly one set that it follows
                after = at[-1] + 1
                for longer in ((*at, after), (*at[:-1], after)):
                    work = fsum(works[items[k]] for k in longer)
                    heapq.heappush(heap, (work, len(longer), longer))
