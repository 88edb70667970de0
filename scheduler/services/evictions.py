"""Commits whom a plan evicts and resizes, and the promises that this is done for.

What is ordered for one beneficiary is ordered whole or not at all, in the transaction that stores
its promise: half of the room would help nobody. Who writes an eviction holds the cluster's lock or
the job's row, so that a look at the locked rows is the whole comparison.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef

from scheduler import events
from scheduler.choices import HOLDING_STATES, JobState, Verb
from scheduler.core.plan import Plan
from scheduler.core.policy import PreemptionPolicy
from scheduler.core.snapshot import ReplicaPlacement
from scheduler.models import HEAVY, Cycle, Decision, Intent, Job, JobEvent, Placement
from scheduler.services.attempts import RESIZED
from scheduler.services.keys import FleetKeys
from scheduler.services.stored import stored_json
from telemetry.models import Cluster

ACTOR = "scheduler"
GONE = "the job that room was to be made for no longer waits"
TAKEN = "it no longer runs, or is being stopped already"


@dataclass(frozen=True, slots=True)
class Order:
    """One eviction that a plan asks for.

    Attributes:
        uid: whom.
        beneficiary: for whom; "" = for itself, to grow.
        reason: preempted, reclaimed, rebalanced or resized.
        evidence: numbers behind it.
        target: what a resized job is to hold next, in primary keys; as in `Intent.target`.
        cause: by which law a resized job shrinks; "" where it grows.
    """

    uid: str
    beneficiary: str
    reason: str
    evidence: Mapping[str, object] = field(default_factory=dict)
    target: tuple[dict[str, Any], ...] = ()
    cause: str = ""


def evictions_commit(
    *, cycle: Cycle, plan: Plan, keys: FleetKeys, preemption: PreemptionPolicy, now: datetime
) -> dict[str, str]:
    """Order all evictions of a plan that still hold, and store what was promised for them.

    Args:
        cycle: that decided them.
        plan: with `preempts` and `resizes`.
        keys: of the snapshot that it was decided on.
        preemption: grace, and how long a resized job keeps its size; in real seconds.
        now: time of the cycle.

    Returns:
        uid of each job that is not evicted after all -> why.
    """
    orders = [*_preempts(plan), *_resizes(plan, keys)]
    if not orders:
        return {}
    writer = _Writer(cycle, preemption, now)
    with transaction.atomic():
        jobs = _locked(orders)
        placements = _evictable([jobs[o.uid] for o in orders if o.uid in jobs])
        lost: dict[str, str] = {}
        kept: list[Order] = []
        for group in _groups(orders):
            why = _refusal(group, jobs, placements)
            lost |= {order.uid: why for order in group if why}
            kept += group if not why else []
        if kept:
            writer.write(kept, jobs, placements)
    return lost


def _preempts(plan: Plan) -> list[Order]:
    return [Order(p.uid, p.beneficiary, str(p.cause), p.evidence) for p in plan.preempts]


def _resizes(plan: Plan, keys: FleetKeys) -> list[Order]:
    return [
        Order(
            resize.uid,
            resize.beneficiary,
            RESIZED,
            {"replicas": len(resize.replicas)},
            tuple(_target(replica, keys) for replica in resize.replicas),
            str(resize.cause or ""),
        )
        for resize in plan.resizes
    ]


def _target(replica: ReplicaPlacement, keys: FleetKeys) -> dict[str, Any]:
    return {
        "node": keys.nodes[replica.node],
        "devices": [keys.devices[device] for device in replica.devices],
        "gpu_milli": replica.gpu_milli,
        "gpu_memory_mib": replica.gpu_memory_mib,
    }


def _groups(orders: Sequence[Order]) -> list[list[Order]]:
    """Return the orders by beneficiary; each job that grows stands alone."""
    found: dict[str, list[Order]] = defaultdict(list)
    for order in orders:
        found[order.beneficiary or order.uid].append(order)
    return list(found.values())


def _locked(orders: Sequence[Order]) -> dict[str, Job]:
    uids = {order.uid for order in orders} | {o.beneficiary for o in orders if o.beneficiary}
    rows = Job.objects.select_for_update(of=("self",)).select_related("cluster")
    return {str(job.pk): job for job in rows.filter(pk__in=uids).defer(*HEAVY).order_by("pk")}


def _evictable(jobs: Sequence[Job]) -> dict[str, Placement]:
    """Return job -> what it holds, of those that hold something and were not told to end."""
    holding = [j.pk for j in jobs if j.state in HOLDING_STATES and j.cancel_requested_at is None]
    told = Intent.objects.filter(placement=OuterRef("pk"), verb=Verb.EVICT)
    rows = Placement.objects.filter(~Exists(told), job_id__in=holding, released_at__isnull=True)
    return {str(row.job_id): row for row in rows}


def _refusal(
    group: Sequence[Order], jobs: Mapping[str, Job], placements: Mapping[str, Placement]
) -> str:
    """Return why orders for one beneficiary can't be carried out, "" where they can."""
    beneficiary = group[0].beneficiary
    waits = beneficiary in jobs and jobs[beneficiary].state == JobState.QUEUED
    if beneficiary and not waits:
        return GONE
    return "" if all(order.uid in placements for order in group) else TAKEN


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes evictions, all or none; inside a transaction that has locked the jobs."""

    cycle: Cycle
    preemption: PreemptionPolicy
    now: datetime

    def write(
        self, orders: Sequence[Order], jobs: Mapping[str, Job], placements: Mapping[str, Placement]
    ) -> None:
        cluster = self.cycle.cluster
        grace_s = self.preemption.grace_s * cluster.clock_scale  # executors count as jobs do
        Intent.objects.bulk_create(
            Intent(
                placement=placements[order.uid],
                verb=Verb.EVICT,
                reason=order.reason,
                grace_s=grace_s,
                beneficiary=jobs.get(order.beneficiary),
                target=list(order.target),
                created_at=self.now,
            )
            for order in orders
        )
        self._keep_sizes([jobs[order.uid] for order in orders if order.target], orders)
        promised = [jobs[uid] for uid in sorted({o.beneficiary for o in orders if o.beneficiary})]
        fresh = [job.pk for job in promised if job.promised_at is None]
        Job.objects.filter(pk__in=fresh).update(promised_at=self.now)
        self._tell(orders, jobs, promised, grace_s)
        Cycle.objects.filter(pk=self.cycle.pk).update(evict_count=len(orders))
        events.seen(cluster_slug=cluster.slug)

    def _keep_sizes(self, resized: Sequence[Job], orders: Sequence[Order]) -> None:
        """Note the size that each resized job keeps, as long as nobody else would be evicted."""
        sizes = {order.uid: len(order.target) for order in orders}
        keep_s = self.preemption.grace_s + self.preemption.min_runtime_s
        for job in resized:
            job.resized_to = sizes[str(job.pk)]
            job.resized_until = self.now + timedelta(seconds=keep_s)
        Job.objects.bulk_update(resized, ["resized_to", "resized_until"])

    def _tell(
        self,
        orders: Sequence[Order],
        jobs: Mapping[str, Job],
        promised: Sequence[Job],
        grace_s: float,
    ) -> None:
        """Write why, with both sides of each eviction and with the cycle."""
        victims: dict[str, list[str]] = defaultdict(list)
        for order in orders:
            victims[order.beneficiary].append(order.uid)
        news = [
            self._event(jobs[order.uid], "eviction", order.reason, _data(order, grace_s))
            for order in orders
        ]
        news += [
            self._event(job, "promise", "promised", {"jobs": victims[str(job.pk)]})
            for job in promised
        ]
        JobEvent.objects.bulk_create(news)
        Decision.objects.bulk_create(
            Decision(
                cycle=self.cycle,
                job_id=UUID(order.uid),
                verb="resize" if order.reason == RESIZED else "preempt",
                code=order.reason,
                evidence=_data(order, grace_s),
            )
            for order in orders
        )

    def _event(self, job: Job, kind: str, reason: str, data: dict[str, Any]) -> JobEvent:
        return JobEvent(
            job=job,
            at=self.now,
            kind=kind,
            from_state=job.state,
            to_state=job.state,
            actor=ACTOR,
            reason=reason,
            data=data,
        )


def _data(order: Order, grace_s: float) -> dict[str, Any]:
    """Return what is kept of an eviction: its numbers, for names may be of another's tenant."""
    numbers = {
        name: value
        for name, value in order.evidence.items()
        if isinstance(value, int | float | bool)
    }
    data: dict[str, Any] = {**stored_json(numbers), "grace_s": round(grace_s, 3)}
    data |= {"cause": order.cause} if order.cause else {}
    return data | ({"beneficiary": order.beneficiary} if order.beneficiary else {})


def promises_end(*, cluster: Cluster, now: datetime) -> int:
    """Take back promises that came to nothing, so that such jobs wait as all others do.

    All that was evicted for them has ended, and yet the cycle that saw it did not start them: the
    room is not what it was to be, as where a freed node has failed. Such a job may start at once,
    but it asks for evictions only after the policy's delay: else it and those that return to what
    it could not use would evict and restart cycle after cycle.

    Returns:
        How many.
    """
    still = Intent.objects.filter(
        verb=Verb.EVICT, beneficiary=OuterRef("pk"), placement__released_at__isnull=True
    )
    waiting = Job.objects.filter(cluster=cluster, state=JobState.QUEUED)
    over = waiting.filter(~Exists(still), promised_at__isnull=False).order_by("pk")
    keys = list(over.values_list("pk", flat=True))
    if not keys:
        return 0
    with transaction.atomic():
        rows = waiting.select_for_update().filter(pk__in=keys).only("pk").order_by("pk")
        ended = [job.pk for job in rows]
        waiting.filter(pk__in=ended).update(promised_at=None, not_before=now)
        JobEvent.objects.bulk_create(
            JobEvent(
                job_id=key,
                at=now,
                kind="promise",
                from_state=JobState.QUEUED,
                to_state=JobState.QUEUED,
                actor=ACTOR,
                reason="promise_ended",
            )
            for key in ended
        )
        events.seen(cluster_slug=cluster.slug)
    return len(ended)
