"""Lets resized jobs go on at once, with the replicas that they were told to have.

A resize ends an attempt and starts the next one from its checkpoint; see ADR 0009. The next cycle
after the end gives the job its places before it decides anything, so that nobody else can take
them. Where the independent verifier finds that they do not hold any more, as on a node that failed
meanwhile, the job is left to the ordinary decision.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError
from django.db.models import F

from scheduler.choices import JobState, Verb
from scheduler.core.errors import InvalidPlanError
from scheduler.core.plan import NOT_NEEDED, Plan, SolverReport, Start
from scheduler.core.snapshot import Snapshot
from scheduler.core.verify import verify
from scheduler.models import Decision, Intent
from scheduler.services.attempts import RESIZED
from scheduler.services.plans import StartWriter
from scheduler.snapshots import Frozen
from scheduler.snapshots.jobs import Indices, replicas_stored
from telemetry.models import Cluster
from tenants.errors import ConflictError

REPORT = SolverReport("rules", "rules", NOT_NEEDED)


def rescale(*, cluster: Cluster, frozen: Frozen, now: datetime) -> int:
    """Start the resized jobs that wait and whose replicas are free; return how many."""
    if not any(job.promised_s for job in frozen.snapshot.pending):
        return 0
    resized = _resized(cluster)
    nodes = {key: index for index, key in enumerate(frozen.keys.nodes)} if resized else {}
    devices = {key: index for index, key in enumerate(frozen.keys.devices)} if resized else {}
    started: list[Start] = []
    for intent in resized:
        start = _start(intent, nodes, devices)
        if start is not None and _holds(frozen.snapshot, [*started, start]):
            started += _written(start, frozen, now)
    return len(started)


def _resized(cluster: Cluster) -> Sequence[Intent]:
    """Return the resizes whose jobs have ended their attempt and not begun the next."""
    return list(
        Intent.objects.filter(
            verb=Verb.EVICT,
            reason=RESIZED,
            placement__cluster=cluster,
            placement__job__state=JobState.QUEUED,
            placement__job__promised_at__isnull=False,
            placement__attempt=F("placement__job__attempt"),
        )
        .select_related("placement")
        .order_by("pk")
    )


def _start(intent: Intent, nodes: Indices, devices: Indices) -> Start | None:
    """Return the start that was decided; None where a node or a device is no longer known."""
    replicas = replicas_stored(intent.target, nodes, devices)
    if len(replicas) != len(intent.target):
        return None
    placement = intent.placement
    return Start(
        uid=str(placement.job_id),
        replicas=tuple(replicas),
        flavor=placement.flavor,
        score=placement.score,
        priority_parts=placement.priority_parts,
    )


def _holds(snapshot: Snapshot, starts: Sequence[Start]) -> bool:
    """Return whether starts keep every rule, in a world where nobody else waits."""
    uids = {start.uid for start in starts}
    waiting = tuple(job for job in snapshot.pending if job.uid in uids)
    alone = replace(snapshot, pending=waiting)
    plan = Plan(
        cluster=snapshot.cluster,
        now_s=snapshot.now_s,
        starts=tuple(starts),
        pending=(),
        fair_shares=(),
        solver=REPORT,
    )
    try:
        verify(alone, plan)
    except InvalidPlanError:
        return False
    return True


def _written(start: Start, frozen: Frozen, now: datetime) -> list[Start]:
    """Write a start under the cycle that decided the resize; [] where somebody was faster."""
    decided = Decision.objects.filter(job=UUID(start.uid), verb="resize").select_related(
        "cycle__cluster"
    )
    decision = decided.order_by("-cycle_id").first()
    if decision is None:
        return []
    fleet = frozen.snapshot.fleet
    writer = StartWriter(cycle=decision.cycle, fleet=fleet, keys=frozen.keys, now=now)
    try:
        return [start] if writer.write([start]) else []
    except (IntegrityError, ConflictError):
        return []
