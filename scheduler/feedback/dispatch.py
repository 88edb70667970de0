"""Tells an executor what was decided: every intent until it is done, twice without harm."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from scheduler.choices import IntentState, Verb
from scheduler.execute.base import (
    Binding,
    Executor,
    ExecutorRejectedError,
    ExecutorUnavailableError,
    ReplicaBinding,
)
from scheduler.models import EVICT_GRACE_S, DeviceHold, Intent, Job, Placement, ReplicaHold
from scheduler.services import attempts
from telemetry.models import Cluster

NOT_STARTED = "to be stopped before it was started"


def dispatch(*, cluster: Cluster, executor: Executor, now: datetime) -> int:
    """Carry out the pending intents of a cluster, oldest first.

    Returns:
        How many the executor has taken. It stops at the first sign that the executor is away;
        what is left stays pending.
    """
    done: list[Intent] = []
    try:
        for intent in _pending(cluster):
            try:
                if _carry_out(intent, executor, now):
                    done.append(intent)
            except ExecutorUnavailableError as away:
                attempts.intent_failed(intent=intent, error=str(away), final=False, now=now)
                break
            except ExecutorRejectedError as refusal:
                _refused(intent, str(refusal), now)
    finally:
        if done:  # what is not noted is told again, and starts only once
            attempts.intents_done(intents=done, now=now)
    return len(done)


def _pending(cluster: Cluster) -> QuerySet[Intent]:
    """Return what is to do; a cluster that was switched off starts nothing any more."""
    wanted = Intent.objects.filter(
        state=IntentState.PENDING,
        placement__cluster=cluster,
        placement__released_at__isnull=True,
    )
    if not cluster.enabled:
        evicted = Placement.objects.filter(intents__verb=Verb.EVICT)
        wanted = wanted.filter(placement__in=evicted)
    return (
        wanted.select_related("placement__job")
        .prefetch_related(
            "placement__intents",
            "placement__replicas__node",
            "placement__replicas__device_holds__device",
        )
        .order_by("pk")
    )


def _carry_out(intent: Intent, executor: Executor, now: datetime) -> bool:
    placement = intent.placement
    uid = str(placement.job_id)
    if intent.verb == Verb.EVICT:
        executor.evict(uid, placement.attempt, grace_s=intent.grace_s, reason=intent.reason)
    elif any(other.verb == Verb.EVICT for other in placement.intents.all()):
        # Whether an earlier try has started it, only the executor knows: reconcile asks it.
        attempts.intent_dropped(intent=intent, why=NOT_STARTED, now=now)
        return False
    else:
        executor.bind(_binding(placement))
    return True


def _refused(intent: Intent, why: str, now: datetime) -> None:
    """Give up a start; a stop is tried again and again, for what runs must not be forgotten."""
    starts = intent.verb == Verb.BIND
    with transaction.atomic():
        attempts.intent_failed(intent=intent, error=why, final=starts, now=now)
        if starts:
            attempts.attempt_refused(placement=intent.placement, message=why, now=now)


def _binding(placement: Placement) -> Binding:
    job: Job = placement.job
    rows = sorted(placement.replicas.all(), key=lambda row: row.index)
    return Binding(
        uid=str(job.pk),
        attempt=placement.attempt,
        name=job.name,
        command=job.command,
        image=job.image,
        env=job.env,
        cpu_milli=job.cpu_milli,
        memory_mib=job.memory_mib,
        time_limit_s=float(job.time_limit_s),
        grace_s=EVICT_GRACE_S,
        replicas=tuple(_replica(row) for row in rows),
        expected_duration_s=_duration_s(job, len(rows)),
        checkpoint_interval_s=float(job.checkpoint_interval_s),
    )


def _duration_s(job: Job, replicas: int) -> float:
    """Return how long a job plays on a simulated fleet: replicas add up, as when it grows.

    What is expected of it is meant with its least replicas.
    """
    least_s = job.expected_duration_s or float(job.time_limit_s)
    return least_s * job.replicas_min / max(replicas, 1)


def _replica(row: ReplicaHold) -> ReplicaBinding:
    holds: Sequence[DeviceHold] = sorted(row.device_holds.all(), key=lambda hold: hold.device.index)
    devices = [hold.device for hold in holds]
    return ReplicaBinding(
        index=row.index,
        node=row.node.name,
        device_indices=tuple(device.index for device in devices),
        device_uids=tuple(device.uid for device in devices),
        vendor=devices[0].vendor if devices else "",
        gpu_milli=holds[0].gpu_milli if holds else 0,
        gpu_memory_mib=holds[0].memory_mib if holds else 0,
    )
