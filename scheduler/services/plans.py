"""Commits what a cycle decided: holds, states and intents, job by job.

Every start is one transaction of its own: a job that was cancelled meanwhile, or a device that
PostgreSQL finds taken, costs that job its turn and nobody else's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import IntegrityError, models, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import Func, Max

from scheduler.choices import JobState, Verb
from scheduler.core.plan import Plan, Start
from scheduler.core.reasons import Pending
from scheduler.core.resources import WHOLE_MILLI
from scheduler.core.snapshot import Fleet
from scheduler.models import Cycle, Decision, DeviceHold, Intent, Job, Placement, ReplicaHold
from scheduler.services.transitions import job_move
from telemetry.models import Cluster
from tenants.errors import ConflictError

ACTOR = "scheduler"


class Upper(Func):
    """The end of a range."""

    function = "upper"
    output_field = models.DateTimeField()


@dataclass(frozen=True, slots=True)
class FleetKeys:
    """Database keys in the order of the snapshot's arrays.

    Attributes:
        nodes: (nodes,) primary keys.
        devices: (devices,) primary keys.
    """

    nodes: tuple[int, ...]
    devices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a plan's starts."""

    cycle: Cycle
    started: tuple[str, ...]
    lost: Mapping[str, str]


def plan_commit(
    *,
    cluster: Cluster,
    plan: Plan,
    fleet: Fleet,
    keys: FleetKeys,
    now: datetime,
    timings: dict[str, float],
) -> Committed:
    """Write a cycle, its starts with their intents, and why the others wait."""
    cycle = _cycle_create(cluster, plan, now, timings)
    uids = [start.uid for start in plan.starts] + [held.uid for held in plan.pending]
    jobs = {
        str(job.pk): job
        for job in Job.objects.filter(pk__in=uids, state=JobState.QUEUED).select_related("cluster")
    }
    started: list[str] = []
    lost: dict[str, str] = {}
    for start in plan.starts:
        job = jobs.get(start.uid)
        if job is None:
            lost[start.uid] = "no longer queued"
            continue
        try:
            with transaction.atomic():
                _start(job, start, cycle, fleet, keys, now)
        except (IntegrityError, ConflictError) as clash:
            lost[start.uid] = str(clash).splitlines()[0]
        else:
            started.append(start.uid)
    _pending_write(plan.pending, jobs, cycle)
    return Committed(cycle=cycle, started=tuple(started), lost=lost)


def _cycle_create(
    cluster: Cluster, plan: Plan, now: datetime, timings: dict[str, float]
) -> Cycle:
    solver = plan.solver
    return Cycle.objects.create(
        cluster=cluster,
        at=now,
        strategy=solver.strategy,
        asked=solver.asked,
        status=solver.status,
        note=solver.note,
        objective=solver.objective,
        objective_rules=solver.objective_rules,
        gap_frac=solver.gap_frac,
        pending_count=len(plan.pending),
        start_count=len(plan.starts),
        wall_ms=round(sum(timings.values())),
        timings=timings,
        fair_shares=[
            {
                "tenant": row.tenant,
                "flavor": row.flavor,
                "entitled": row.entitled,
                "fair": row.fair,
                "allocated": row.allocated,
                "requested": row.requested,
            }
            for row in plan.fair_shares
        ],
    )


def _start(
    job: Job, start: Start, cycle: Cycle, fleet: Fleet, keys: FleetKeys, now: datetime
) -> None:
    attempt = job.attempt + 1
    job_move(
        job=job,
        to=JobState.STARTING,
        actor=ACTOR,
        now=now,
        reason="placed",
        attempt=attempt,
        pending={},
        data={"attempt": attempt, "nodes": sorted({fleet.node_names[r.node] for r in start.replicas})},
    )
    placement = Placement.objects.create(
        job=job,
        attempt=attempt,
        cluster=cycle.cluster,
        flavor=start.flavor,
        score=start.score,
        priority_parts=dict(start.priority_parts),
        created_at=now,
    )
    _holds_create(job, placement, start, keys, now)
    Intent.objects.create(placement=placement, verb=Verb.BIND, created_at=now)
    Decision.objects.create(
        cycle=cycle,
        job=job,
        verb="start",
        score=start.score,
        priority_parts=dict(start.priority_parts),
        evidence={
            "flavor": start.flavor,
            "nodes": [fleet.node_names[r.node] for r in start.replicas],
        },
    )


def _holds_create(
    job: Job, placement: Placement, start: Start, keys: FleetKeys, now: datetime
) -> None:
    replicas = ReplicaHold.objects.bulk_create(
        ReplicaHold(
            placement=placement,
            index=index,
            node_id=keys.nodes[replica.node],
            cpu_milli=job.cpu_milli,
            memory_mib=job.memory_mib,
        )
        for index, replica in enumerate(start.replicas)
    )
    device_keys = [keys.devices[d] for replica in start.replicas for d in replica.devices]
    opened_at = _free_since(device_keys, now)
    holds = [
        DeviceHold(
            replica=row,
            device_id=keys.devices[device],
            gpu_milli=replica.gpu_milli,
            memory_mib=replica.gpu_memory_mib,
            exclusive=replica.gpu_milli == WHOLE_MILLI,
            period=DateTimeTZRange(opened_at, None),
        )
        for row, replica in zip(replicas, start.replicas, strict=True)
        for device in replica.devices
    ]
    DeviceHold.objects.bulk_create(sorted(holds, key=lambda hold: hold.device_id))


def _free_since(device_keys: list[int], now: datetime) -> datetime:
    """Return `now`, or the end of the latest hold where the clock has stepped back behind it."""
    latest = DeviceHold.objects.filter(
        device_id__in=device_keys, period__endswith__gt=now
    ).aggregate(latest=Max(Upper("period")))["latest"]
    return latest or now


def _pending_write(
    pending: tuple[Pending, ...], jobs: Mapping[str, Job], cycle: Cycle
) -> None:
    changed: list[Job] = []
    decisions: list[Decision] = []
    for held in pending:
        job = jobs.get(held.uid)
        if job is None:
            continue
        answer = pending_json(held)
        if answer == job.pending:
            continue
        if job.pending.get("code") != answer["code"]:
            decisions.append(_hold_decision(held, job, cycle))
        job.pending = answer
        changed.append(job)
    Decision.objects.bulk_create(decisions)
    Job.objects.bulk_update(changed, ["pending"], batch_size=500)


def _hold_decision(held: Pending, job: Job, cycle: Cycle) -> Decision:
    return Decision(
        cycle=cycle,
        job=job,
        verb="hold",
        code=held.code,
        evidence=dict(held.evidence),
        expected_start_p50=_time(held.expected_start_p50_s),
        expected_start_p90=_time(held.expected_start_p90_s),
    )


def pending_json(held: Pending) -> dict[str, Any]:
    """Return a waiting reason as it is stored with the job."""
    p50, p90 = _time(held.expected_start_p50_s), _time(held.expected_start_p90_s)
    return {
        "code": str(held.code),
        "evidence": dict(held.evidence),
        "remedies": [{"code": r.code, "params": dict(r.params)} for r in held.remedies],
        "expected_start_p50": p50.isoformat() if p50 else None,
        "expected_start_p90": p90.isoformat() if p90 else None,
        "position": held.position,
        "priority_parts": dict(held.priority_parts),
    }


def _time(epoch_s: float | None) -> datetime | None:
    return None if epoch_s is None else datetime.fromtimestamp(round(epoch_s), tz=UTC)
