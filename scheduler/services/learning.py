"""Learns from jobs that ended how fast a tenant's classes of jobs run on flavors.

What is measured is the time from start to success of the same work on two flavors. Two jobs did the
same work where they are of one tenant and class and equal in command, image, environment, shape of
a replica and number of replicas. Only runs say something that nobody interrupted and nobody shared
a device with: first attempts that succeeded, with whole devices, on clusters that are not
simulated, of a minute at least (below, it is the start that is measured). A work whose amount is
another in each run (a service, a notebook, a search that stops early) says nothing reliable; the
median over works and the least number of runs bound what it can spoil, and that to its own tenant.
"""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import models, transaction
from django.db.models import Count, F, OuterRef, Subquery
from django.db.models.functions import MD5, Cast

from scheduler.choices import JobKind, JobState
from scheduler.core.throughputs import Measured, Run, learn
from scheduler.models import Job, LearntThroughput, Placement
from scheduler.models.throughputs import THROUGHPUT_MOST
from scheduler.services.given import wake
from telemetry.choices import ClusterKind

WINDOW_DAYS = 90
"""What ended earlier says nothing any more: code and drivers change."""

LEAST_RUN_S = 60.0
MOST_RUNS = 5000

COMPARED_KINDS = (JobKind.TRAINING, JobKind.BATCH)
"""Kinds of jobs that end when their work is done."""

SAME = (
    "image",
    "cpu_milli",
    "memory_mib",
    "devices",
    "replicas_held",
    "command_md5",
    "env_md5",
)
"""What is equal of runs of the same work."""

_Key = tuple[str, str, str]
"""Tenant, class, flavor."""


def throughputs_learn(*, now: datetime) -> int:
    """Replace what was learnt by what the runs of the last days show; return how many rows."""
    rows = _ended(now)
    newest: dict[_Key, datetime] = {}
    for row in reversed(rows):  # the newest is the last that is noted
        newest[*_class_of(row), row["flavor"]] = row["finished_at"]
    measured = _measured(rows)
    keys = sorted(measured, key=lambda key: (-newest[key].timestamp(), key))[:THROUGHPUT_MOST]
    fresh = [_row(key, measured[key], newest[key]) for key in keys]
    if not fresh and not LearntThroughput.objects.exists():
        return 0
    with transaction.atomic():
        before = set(LearntThroughput.objects.select_for_update().values_list(*COLUMNS))
        LearntThroughput.objects.all().delete()
        LearntThroughput.objects.bulk_create(fresh)
        if {tuple(getattr(row, name) for name in COLUMNS) for row in fresh} != before:
            wake()
    return len(fresh)


COLUMNS = ("tenant_id", "job_class", "flavor", "throughput")
"""What decisions look at."""


def _ended(now: datetime) -> list[dict[str, Any]]:
    """Return the runs that can be compared, the newest first."""
    first = Placement.objects.filter(job=OuterRef("pk"), attempt=1)
    held = first.annotate(count=Count("replicas")).values("count")
    rows = (
        Job.objects.filter(
            state=JobState.SUCCEEDED,
            kind__in=COMPARED_KINDS,
            finished_at__gte=now - timedelta(days=WINDOW_DAYS),
            started_at__lt=F("finished_at"),
            attempt=1,
            devices__gt=0,
            gpu_milli=1000,
        )
        .exclude(job_class="")
        .exclude(cluster__kind=ClusterKind.SIMULATED)
        .annotate(
            flavor=Subquery(first.values("flavor")[:1]),
            replicas_held=Subquery(held[:1]),
            command_md5=MD5("command"),
            env_md5=MD5(Cast("env", models.TextField())),
            clock_scale=F("cluster__clock_scale"),
        )
        .exclude(flavor="")
        .order_by("-finished_at", "pk")
        .values(
            "tenant_id", "job_class", "flavor", "started_at", "finished_at", "clock_scale", *SAME
        )
    )
    return list(rows[:MOST_RUNS])


def _class_of(row: dict[str, Any]) -> tuple[str, str]:
    return str(row["tenant_id"]), row["job_class"]


def _measured(rows: Iterable[dict[str, Any]]) -> dict[_Key, Measured]:
    """Return what the runs of each tenant's classes show."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for row in rows:
        run_s = (row["finished_at"] - row["started_at"]).total_seconds() * row["clock_scale"]
        if run_s >= LEAST_RUN_S:
            tenant, job_class = _class_of(row)
            work = repr([row[name] for name in SAME])
            runs[tenant].append(Run(job_class, work, row["flavor"], run_s))
    return {
        (tenant, job_class, flavor): measured
        for tenant in sorted(runs)
        for (job_class, flavor), measured in learn(runs[tenant]).items()
    }


def _row(key: _Key, measured: Measured, newest: datetime) -> LearntThroughput:
    tenant, job_class, flavor = key
    return LearntThroughput(
        tenant_id=int(tenant),
        job_class=job_class,
        flavor=flavor,
        throughput=measured.throughput,
        work_count=measured.works,
        run_count=measured.runs,
        last_run_at=newest,
    )
