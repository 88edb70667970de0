"""The order of the queue: a sum of weighted factors, its parts kept for display.

Order of criteria: priority class (its weight is raised until no other factor can overturn it), then
the sum of fair share, age and size, then submit time, then uid.

Source: Slurm priority_multifactor (sum of weight * factor).
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from scheduler.core.policy import PriorityWeights
from scheduler.core.snapshot import JobSpec
from scheduler.decide.fairness import FairShares


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
    others = max(weights.fair_share, 0) + max(weights.age, 0) + max(weights.size, 0)
    return max(weights.priority_class, others + 1.0)


def static_parts(
    job: JobSpec, weights: PriorityWeights, scale: Scale, *, now_s: float
) -> dict[str, float]:
    """Return the parts that do not change within a cycle."""
    return {
        "priority_class": class_weight(weights) * scale.ranks[job.priority],
        "age": weights.age * _age(job, weights, now_s),
        "size": weights.size * _size(job, scale),
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


class Queue:
    """Gives the jobs in order while shares move: one heap per tenant, one heap of their heads.

    Only the tenant that has just got something changes its standing, so a step costs
    O(log tenants + log jobs).

    Args:
        ranked: (job, static parts), any order.
        shares: standing of the tenants; the caller books starts there.
        fair_weight: weight of the fair-share factor.
        flavors: what counts for a tenant's standing.
    """

    def __init__(
        self,
        ranked: Sequence[tuple[JobSpec, dict[str, float]]],
        shares: FairShares,
        fair_weight: float,
        flavors: Sequence[str],
    ) -> None:
        self._shares, self._fair_weight, self._flavors = shares, fair_weight, flavors
        self._jobs = {job.uid: (job, parts) for job, parts in ranked}
        self._of_tenant: dict[str, list[tuple[float, float, str]]] = {}
        for job, parts in ranked:
            entry = (-sum(parts.values()), job.submitted_s, job.uid)
            self._of_tenant.setdefault(job.tenant, []).append(entry)
        self._heads: list[tuple[float, float, str, str, float]] = []
        for tenant, entries in self._of_tenant.items():
            heapq.heapify(entries)
            self._push(tenant)

    def _push(self, tenant: str) -> None:
        entries = self._of_tenant[tenant]
        if entries:
            key, submitted_s, uid = heapq.heappop(entries)
            fair = self._fair_weight * self._shares.factor(tenant, self._flavors)
            heapq.heappush(self._heads, (key - fair, submitted_s, uid, tenant, fair))

    def __iter__(self) -> Iterator[Ranked]:
        position = 0
        while self._heads:
            _, _, uid, tenant, fair = heapq.heappop(self._heads)
            position += 1
            job, parts = self._jobs[uid]
            yield Ranked(job, position, {**parts, "fair_share": fair})
            self._push(tenant)  # after the caller has booked what this job got
