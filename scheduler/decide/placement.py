"""Where the replicas of one job go: nodes by score, devices by link group or tightness."""

from collections.abc import Iterator
from itertools import repeat
from typing import NamedTuple

import numpy as np

from scheduler.core.snapshot import IntArray, ReplicaPlacement
from scheduler.decide.calendar import NOBODY
from scheduler.decide.feasibility import Filter, Free, Layout
from scheduler.decide.scoring import FloatArray, Scorer, choose_whole
from scheduler.decide.topology import best_fit


class Site(NamedTuple):
    """What a placement is chosen from.

    Attributes:
        layout: the fleet's grid.
        wanted: the replica, made ready.
        free: state that the replicas must fit into.
        counts: (nodes,) replicas that each node takes.
        scores: (nodes,) score of one more replica.
        scorer: what gave the scores, and chooses devices.
        first: nodes that are taken before all others, whatever the scores say.
    """

    layout: Layout
    wanted: Filter
    free: Free
    counts: IntArray
    scores: FloatArray
    scorer: Scorer
    first: IntArray = NOBODY


class Fit(NamedTuple):
    """A way in which a job fits.

    Attributes:
        flavor: index of the flavor of all replicas, `ANY` for none.
        replicas: how many fit, within the job's bounds.
        start_s: when.
        site: counts and scores to place them by.
    """

    flavor: int
    replicas: int
    start_s: float
    site: Site


def place(site: Site, replicas: int, policy: str) -> tuple[tuple[ReplicaPlacement, ...], float]:
    """Return one placement per replica and the mean score of their nodes.

    Args:
        site: where; `site.counts` must sum to at least `replicas`.
        replicas: how many.
        policy: spread (as many nodes as possible) or any other (as few as possible).
    """
    choose = _spread if policy == "spread" else _pack
    taken = [one for part, count in _parts(site, replicas) for one in choose(part, count)]
    placed = [one for node, count in taken for one in _on_node(site, node, count)]
    score = sum(float(site.scores[node]) * count for node, count in taken) / replicas
    return tuple(placed), score


def _parts(site: Site, replicas: int) -> Iterator[tuple[Site, int]]:
    """Give how many replicas go to the nodes that come first, as many as fit, and to the others."""
    if not len(site.first):
        yield site, replicas
        return
    inside, outside = np.zeros_like(site.counts), site.counts.copy()
    inside[site.first], outside[site.first] = site.counts[site.first], 0
    most = min(replicas, int(inside.sum()))
    for counts, count in ((inside, most), (outside, replicas - most)):
        if count:
            yield site._replace(counts=counts), count


def _pack(site: Site, replicas: int) -> list[tuple[int, int]]:
    """Return (node, replicas): one node if one can hold all, else the roomiest ones first."""
    counts = site.counts.copy()
    taken = []
    while replicas:
        node = _best(site.scores, counts >= replicas)
        if node < 0:
            node = _best(site.scores, counts == counts.max())
        here = min(int(counts[node]), replicas)
        taken.append((node, here))
        counts[node] = 0
        replicas -= here
    return taken


def _spread(site: Site, replicas: int) -> list[tuple[int, int]]:
    """Return (node, replicas): one replica on each node in turn, best nodes first."""
    order = np.argsort(-site.scores, kind="stable")
    order = order[site.counts[order] > 0]
    taken = dict.fromkeys(order[:replicas].tolist(), 1)
    rest = replicas - len(taken)
    while rest > 0:
        for node in taken:
            if rest and taken[node] < site.counts[node]:
                taken[node] += 1
                rest -= 1
    return list(taken.items())


def _best(scores: FloatArray, among: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
    """Return the node with the highest score among some; the first on a tie, -1 if none."""
    candidates = np.flatnonzero(among)
    if not len(candidates):
        return -1
    return int(candidates[int(np.argmax(scores[candidates]))])


def _on_node(site: Site, node: int, count: int) -> Iterator[ReplicaPlacement]:
    shape, here = site.wanted.shape, slice(node, node + 1)
    if not shape.devices:
        yield from repeat(ReplicaPlacement(node, (), 0, 0), count)
        return
    free = Free._make([table[here].copy() for table in site.free])
    if site.wanted.islands is not None:
        away = site.wanted.islands[node] != _island(site, node, count)
        free.milli[0, away] = 0
    for _ in range(count):
        columns = _columns(site, node, free)
        held = int(site.wanted.memory_each[node, columns].min())
        free.cpu[0] -= shape.cpu_milli
        free.milli[0, columns] -= shape.gpu_milli
        free.device_memory[0, columns] -= held
        if site.wanted.against is not None:
            free.foes[0, columns] -= site.wanted.against
        devices = tuple(sorted(site.layout.device_at[node, columns].tolist()))
        yield ReplicaPlacement(node, devices, shape.gpu_milli, held)


def _island(site: Site, node: int, replicas: int) -> int:
    """Return the island of the node that the replicas share: the smallest that holds them."""
    at = np.array([node])
    free = Free(*(table[at] for table in site.free))
    return best_fit(site.wanted.count_islands(free, at)[0], replicas)


def _columns(site: Site, node: int, free: Free) -> list[int]:
    """Return the columns of the devices that the next replica takes on the node."""
    shape = site.wanted.shape
    columns = np.flatnonzero(site.wanted.takes(free, slice(node, node + 1)))
    if shape.is_fraction:
        return [site.scorer.device(site.wanted, node, free, columns)]
    if len(columns) == shape.devices:
        return columns.tolist()
    groups = [grid[node, columns] for grid in site.layout.nearness]
    return choose_whole(columns, groups, shape.devices)
