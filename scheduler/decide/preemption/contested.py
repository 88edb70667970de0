"""What is left to jobs that wait: the nodes that they could use, and the quota and the watts.

Every replica takes cores and memory, so whoever grows on a node takes it from all that could run
there, whatever devices they need. Quota and watts are taken wherever it grows.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import BoolArray, JobSpec, RunningJob
from scheduler.decide.feasibility import Demand
from scheduler.decide.foes import ANYBODY
from scheduler.decide.quota import Charge, QuotaLedger
from scheduler.decide.scoring import FloatArray
from scheduler.decide.session import Session

ALL = ""
"""Stands for all tenants; none has that slug."""

WATTS = ""
"""Stands for board power among flavors; none has that name."""

MOST_DEMANDS = 64
"""So many demands of waiting jobs are looked at one by one."""


class Contested:
    """From when on who must leave which nodes and which quota to jobs that wait.

    A tenant leaves them to its own waiting jobs always; to those of others where their quota would
    do if all jobs that may grow gave back what they hold.

    Beyond `MOST_DEMANDS` the rest counts as the least that any of it needs, by whom it concerns and
    flavor: rather too many nodes are left to it than too few.

    Args:
        session: the state after every job had its turn.
        growers: the jobs that may grow.
        waiting: the jobs that were not started, and those that back off: they want their place
            from `not_before_s` on. The first count one by one.
    """

    def __init__(
        self, session: Session, growers: Sequence[RunningJob], waiting: Iterable[JobSpec]
    ) -> None:
        self._session = session
        self._concerned = {ALL, *(job.spec.tenant for job in growers)}
        self._left = cache(_without(session, growers).available)
        self._most = _most_growth(session, growers)
        self._sums: dict[tuple[str, str], float] = {}
        self._wanted: dict[tuple[str, Demand], float] = {}
        self._rest: dict[tuple[str, int], tuple[Demand, float]] = {}
        for job in waiting:
            for flavor in session.allowed(job):
                self._note(job, flavor)
        self._nodes = self._nodes_wanted()

    def left_by(self, job: RunningJob) -> BoolArray:
        """Return (nodes,) where a job may grow: for what nobody else waits before its time is up.

        None where the quota or the watts that it would take are waited for.
        """
        session, spec = self._session, job.spec
        end_s = job.started_s + spec.time_limit_s
        charges = session.charges(spec, session.held.flavor_held(job), 1)
        names = {WATTS, *(charge.flavor for charge in charges)}
        left = np.ones(session.layout.nodes, dtype=np.bool_)
        for owner in (ALL, spec.tenant):
            if any(self._sums.get((owner, name), math.inf) < end_s for name in names):
                return np.zeros_like(left)
            if owner in self._nodes:
                left &= self._nodes[owner] >= end_s
        return left

    def _note(self, job: JobSpec, flavor: int) -> None:
        """Note what a waiting job needs if it is given a flavor."""
        session, from_s = self._session, job.not_before_s
        charges = session.charges(job, flavor, job.replicas_min)
        may = all(self._left(job.tenant, name) >= amount for name, amount in charges)
        owner = ALL if may else job.tenant
        if owner not in self._concerned:
            return
        short = [
            name
            for name, amount in charges
            if session.allowance.left(job, name, 0, 1) - self._most[name] < amount
        ]
        for name in short if session.power.cap_uw is None else [*short, WATTS]:
            self._sums[owner, name] = min(from_s, self._sums.get((owner, name), math.inf))
        self._want(owner, session.demand(job, flavor, whatever_health=True), from_s)

    def _want(self, owner: str, demand: Demand, from_s: float) -> None:
        if (owner, demand) in self._wanted or len(self._wanted) < MOST_DEMANDS:
            earliest_s = min(from_s, self._wanted.get((owner, demand), math.inf))
            self._wanted[owner, demand] = earliest_s
            return
        known = self._rest.get((owner, demand.flavor))
        if known is not None:
            demand, from_s = least_of(known[0], demand), min(from_s, known[1])
        self._rest[owner, demand.flavor] = demand, from_s

    def _nodes_wanted(self) -> dict[str, FloatArray]:
        """Return whom it concerns -> (nodes,) from when on each could hold a replica that waits."""
        found: dict[str, FloatArray] = {}
        for owner, demand, from_s in self._all_wanted():
            usable = self._session.filter(demand).count(self._session.layout.capacity) > 0
            before = found.get(owner, np.full(len(usable), math.inf))
            found[owner] = np.minimum(before, np.where(usable, from_s, math.inf))
        return found

    def _all_wanted(self) -> Iterator[tuple[str, Demand, float]]:
        yield from ((owner, demand, from_s) for (owner, demand), from_s in self._wanted.items())
        yield from ((owner, *least) for (owner, _), least in self._rest.items())


def least_of(a: Demand, b: Demand) -> Demand:
    """Return a demand of the same flavor that fits wherever one of two does."""
    return replace(
        a,
        shape=ReplicaShape(
            cpu_milli=min(a.shape.cpu_milli, b.shape.cpu_milli),
            memory_mib=min(a.shape.memory_mib, b.shape.memory_mib),
            devices=min(a.shape.devices, b.shape.devices),
            gpu_milli=min(a.shape.gpu_milli, b.shape.gpu_milli),
            gpu_memory_mib=min(a.shape.gpu_memory_mib, b.shape.gpu_memory_mib),
        ),
        tolerations=a.tolerations | b.tolerations,
        within=None,
        one_per_node=False,
        interference=ANYBODY,
    )


def _without(session: Session, growers: Sequence[RunningJob]) -> QuotaLedger:
    """Return what tenants would hold if all jobs that may grow gave back what they hold."""
    ledger = QuotaLedger(session.tree)
    ledger.usage[0] = session.profile.ledger.usage[0]
    for held in map(session.hold_of, growers):
        for name, amount in held.charges:
            ledger.add(held.tenant, Charge(name, -amount))
    return ledger


def _most_growth(session: Session, growers: Sequence[RunningJob]) -> Counter[str]:
    """Return flavor -> milli-units that all growth together could take."""
    most = Counter[str]()
    for job in growers:
        flavor, more = session.held.flavor_held(job), job.spec.replicas_max - len(job.replicas)
        for name, amount in session.charges(job.spec, flavor, more):
            most[name] += amount
    return most
