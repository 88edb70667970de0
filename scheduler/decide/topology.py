"""Which domains a gang goes to: the smallest one that holds it, or the fewest.

Source: Kueue, Topology Aware Scheduling: the level asked for, with `preferred` then one level up
after the other; BestFit among the domains that hold all; where none does, the largest first and
the smallest that holds the rest; then the same downwards.
"""

import numpy as np

from scheduler.core.snapshot import IntArray
from scheduler.core.topology import WITHIN_NODE, Level, TopologyWish
from scheduler.decide.feasibility import Layout

OF_NODES = (Level.NODE, Level.RACK, Level.BLOCK)
"""Levels whose domains are made of whole nodes, from near to far."""

LOWEST = OF_NODES.index(Level.RACK)
"""Down to here the fewest domains are taken unasked; nodes are chosen by score."""


def reach(layout: Layout, counts: IntArray, wish: TopologyWish | None) -> int:
    """Return the most replicas that a job with this wish may have.

    Args:
        layout: the fleet's grid.
        counts: (nodes,) replicas that each node takes, in one of its islands where the wish
            requires a level within nodes.
        wish: of the job.
    """
    if wish is None or not wish.required:
        return int(counts.sum())
    return _most(layout, counts, wish.level)


def narrowed(layout: Layout, counts: IntArray, wish: TopologyWish, replicas: int) -> IntArray:
    """Return the counts of the nodes that a gang goes to, 0 elsewhere.

    Args:
        layout: the fleet's grid.
        counts: (nodes,) as for `reach`, which is at least `replicas`.
        wish: of the job.
        replicas: how many there are.
    """
    asked = 0 if wish.level in WITHIN_NODE else OF_NODES.index(wish.level)
    tried = range(asked, asked + 1 if wish.required else len(OF_NODES))
    holds = (k for k in tried if _most(layout, counts, OF_NODES[k]) >= replicas)
    nearest = next(holds, tried[-1])
    for level in reversed(OF_NODES[min(asked, LOWEST) : nearest + 1]):
        counts = _fewest(counts, layout.domains(level), replicas)
    return counts


def _most(layout: Layout, counts: IntArray, level: Level) -> int:
    """Return how many replicas the domain of a level holds that holds most."""
    return int(sum_domains(counts, layout.domains(level)).max(initial=0))


def _fewest(counts: IntArray, domains: IntArray, replicas: int) -> IntArray:
    """Return the counts within the fewest domains that hold the replicas; all if they do not."""
    sums = sum_domains(counts, domains)
    if sums.sum() < replicas:
        return counts
    chosen = []
    while replicas > 0:
        chosen.append(best_fit(sums, replicas))
        replicas -= int(sums[chosen[-1]])
        sums[chosen[-1]] = 0
    return np.where(np.isin(domains, chosen), counts, 0)


def best_fit(rooms: IntArray, wanted: int) -> int:
    """Return the index of the smallest room that is large enough, else of the largest one."""
    enough = np.flatnonzero(rooms >= wanted)
    if len(enough):
        return int(enough[int(np.argmin(rooms[enough]))])
    return int(np.argmax(rooms))


def sum_domains(counts: IntArray, domains: IntArray) -> IntArray:
    """Return (domains,) the counts summed up; nodes in no domain are left out."""
    sums = np.zeros(int(domains.max(initial=-1)) + 1, dtype=np.int64)
    known = domains >= 0
    np.add.at(sums, domains[known], counts[known])
    return sums
