"""Plain strategies to compare with. They know no quota, no reservation and no fairness.

What fits is asked of the engine's own filter, so that flavors, taints, health and gangs are kept.
A job that is held, backs off, or would not fit even if all were free is passed over, as a real
queue refuses it at submit: else one such job would stop all behind it for ever. Their plans say
nothing of jobs that wait.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from scheduler.core.plan import NOT_NEEDED, Plan, SolverReport, Start
from scheduler.core.resources import WHOLE_MILLI, may_be_given
from scheduler.core.snapshot import Fleet, IntArray, JobSpec, ReplicaPlacement, Snapshot
from scheduler.decide.feasibility import ANY, Demand, Filter, Free, Layout
from scheduler.simulate.decider import Decider

Order: TypeAlias = Callable[[JobSpec], float]


def fifo() -> Decider:
    """Return plain first in, first out: nobody starts before the one ahead of him."""
    return _InOrder("fifo", None)


def priority_only() -> Decider:
    """Return strict priority, first in, first out within a class; nobody overtakes."""
    return _InOrder("priority_only", lambda job: -job.priority)


def shortest_first() -> Decider:
    """Return shortest time limit first; who does not fit is overtaken, nobody is evicted."""
    return _InOrder("shortest_first", lambda job: job.time_limit_s, waits=False)


class _InOrder:
    """Starts jobs in a fixed order, each on the first node that has room.

    Args:
        name: its own.
        order: smallest first, equal ones as they arrived; None = all as they arrived, which is how
            a simulation gives them.
        waits: for one that does not fit all behind it wait.
    """

    looks_at_mix = False

    def __init__(self, name: str, order: Order | None, *, waits: bool = True) -> None:
        self._name, self._order, self._waits = name, order, waits
        self._room = Room()
        self._stuck: JobSpec | None = None

    def __call__(self, snapshot: Snapshot, now_s: float) -> Plan:
        """Return the plan of one cycle."""
        jobs: Sequence[JobSpec] = snapshot.pending
        if self._order and len(jobs) > 1:
            jobs = sorted(jobs, key=self._order)
        if self._room.enter(snapshot.fleet):
            self._stuck = None
        return plan_of(snapshot, self._name, self._starts(jobs, now_s), now_s=now_s)

    def _starts(self, jobs: Iterable[JobSpec], now_s: float) -> list[Start]:
        starts: list[Start] = []
        for job in jobs:
            if job is self._stuck:  # nothing has been freed since it was tried last
                break
            if job.hold or job.not_before_s > now_s or not self._room.ever(job):
                continue
            start = self._room.start(job)
            if start is not None:
                starts.append(start)
            elif self._waits:
                self._stuck = job
                break
        return starts


def plan_of(snapshot: Snapshot, name: str, starts: Iterable[Start], *, now_s: float) -> Plan:
    """Return a plan that starts some jobs and is silent about the others."""
    report = SolverReport(name, name, NOT_NEEDED)
    return Plan(snapshot.cluster, now_s, tuple(starts), (), (), report)


class _Kind(NamedTuple):
    """What equal jobs may have: a filter by flavor, and how many replicas an empty fleet holds."""

    tried: tuple[tuple[str, Filter], ...]
    most: int


class Room:
    """What is left in one cycle, counted node by node; the grid is kept from cycle to cycle."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self._layout: Layout
        self._kinds: dict[tuple[object, ...], _Kind] = {}
        self._free: Free
        self._taken = False

    def enter(self, fleet: Fleet) -> bool:
        """Begin a cycle, and return whether anything may have become free since the last one."""
        known = self._fleet
        if known is fleet and not self._taken:
            return False
        if (
            known is None
            or known.node_ready is not fleet.node_ready
            or known.device_healthy is not fleet.device_healthy
            or known.device_node is not fleet.device_node
        ):
            self._layout, self._kinds = Layout(fleet), {}
            self._names = {flavor.name: i for i, flavor in enumerate(fleet.flavors)}
        self._fleet, self._taken = fleet, False
        self._free = self._layout.free_now(fleet)
        return True

    def start(self, job: JobSpec) -> Start | None:
        """Start a job with its least replicas on the first flavor that has room, None if none."""
        for flavor, wanted in self._kind(job).tried:
            counts = wanted.count(self._free)
            if counts.sum() >= job.replicas_min:
                self._taken = True
                return Start(job.uid, self._take(job, wanted, counts), flavor)
        return None

    def ever(self, job: JobSpec) -> bool:
        """Return whether a job would fit if all were free and in good health."""
        return self._kind(job).most >= job.replicas_min

    def devices_free(self) -> dict[str, int]:
        """Return flavor -> whole devices that are free and may be used."""
        layout, free = self._layout, self._free
        whole = layout.usable & (free.milli == WHOLE_MILLI)
        counts = np.bincount(layout.flavor[whole], minlength=len(self._names)).tolist()
        return dict(zip(self._names, counts, strict=True))

    def _kind(self, job: JobSpec) -> "_Kind":
        like = (job.shape, job.flavors, job.tolerations)
        if like not in self._kinds:
            layout, flavors = self._layout, self._flavors(job)
            tried = [(name, Demand(job.shape, k, job.tolerations)) for name, k in flavors.items()]
            empty = (Filter(layout, replace(one, whatever_health=True)) for _, one in tried)
            self._kinds[like] = _Kind(
                tuple((name, Filter(layout, demand)) for name, demand in tried),
                max((int(one.count(layout.capacity).sum()) for one in empty), default=0),
            )
        return self._kinds[like]

    def _flavors(self, job: JobSpec) -> dict[str, int]:
        """Return name -> index of the flavors that a job may have, in the order that it names."""
        if not job.shape.devices:
            return {"": ANY}
        asked = [[one] for one in job.flavors] or [[]]
        return {
            name: k
            for one in asked
            for name, k in self._names.items()
            if may_be_given(name, one, job.shape.devices)
        }

    def _take(self, job: JobSpec, wanted: Filter, counts: IntArray) -> tuple[ReplicaPlacement, ...]:
        placed: list[ReplicaPlacement] = []
        for node in np.flatnonzero(counts).tolist():
            here = min(int(counts[node]), job.replicas_min - len(placed))
            placed.extend(self._take_one(job, wanted, node) for _ in range(here))
            if len(placed) == job.replicas_min:
                break
        return tuple(placed)

    def _take_one(self, job: JobSpec, wanted: Filter, node: int) -> ReplicaPlacement:
        shape, free = job.shape, self._free
        free.cpu[node] -= shape.cpu_milli
        free.memory[node] -= shape.memory_mib
        if not shape.devices:
            return ReplicaPlacement(node, (), 0, 0)
        here = Free(*(table[node : node + 1] for table in free))
        takes = wanted.takes(here, slice(node, node + 1))[0]
        columns = np.flatnonzero(takes)[: shape.devices]
        memory = int(wanted.memory_each[node, columns].min())
        free.milli[node, columns] -= shape.gpu_milli
        free.device_memory[node, columns] -= memory
        devices = tuple(self._layout.device_at[node, columns].tolist())
        return ReplicaPlacement(node, devices, shape.gpu_milli, memory)
