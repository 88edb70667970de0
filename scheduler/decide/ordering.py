"""The order of the queue: entitled before borrowing, then a sum of weighted factors.

Order of criteria:
0. Jobs that room is being made for (`JobSpec.promised_s`), so that nobody else takes it; then those
   that are overdue: their tenant owns what they ask for, and they have waited for the delay after
   which it may be claimed back. Else others whom its department's standing puts before it could
   take what was to be claimed, and be spared for the least run time. That is towards other tenants:
   behind a higher class of its own tenant that may use one of the same flavors, a job is not
   overdue. Of a tenant's jobs for the same flavors only the first can be.
1. Standing as a borrower, at the closest common ancestor: a tenant with room within its quota goes
   before one that must borrow, and of two that borrow the one of smaller dominant share.
2. Priority class (its weight is raised until no other factor can overturn it), then the sum of
   fair share, age, size and quality of service; the parts are kept for display.
3. Submit time, then uid.

Within a tenant and a set of flavors only 2 and 3 count. But for who is overdue, no criterion of one
job looks at another that waits, so that taking a waiting job away leaves the order of the others as
it was. (A tenant's higher class taken away may let its overdue job pass jobs of others.)

Source: Kueue fair sharing for 1 (`fairness.dominant`); Slurm priority_multifactor for 2.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from scheduler.core.policy import PriorityWeights, QosFactors
from scheduler.core.snapshot import JobSpec
from scheduler.decide.fairness import FairShares
from scheduler.decide.fairness.dominant import Path
from scheduler.decide.seniority import Seniority

PROMISED, OVERDUE, NEITHER = range(3)
"""Ranks: room is being made for the job; it has waited too long for what its tenant owns."""


class Ranked(NamedTuple):
    """A job at its turn: its place, 1 = first, and the parts that put it there."""

    job: JobSpec
    position: int
    parts: Mapping[str, float]


class Scale(NamedTuple):
    """What makes factors out of amounts.

    Attributes:
        ranks: priority -> 0, 1, 2, ... from the lowest that occurs.
        devices_milli, cpu_milli: what the whole cluster has.
    """

    ranks: Mapping[int, int]
    devices_milli: int
    cpu_milli: int


def scale_of(jobs: Sequence[JobSpec], *, devices_milli: int, cpu_milli: int) -> Scale:
    """Return the scale for the jobs of one cycle."""
    ranks = {priority: i for i, priority in enumerate(sorted({job.priority for job in jobs}))}
    return Scale(ranks, max(devices_milli, 1), max(cpu_milli, 1))


def class_weight(weights: PriorityWeights) -> float:
    """Return the weight of one step of priority class: more than all other factors together."""
    others = (weights.fair_share, weights.age, weights.size, weights.qos)
    return max(weights.priority_class, sum(others) + 1.0)


def static_parts(
    job: JobSpec,
    weights: PriorityWeights,
    scale: Scale,
    *,
    now_s: float,
    qos: QosFactors | None = None,
) -> dict[str, float]:
    """Return the parts that do not change within a cycle."""
    return {
        "priority_class": class_weight(weights) * scale.ranks[job.priority],
        "age": weights.age * _age(job, weights, now_s),
        "size": weights.size * _size(job, scale),
        "qos": weights.qos * (qos or QosFactors()).of(job.kind),
    }


def _age(job: JobSpec, weights: PriorityWeights, now_s: float) -> float:
    waited = max(0.0, now_s - job.submitted_s)
    return min(1.0, waited / weights.age_max_s) if weights.age_max_s > 0 else 0.0


def _size(job: JobSpec, scale: Scale) -> float:
    if job.shape.devices:
        asked, whole = job.shape.device_milli * job.replicas_min, scale.devices_milli
    else:
        asked, whole = job.shape.cpu_milli * job.replicas_min, scale.cpu_milli
    return min(1.0, max(0.0, asked / whole))


def _rank(job: JobSpec, *, overdue: bool) -> int:
    return PROMISED if job.promised_s else OVERDUE if overdue else NEITHER


class Entry(NamedTuple):
    """A job's place among those of its group, smallest first."""

    priority: float
    submitted_s: float
    uid: str


class Head(NamedTuple):
    """A group's first job and the key by which the heads are compared, smallest first."""

    rank: int
    path: Path
    priority: float
    submitted_s: float
    uid: str
    group: int


class Group(NamedTuple):
    """Jobs of one tenant that may use the same flavors: their standing is one.

    Attributes:
        tenant: slug.
        flavors: accelerators, by name; () for jobs without.
        unpromised: nobody is evicted for these jobs.
    """

    tenant: str
    flavors: tuple[str, ...]
    unpromised: bool


class Queue:
    """Gives the jobs in order while shares move: one heap per group, one heap of their heads.

    A tenant that gets something only ever falls back within a cycle, so the best head is looked at
    again when it comes up and put back if it has fallen: O(log groups + log jobs) a step.

    Args:
        ranked: (job, static parts, flavors that it may use), any order.
        shares: standing of the tenants; the caller books starts there.
        fair_weight: weight of the fair-share factor.
        flavors: what counts for a tenant's standing.
        overdue: says whether a job has waited for too long for what its tenant owns.
    """

    def __init__(
        self,
        ranked: Sequence[tuple[JobSpec, Mapping[str, float], tuple[str, ...]]],
        shares: FairShares,
        fair_weight: float,
        flavors: tuple[str, ...],
        overdue: Callable[[JobSpec], bool] = lambda _: False,
    ) -> None:
        self._shares, self._fair_weight, self._flavors = shares, fair_weight, flavors
        self._overdue = overdue
        self._jobs = {job.uid: (job, parts) for job, parts, _ in ranked}
        entries: dict[Group, list[Entry]] = {}
        for job, parts, usable in ranked:
            entry = Entry(-sum(parts.values()), job.submitted_s, job.uid)
            entries.setdefault(Group(job.tenant, usable, not job.promised_s), []).append(entry)
        self._groups = sorted(entries)
        self._entries = [entries[group] for group in self._groups]
        self._seniority = Seniority()
        self._heads: list[Head] = []
        self._turn = 0  # whose job has its turn; that group has no head meanwhile
        self._fresh: set[int] = set()  # groups whose heads are as of now
        for g, waiting in enumerate(self._entries):
            heapq.heapify(waiting)
            self._note(g)
        for g in range(len(self._groups)):
            self._push(g)

    def _note(self, g: int) -> None:
        if self._entries[g]:
            job = self._jobs[self._entries[g][0].uid][0]
            self._seniority.note(g, job, self._groups[g].flavors)

    def _push(self, g: int) -> None:
        if self._entries[g]:
            heapq.heappush(self._heads, self._head(g))
            self._fresh.add(g)

    def _head(self, g: int) -> Head:
        tenant, flavors, _ = self._groups[g]
        first = self._entries[g][0]
        path = self._shares.path(tenant, flavors)
        priority = first.priority - self._fair(tenant)
        job = self._jobs[first.uid][0]
        overdue = self._overdue(job) and not self._seniority.holds_back(g)
        rank = _rank(job, overdue=overdue)
        return Head(rank, path, priority, first.submitted_s, first.uid, g)

    def _let_pass(self, passed: set[int]) -> None:
        """Put heads where they belong that no higher class of their tenant holds back any more."""
        if passed:
            self._heads = [head for head in self._heads if head.group not in passed]
            heapq.heapify(self._heads)
            for g in sorted(passed):
                self._push(g)

    def _fair(self, tenant: str) -> float:
        return self._fair_weight * self._shares.factor(tenant, self._flavors)

    def is_next(self, job: JobSpec, parts: Mapping[str, float], usable: tuple[str, ...]) -> bool:
        """Return whether a job would surely come up before all that have not come up yet.

        A tenant's place is looked at as it was when it was noted; it has only fallen since. Nothing
        is sure of a job that may use other flavors than before, since those of its tenant may then
        pass that it was ahead of, or of one that another of its group would come before.
        """
        waiting = self._entries[self._turn]
        entry = Entry(-sum(parts.values()), job.submitted_s, job.uid)
        if usable != self._groups[self._turn].flavors or (waiting and entry > waiting[0]):
            return False
        path = self._shares.path(job.tenant, usable)
        priority = -sum(parts.values()) - self._fair(job.tenant)
        overdue = self._overdue(job) and not self._seniority.is_behind(job, usable)
        key = (_rank(job, overdue=overdue), path, priority, job.submitted_s, job.uid)
        heads = self._heads[:1] + ([self._head(self._turn)] if waiting else [])
        return all(key < head[:5] for head in heads)

    def __iter__(self) -> Iterator[Ranked]:
        position = 0
        self._fresh.clear()
        while self._heads:
            g = self._heads[0].group
            if g not in self._fresh:
                heapq.heapreplace(self._heads, self._head(g))  # its tenant may have got something
                self._fresh.add(g)
                continue
            head = heapq.heappop(self._heads)
            heapq.heappop(self._entries[g])
            self._seniority.had_turn(g)
            self._note(g)
            self._turn = g
            position += 1
            job, parts = self._jobs[head.uid]
            yield Ranked(job, position, {**parts, "fair_share": self._fair(job.tenant)})
            self._fresh.clear()
            self._push(g)  # after the caller has booked what this job got
            self._let_pass(set(self._seniority.freed(job, self._groups[g].flavors)))
