"""Tells an executor what was decided: every intent until it is done, twice without harm."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import QuerySet

from scheduler.choices import IntentState, Verb
from scheduler.execute.base import (
    Binding,
    Executor,
    ExecutorRejectedError,
    ExecutorUnavailableError,
    Observation,
    Phase,
    ReplicaBinding,
)
from scheduler.models import DeviceHold, Intent, Job, Placement, ReplicaHold
from scheduler.services import attempts
from telemetry.models import Cluster

GRACE_S = 10.0


def dispatch(*, cluster: Cluster, executor: Executor, now: datetime) -> int:
    """Carry out the pending intents of a cluster, oldest first.

    Returns:
        How many the executor has taken. It stops at the first sign that the executor is away;
        what is left stays pending.
    """
    done = 0
    for intent in _pending(cluster):
        try:
            _carry_out(intent, executor, now)
        except ExecutorUnavailableError as away:
            attempts.intent_failed(intent=intent, error=str(away), final=False, now=now)
            break
        except ExecutorRejectedError as refusal:
            attempts.intent_failed(intent=intent, error=str(refusal), final=True, now=now)
            if intent.verb == Verb.BIND:
                attempts.attempt_refused(
                    placement=intent.placement, message=str(refusal), now=now
                )
        else:
            done += 1
    return done


def _pending(cluster: Cluster) -> QuerySet[Intent]:
    return (
        Intent.objects.filter(
            state=IntentState.PENDING,
            placement__cluster=cluster,
            placement__released_at__isnull=True,
        )
        .select_related("placement__job")
        .order_by("created_at", "pk")
    )


def _carry_out(intent: Intent, executor: Executor, now: datetime) -> None:
    placement = intent.placement
    uid = str(placement.job_id)
    if intent.verb == Verb.EVICT:
        executor.evict(uid, placement.attempt, grace_s=GRACE_S, reason=intent.reason)
    elif placement.job.cancel_requested_at is not None:
        _cancel_before_start(placement, now)
    else:
        executor.bind(_binding(placement))
    attempts.intent_done(intent=intent, now=now)


def _cancel_before_start(placement: Placement, now: datetime) -> None:
    seen = Observation(
        uid=str(placement.job_id),
        attempt=placement.attempt,
        phase=Phase.CANCELLED,
        reason="cancelled",
    )
    attempts.attempt_ended(placement=placement, seen=seen, now=now)


def _binding(placement: Placement) -> Binding:
    job: Job = placement.job
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
        grace_s=GRACE_S,
        replicas=tuple(
            _replica(row)
            for row in placement.replicas.select_related("node").prefetch_related(
                "device_holds__device"
            )
        ),
        expected_duration_s=job.expected_duration_s,
    )


def _replica(row: ReplicaHold) -> ReplicaBinding:
    holds: Iterable[DeviceHold] = sorted(
        row.device_holds.all(), key=lambda hold: hold.device.index
    )
    devices = [hold.device for hold in holds]
    first = next(iter(holds), None)
    return ReplicaBinding(
        index=row.index,
        node=row.node.name,
        device_indices=tuple(device.index for device in devices),
        device_uids=tuple(device.uid for device in devices),
        vendor=devices[0].vendor if devices else "",
        gpu_milli=first.gpu_milli if first else 0,
        gpu_memory_mib=first.memory_mib if first else 0,
    )
