"""Plain strategies to compare with. They know no quota, no reservation and no fairness.

What fits is asked of the engine's own filter, so that flavors, taints, health and gangs are kept.
Their plans say nothing of jobs that wait.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from scheduler.core.plan import NOT_NEEDED, Plan, SolverReport, Start
from scheduler.core.resources import WHOLE_MILLI, may_be_given
from scheduler.core.snapshot import Fleet, IntArray, JobSpec, ReplicaPlacement, Snapshot
from scheduler.decide.feasibility import ANY, Demand, Filter, Free, Layout
from scheduler.simulate.decider import Decider

Order: TypeAlias = Callable[[JobSpec], tuple[float, ...]]


def fifo() -> Decider:
    """Return plain first in, first out: nobody starts before the one ahead of him."""
    return _InOrder("fifo", lambda job: (job.submitted_s,))


def priority_only() -> Decider:
    """Return strict priority, first in, first out within a class; nobody overtakes."""
    return _InOrder("priority_only", lambda job: (-job.priority, job.submitted_s))


def shortest_first() -> Decider:
    """Return shortest time limit first; who does not fit is overtaken, nobody is evicted."""
    return _InOrder("shortest_first", lambda job: (job.time_limit_s, job.submitted_s), waits=False)


class _InOrder:
    """Starts jobs in a fixed order, each on the first node that has room.

    Args:
        name: its own.
        order: smallest first.
        waits: for one that does not fit all behind it wait.
    """

    looks_at_mix = False

    def __init__(self, name: str, order: Order, *, waits: bool = True) -> None:
        self._name, self._order, self._waits = name, order, waits
        self._room = Room()

    def __call__(self, snapshot: Snapshot, now_s: float) -> Plan:
        """Return the plan of one cycle."""
        jobs = snapshot.pending
        if len(jobs) > 1:
            jobs = tuple(sorted(jobs, key=lambda job: (*self._order(job), job.uid)))
        self._room.enter(snapshot.fleet)
        return plan_of(snapshot, self._name, self._starts(jobs), now_s=now_s)

    def _starts(self, jobs: Iterable[JobSpec]) -> list[Start]:
        starts: list[Start] = []
        for job in jobs:
            start = self._room.start(job)
            if start is not None:
                starts.append(start)
            elif self._waits:
                break
        return starts


def plan_of(snapshot: Snapshot, name: str, starts: Iterable[Start], *, now_s: float) -> Plan:
    """Return a plan that starts some jobs and is silent about the others."""
    report = SolverReport(name, name, NOT_NEEDED)
    return Plan(snapshot.cluster, now_s, tuple(starts), (), (), report)


class Room:
    """What is left in one cycle, counted node by node; the grid is kept from cycle to cycle."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self._layout: Layout
        self._filters: dict[Demand, Filter] = {}
        self._free: Free

    def enter(self, fleet: Fleet) -> None:
        """Begin a cycle."""
        known = self._fleet
        if (
            known is None
            or known.node_ready is not fleet.node_ready
            or known.device_healthy is not fleet.device_healthy
            or known.device_node is not fleet.device_node
        ):
            self._layout, self._filters = Layout(fleet), {}
            self._names = {flavor.name: i for i, flavor in enumerate(fleet.flavors)}
        self._fleet = fleet
        self._free = self._layout.free_now(fleet)

    def start(self, job: JobSpec) -> Start | None:
        """Start a job with its least replicas on the first flavor that has room, None if none."""
        named = job.flavors or [
            name for name in self._names if may_be_given(name, (), job.shape.devices)
        ]
        for flavor in named if job.shape.devices else ("",):
            index = self._names.get(flavor, ANY)
            if flavor and index == ANY:
                continue
            wanted = self._filter(Demand(job.shape, index, job.tolerations))
            counts = wanted.count(self._free)
            if counts.sum() >= job.replicas_min:
                return Start(job.uid, self._take(job, wanted, counts), flavor)
        return None

    def devices_free(self) -> dict[str, int]:
        """Return flavor -> whole devices that are free and may be used."""
        layout, free = self._layout, self._free
        whole = layout.usable & (free.milli == WHOLE_MILLI)
        counts = np.bincount(layout.flavor[whole], minlength=len(self._names)).tolist()
        return dict(zip(self._names, counts, strict=True))

    def _filter(self, demand: Demand) -> Filter:
        if demand not in self._filters:
            self._filters[demand] = Filter(self._layout, demand)
        return self._filters[demand]

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
