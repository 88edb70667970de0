"""Invented jobs for simulated fleets, so that there is something to watch.

What arrives is a function of the cluster and of the time, in ticks: two workers that draw the same
tick submit the same keys, and the second one's come to nothing.
"""

from dataclasses import dataclass
from datetime import datetime
from random import Random

from django.contrib.auth.models import User

from scheduler.choices import JobKind, JobState
from scheduler.models import Job, PriorityClass
from scheduler.services.jobs import job_submit
from scheduler.services.validation import JobRequest
from telemetry.models import Cluster
from tenants.models import Membership, Tenant

TICK_S = 5
QUEUE_MOST = 12
"""No more arrive while so many wait: a demo shows a queue, not an avalanche."""

LEAST_WEIGHT = 0.01
"""Of a tenant with weight 0: it asks, though rarely."""

DEMO_OWNER = "demo"


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of job that people often ask for.

    Attributes:
        chance: relative frequency.
        hours: least and most simulated hours that it runs.
    """

    chance: int
    kind: JobKind
    name: str
    replicas: int
    devices: int
    gpu_milli: int
    cpu_milli: int
    memory_mib: int
    flavors: tuple[str, ...]
    hours: tuple[float, float]


SHAPES = (
    Shape(6, JobKind.TRAINING, "finetune", 1, 4, 1000, 32_000, 262_144, (), (1.0, 4.0)),
    Shape(4, JobKind.TRAINING, "pretrain", 2, 8, 1000, 64_000, 524_288, (), (2.0, 6.0)),
    Shape(8, JobKind.TRAINING, "ablation", 1, 1, 1000, 8_000, 65_536, (), (0.5, 3.0)),
    Shape(5, JobKind.INFERENCE, "serve", 2, 1, 500, 4_000, 32_768, (), (2.0, 8.0)),
    Shape(5, JobKind.NOTEBOOK, "notebook", 1, 1, 250, 4_000, 16_384, (), (0.5, 2.0)),
    Shape(3, JobKind.BATCH, "preprocess", 4, 0, 1000, 8_000, 32_768, (), (0.3, 1.5)),
)


def arrive(*, cluster: Cluster, now: datetime) -> Job | None:
    """Submit the job of this tick, if one is due and the queue is not yet long."""
    tick = int(now.timestamp()) // TICK_S
    draw = Random(f"{cluster.slug}/{tick}")  # noqa: S311 - a demo needs no secrecy
    if draw.random() < 0.3:  # noqa: PLR2004 - three ticks in ten bring nobody
        return None
    if Job.objects.filter(cluster=cluster, state=JobState.QUEUED).count() >= QUEUE_MOST:
        return None
    owner, tenants = _owner_and_tenants()
    classes = list(PriorityClass.objects.order_by("value", "slug"))
    if owner is None or not tenants or not classes:
        return None
    weights = [tenant.fair_weight or LEAST_WEIGHT for tenant in tenants]
    tenant = draw.choices(tenants, weights)[0]
    job, _new = job_submit(
        actor=owner,
        request=_request(draw, tick, cluster, tenant, classes),
        now=now,
        pending={"code": "pending_evaluation"},
        idempotency_key=f"demo/{cluster.slug}/{tick}",
        expected_duration_s=_duration_s(draw),
    )
    return job


def _owner_and_tenants() -> tuple[User | None, list[Tenant]]:
    rows = list(
        Membership.objects.filter(user__username=DEMO_OWNER)
        .select_related("user", "tenant")
        .order_by("tenant__slug")
    )
    return (rows[0].user if rows else None), [row.tenant for row in rows]


def _request(
    draw: Random, tick: int, cluster: Cluster, tenant: Tenant, classes: list[PriorityClass]
) -> JobRequest:
    shape = draw.choices(SHAPES, [shape.chance for shape in SHAPES])[0]
    return JobRequest(
        name=f"{shape.name}-{tick % 10_000:04d}",
        tenant=tenant,
        cluster=cluster,
        kind=shape.kind,
        command="simulated: nothing is run",
        priority_class=draw.choices(classes, range(len(classes), 0, -1))[0],
        replicas_min=shape.replicas,
        replicas_max=shape.replicas,
        cpu_milli=shape.cpu_milli,
        memory_mib=shape.memory_mib,
        devices=shape.devices,
        gpu_milli=shape.gpu_milli,
        flavors=shape.flavors,
        time_limit_s=round(shape.hours[1] * 3600),
    )


def _duration_s(draw: Random) -> float:
    return round(3600 * draw.uniform(0.3, 4.0), 1)
