"""Jobs that wait and jobs that run, as the engine sees them: in real seconds."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, FilteredRelation, Q, QuerySet

from scheduler.choices import JobState, Verb
from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import JobSpec, ReplicaPlacement, RunningJob
from scheduler.core.throughputs import Throughputs
from scheduler.core.topology import Level, TopologyWish
from scheduler.decide.holdings import without
from scheduler.models import HEAVY, DeviceHold, Job, Placement, ReplicaHold
from scheduler.selectors.throughputs import own_class
from scheduler.services.checkpoints import safe_until
from telemetry.models import Cluster

PENDING_LIMIT = 20_000

Indices = Mapping[int, int]
"""Primary key -> index in the snapshot's arrays."""


def job_spec(job: Job, now: datetime) -> JobSpec:
    """Return a job as the engine sees it, in real seconds."""
    return JobSpec(
        uid=str(job.pk),
        tenant=job.tenant.slug,
        kind=job.kind,
        shape=ReplicaShape(
            cpu_milli=job.cpu_milli,
            memory_mib=job.memory_mib,
            devices=job.devices,
            gpu_milli=job.gpu_milli,
            gpu_memory_mib=job.gpu_memory_mib,
        ),
        replicas_min=job.replicas_min,
        replicas_max=_replicas_most(job, now),
        flavors=tuple(job.flavors),
        priority=job.priority_class.value,
        preemptible=job.priority_class.preemptible,
        time_limit_s=job.time_limit_s / job.cluster.clock_scale,
        submitted_s=job.submitted_at.timestamp(),
        tolerations=frozenset(job.tolerations),
        not_before_s=job.not_before.timestamp() if job.not_before else 0.0,
        min_throughput=job.min_throughput,
        promised_s=job.promised_at.timestamp() if job.promised_at else 0.0,
        preempted_count=job.preempted_count,
        topology=_topology(job),
        placement_wish=job.placement_wish,
        job_class=job.job_class,
        interference=job.interference or job.job_class,
        anti_affinity=job.anti_affinity,
    )


def classed(jobs: Iterable[JobSpec], throughputs: Throughputs) -> tuple[JobSpec, ...]:
    """Return jobs under their tenant's own class, where something was learnt of that."""
    learnt = {job_class for job_class, _ in throughputs}

    def named(job: JobSpec) -> JobSpec:
        own = own_class(job.job_class, job.tenant)
        return replace(job, job_class=own) if own in learnt else job

    return tuple(named(job) for job in jobs)


def _topology(job: Job) -> TopologyWish | None:
    level = job.required_topology or job.preferred_topology
    return TopologyWish(Level(level), bool(job.required_topology)) if level else None


def _replicas_most(job: Job, now: datetime) -> int:
    """Return how many replicas a job may have: those of its last resize, for as long as it counts.

    Else a job that shrank for another would take the room back.
    """
    if job.resized_to is None or job.resized_until is None or now >= job.resized_until:
        return job.replicas_max
    return min(job.replicas_max, max(job.replicas_min, job.resized_to))


def pending_jobs(cluster: Cluster, now: datetime) -> tuple[JobSpec, ...]:
    """Return the jobs that wait, as many as one decision looks at."""
    rows = (
        Job.objects.filter(cluster=cluster, state=JobState.QUEUED)
        .select_related("tenant", "priority_class", "cluster")
        .defer(*HEAVY)
        .order_by("-priority_class__value", "submitted_at", "uid")[:PENDING_LIMIT]
    )
    return tuple(job_spec(job, now) for job in rows)


def running_jobs(
    cluster: Cluster, node_index: Indices, device_index: Indices, now: datetime
) -> tuple[RunningJob, ...]:
    """Return the jobs that hold something, oldest hold first."""
    held = Placement.objects.filter(cluster=cluster, released_at__isnull=True)
    replicas = _replicas(held, node_index, device_index)
    rows = (
        held.select_related("job__tenant", "job__priority_class", "job__cluster")
        .defer(*(f"job__{name}" for name in HEAVY))
        .annotate(
            eviction=FilteredRelation("intents", condition=Q(intents__verb=Verb.EVICT)),
            told_at=F("eviction__created_at"),
            grace_s=F("eviction__grace_s"),
            target=F("eviction__target"),
        )
        .order_by("created_at", "pk")
    )
    return tuple(
        _running_job(
            row,
            tuple(replicas[row.pk]),
            replicas_stored(row.target or (), node_index, device_index),
            now,
        )
        for row in rows
    )


def _running_job(
    row: Any,
    replicas: tuple[ReplicaPlacement, ...],
    target: Sequence[ReplicaPlacement],
    now: datetime,
) -> RunningJob:
    """Return a running job; `row` is a placement with its eviction, if it has one."""
    job: Job = row.job
    spec = job_spec(job, now)
    safe = safe_until(job=job, placement=row, now=now)
    told = row.told_at is not None
    grace = timedelta(seconds=row.grace_s / job.cluster.clock_scale) if told else timedelta()
    return RunningJob(
        spec=replace(spec, replicas_max=max(spec.replicas_max, len(replicas))),
        replicas=replicas,
        started_s=(row.started_at or row.created_at).timestamp(),
        checkpointed_s=safe.timestamp() if safe else None,
        ending_s=(row.told_at + grace).timestamp() if told else None,
        keeps=without(replicas, without(replicas, target)),
    )


def replicas_stored(
    stored: Sequence[Mapping[str, Any]], node_index: Indices, device_index: Indices
) -> list[ReplicaPlacement]:
    """Return the replicas that a resized job is to go on with; those of hardware gone are left out.

    Args:
        stored: as in `Intent.target`.
        node_index: primary key -> index in the snapshot's arrays.
        device_index: the same of devices.
    """
    return [
        ReplicaPlacement(
            node=node_index[one["node"]],
            devices=tuple(sorted(device_index[key] for key in one["devices"])),
            gpu_milli=one["gpu_milli"],
            gpu_memory_mib=one["gpu_memory_mib"],
        )
        for one in stored
        if one["node"] in node_index and all(key in device_index for key in one["devices"])
    ]


def _replicas(
    held: QuerySet[Placement], node_index: Indices, device_index: Indices
) -> dict[int, list[ReplicaPlacement]]:
    """Return placement -> what its replicas hold, in their order."""
    holds: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for replica, device, milli, memory in DeviceHold.objects.filter(
        replica__placement__in=held
    ).values_list("replica_id", "device_id", "gpu_milli", "memory_mib"):
        holds[replica].append((device_index[device], milli, memory))
    found: dict[int, list[ReplicaPlacement]] = defaultdict(list)
    rows = ReplicaHold.objects.filter(placement__in=held).order_by("placement_id", "index")
    for key, placement, node in rows.values_list("pk", "placement_id", "node_id"):
        taken = sorted(holds[key])
        found[placement].append(
            ReplicaPlacement(
                node=node_index[node],
                devices=tuple(device for device, _, _ in taken),
                gpu_milli=taken[0][1] if taken else 0,
                gpu_memory_mib=taken[0][2] if taken else 0,
            )
        )
    return found
