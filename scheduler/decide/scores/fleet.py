"""The compiled scores on the engine's own grid: the same formulas that the benchmark measures.

A job sees of each node the devices that it may use. Nodes stand in the order of their names, and
the first of equals wins.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from scheduler.core.resources import WHOLE_MILLI, ReplicaShape
from scheduler.core.snapshot import DemandKind, ReplicaPlacement, Snapshot
from scheduler.decide.feasibility import ANY, Filter, Free, Layout
from scheduler.decide.scores.choice import SCORES, Scoring, node_value, score_node, score_nodes
from scheduler.decide.scores.learnt import Setting, terms_of
from scheduler.decide.scores.potential import Terms
from scheduler.decide.scores.state import (
    ANY_MODEL,
    CLASSES,
    TYPICAL,
    BoolArray,
    FloatArray,
    IntArray,
    Mix,
    Nodes,
    Scale,
    Shapes,
    kind_of,
    mix_of,
    scale_of,
)

_NOWHERE = 62
"""Bit of a model that no node has; flavors beyond share it."""


class _Learnt(NamedTuple):
    """What a score knows of the jobs that have arrived."""

    mix: Mix
    terms: Terms


class FleetScore:
    """One of the compiled scores, for one fleet.

    Args:
        name: one of `SCORES`.
        snapshot: fleet, what runs, and the mix of what arrived lately.
        layout: the fleet's grid.
    """

    def __init__(self, name: str, snapshot: Snapshot, layout: Layout) -> None:
        self._number, self._layout = SCORES.index(name), layout
        present = layout.flavor >= 0
        models = np.bincount(layout.flavor[present].clip(0, _NOWHERE))
        bits = np.where(present, np.left_shift(1, layout.flavor.clip(0, _NOWHERE)), 0)
        self._models = np.bitwise_or.reduce(bits, axis=-1, initial=0).astype(np.int64)
        devices = present.sum(axis=-1)
        self._scale = scale_of(layout.capacity.cpu, devices, models, self._models)
        names = tuple(flavor.name for flavor in snapshot.fleet.flavors)
        self._learnt = _learnt(name, snapshot.demand_mix, names, self._scale)
        self._held = np.zeros((layout.nodes, len(CLASSES)), dtype=np.int64)
        for job in snapshot.running:
            self.note(job.spec.shape, job.replicas)

    def note(self, shape: ReplicaShape, replicas: tuple[ReplicaPlacement, ...]) -> None:
        """Note what was placed, for the score that keeps jobs of one class together."""
        for replica in replicas:
            self._held[replica.node, kind_of(shape.devices, shape.gpu_milli)] += 1

    def nodes(self, wanted: Filter, free: Free, nodes: IntArray) -> FloatArray:
        """Return (nodes,) scores of one more replica, -inf where it does not fit.

        Args:
            wanted: the replica.
            free: state of exactly those nodes.
            nodes: indices of the nodes.
        """
        scores = np.empty(len(nodes))
        score_nodes(self._scoring(wanted, free, nodes), scores)
        return scores

    def device(self, wanted: Filter, node: int, free: Free, columns: IntArray) -> int:
        """Return the column of the device that a fraction takes.

        Args:
            wanted: the fraction.
            node: index of the node.
            free: state of that node alone, (1, ...) arrays.
            columns: devices that hold the fraction, ascending.
        """
        scoring = self._scoring(wanted, free, np.array([node]))
        _, column = score_node(scoring, 0, 0, node_value(scoring, 0))
        return column if column in columns else int(columns[0])

    def _scoring(self, wanted: Filter, free: Free, nodes: IntArray) -> Scoring:
        usable = self._usable(wanted, nodes)
        full = (free.milli >= _least(wanted.shape)) & (
            free.device_memory < wanted.memory_each[nodes]
        )
        state = Nodes(
            free.cpu.astype(np.int64),
            free.memory.astype(np.int64),
            np.where(usable & ~full, free.milli.clip(0), 0).astype(np.int64),
            usable.sum(axis=-1),
            self._model(wanted, nodes),
            self._held[nodes],
        )
        learnt = self._learnt
        shape = _shapes([(wanted.shape, ANY_MODEL)])
        return Scoring(self._number, state, shape, learnt.mix, learnt.terms, self._scale)

    def _usable(self, wanted: Filter, nodes: IntArray) -> BoolArray:
        grid = wanted.device_ok if wanted.shape.devices else self._layout.usable
        usable: BoolArray = grid[nodes]
        return usable

    def _model(self, wanted: Filter, nodes: IntArray) -> IntArray:
        """Return the bit of the flavor that is asked for; without one, all of the node's."""
        if wanted.flavor == ANY:
            models: IntArray = self._models[nodes]
            return models
        return np.full(len(nodes), 1 << min(wanted.flavor, _NOWHERE), dtype=np.int64)


def _least(shape: ReplicaShape) -> int:
    return shape.gpu_milli if shape.is_fraction else WHOLE_MILLI


@lru_cache(maxsize=8)
def _learnt(
    name: str, kinds: tuple[DemandKind, ...], flavors: tuple[str, ...], scale: Scale
) -> _Learnt:
    """Return mix and worths of what has arrived; equal arguments are worked out once.

    Args:
        name: the score; FGD cuts the mix at its typical kinds.
        kinds: what arrived.
        flavors: names of the fleet's flavors, in order.
        scale: of the fleet.
    """
    shapes = _shapes([(kind.shape, _models(kind.flavors, flavors)) for kind in kinds])
    counts = np.array([kind.count for kind in kinds], dtype=np.float64)
    mix, terms = terms_of(shapes, counts, Setting(), scale)
    return _Learnt(mix_of(shapes, counts, cover=TYPICAL) if name == "fgd" else mix, terms)


def _models(wanted: tuple[str, ...], flavors: tuple[str, ...]) -> int:
    """Return the bit set of the flavors that a job names; `ANY_MODEL` where it names none."""
    if not wanted:
        return ANY_MODEL
    known = {min(flavors.index(name), _NOWHERE) for name in wanted if name in flavors}
    return sum(1 << flavor for flavor in known) or 1 << _NOWHERE


def _shapes(rows: list[tuple[ReplicaShape, int]]) -> Shapes:
    """Return kinds of jobs as arrays, given shapes and bit sets of models."""
    table = np.array(
        [
            (
                shape.cpu_milli,
                shape.memory_mib,
                shape.devices,
                shape.gpu_milli if shape.devices else 0,
                models,
                kind_of(shape.devices, shape.gpu_milli),
            )
            for shape, models in rows
        ],
        dtype=np.int64,
    ).reshape(-1, 6)
    return Shapes(*(np.ascontiguousarray(table[:, k]) for k in range(6)))
