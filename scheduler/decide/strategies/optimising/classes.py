"""Equal jobs and alike nodes, counted instead of listed: that keeps the program small."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from scheduler.core.resources import WHOLE_MILLI
from scheduler.core.snapshot import IntArray, JobSpec
from scheduler.decide.kinds import Kind
from scheduler.decide.ordering import Ranked
from scheduler.decide.session import Session

MAX_CLASSES = 800
"""So many kinds of jobs are offered to the solver; later ones get their turn afterwards."""

EXACT_COUNT = 8
"""Nodes with up to this many free devices are grouped by the exact count."""


@dataclass(frozen=True, slots=True)
class JobClass:
    """Jobs that differ in nothing that the program sees.

    Attributes:
        jobs: members, in queue order.
        rows: rows of the time profile that a member must fit into.
        closed: nodes that are reserved for others while a member would run.
        room: flavor -> (groups,) replicas that each node group can take.
    """

    jobs: tuple[Ranked, ...]
    rows: int
    closed: tuple[int, ...]
    room: Mapping[int, IntArray]

    @property
    def job(self) -> JobSpec:
        """Return a member that stands for all."""
        return self.jobs[0].job


@dataclass(frozen=True, slots=True)
class NodeGroups:
    """Nodes alike in taints and in how many whole devices of which flavor they have free.

    Attributes:
        of_node: (nodes,) index of the group.
        cpu, memory: (groups,) free in sum on ready nodes.
        milli, whole: (groups, flavors) free thousandths of usable devices, free whole devices.
    """

    of_node: IntArray
    cpu: IntArray
    memory: IntArray
    milli: IntArray
    whole: IntArray

    @property
    def count(self) -> int:
        """Return the number of groups."""
        return len(self.cpu)


Key: TypeAlias = tuple[str, Kind, int, tuple[int, ...], int]


def group_nodes(session: Session) -> NodeGroups:
    """Return the node groups of a session as it stands."""
    layout, free = session.layout, session.profile.row(0)
    flavors = len(session.snapshot.fleet.flavors)
    milli = np.zeros((layout.nodes, flavors), dtype=np.int64)
    whole = np.zeros((layout.nodes, flavors), dtype=np.int64)
    for f in range(flavors):
        usable = layout.usable & (layout.flavor == f)
        milli[:, f] = np.where(usable, free.milli, 0).sum(axis=-1)
        whole[:, f] = (usable & (free.milli >= WHOLE_MILLI)).sum(axis=-1)
    key = np.column_stack([layout.taint_of, layout.ready, _coarse(whole), milli > whole * 1000])
    _, of_node = np.unique(key, axis=0, return_inverse=True)
    of_node = of_node.reshape(-1)
    groups = int(of_node.max(initial=-1)) + 1
    ready = layout.ready.astype(np.int64)
    return NodeGroups(
        of_node=of_node,
        cpu=_sums(of_node, free.cpu.clip(0) * ready, groups),
        memory=_sums(of_node, free.memory.clip(0) * ready, groups),
        milli=np.column_stack([_sums(of_node, milli[:, f], groups) for f in range(flavors)])
        if flavors
        else milli[:0],
        whole=np.column_stack([_sums(of_node, whole[:, f], groups) for f in range(flavors)])
        if flavors
        else whole[:0],
    )


def _coarse(counts: IntArray) -> IntArray:
    """Return counts as they are up to EXACT_COUNT, and by powers of two beyond."""
    powers = np.floor(np.log2(np.maximum(counts, 1) / EXACT_COUNT)).astype(np.int64)
    return np.where(counts <= EXACT_COUNT, counts, EXACT_COUNT + powers)


def _sums(of_node: IntArray, values: IntArray, groups: int) -> IntArray:
    sums = np.zeros(groups, dtype=np.int64)
    np.add.at(sums, of_node, values)
    return sums


def key_of(session: Session, job: JobSpec, rows: int) -> Key:
    """Return what makes two jobs equal to the program."""
    kind, end_s = session.kind(job), session.now_s + job.time_limit_s
    closed = tuple(session.closed(kind, session.now_s, end_s).tolist())
    return (job.tenant, kind, job.replicas_max, closed, rows)


def group_jobs(
    session: Session, ranked: Sequence[Ranked], groups: NodeGroups, *, most: int = MAX_CLASSES
) -> tuple[tuple[JobClass, ...], bool]:
    """Return the classes of the jobs that could start now if they were alone, at most so many.

    And whether they are all: where some were left out, the program's bound bounds nothing.
    """
    members: dict[Key, list[Ranked]] = {}
    complete = True
    for one in ranked:
        rows = session.window(session.now_s + one.job.time_limit_s)
        key = key_of(session, one.job, rows)
        if key in members or len(members) < most:
            members.setdefault(key, []).append(one)
        else:
            complete = False
    classes = []
    for key, jobs in members.items():
        *_, closed, rows = key
        room = _room(session, jobs[0].job, rows, closed, groups)
        if room:
            classes.append(JobClass(tuple(jobs), rows, closed, room))
    return tuple(classes), complete


def _room(
    session: Session, job: JobSpec, rows: int, closed: tuple[int, ...], groups: NodeGroups
) -> dict[int, IntArray]:
    """Return flavor -> (groups,) replicas that fit, for the flavors on which a gang fits."""
    room, end_s = {}, session.now_s + job.time_limit_s
    for flavor in session.allowed(job):
        if session.allowance.replicas(job, flavor, 0, rows) < job.replicas_min:
            continue
        if session.room_now(job, flavor, rows, end_s) >= job.replicas_min:
            counts = session.counted(session.demand(job, flavor), rows).counts.copy()
            counts[list(closed)] = 0
            room[flavor] = _sums(groups.of_node, counts, groups.count)
    return room
