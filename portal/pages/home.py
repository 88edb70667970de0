"""What matters to this person now: their jobs, what can start, quotas, the clusters' pulse."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.flavor_names import flavor_label
from portal.pages import clock
from portal.pages.quota_bars import QuotaLine, tenant_lines
from portal.pages.signed_in import SignedInRequest
from portal.pages.waiting import waiting
from scheduler import snapshots
from scheduler.choices import FINAL_STATES, WAITING_STATES
from scheduler.core.snapshot import Fleet, Snapshot
from scheduler.models import Job
from scheduler.selectors.fleet import fleet_rows
from scheduler.selectors.jobs import job_list
from telemetry.models import Cluster
from telemetry.selectors import cluster_list
from tenants.selectors import tenants_submittable

OPEN_SHOWN = 20
ENDED_SHOWN = 6
QUOTAS_SHOWN = 6
WHOLE_MILLI = 1000


@require_safe
def home(request: SignedInRequest) -> HttpResponse:
    """Show the viewer's own part of everything."""
    now = clock.now()
    mine = job_list(viewer=request.user).filter(owner_id=request.user.pk)
    open_jobs = list(mine.exclude(state__in=FINAL_STATES)[:OPEN_SHOWN])
    tenants = list(tenants_submittable(viewer=request.user).order_by("slug"))
    names = {tenant.slug: tenant.name for tenant in tenants}
    real_first = sorted(cluster_list(enabled=True), key=lambda c: (c.is_simulated, c.slug))
    clusters = [_cluster(cluster, names, now) for cluster in real_first]
    context = {
        "now": now,
        "open_jobs": [_open(job) for job in open_jobs],
        "ended": _ended(mine),
        "clusters": clusters,
        "tenants": tenants,
        "is_new": not open_jobs and not mine.exists(),
    }
    return render(request, "pages/home.html", context)


def _open(job: Job) -> dict[str, Any]:
    return {"job": job, "waiting": waiting(job.pending) if job.state in WAITING_STATES else None}


def _ended(mine: QuerySet[Job]) -> list[Job]:
    return list(mine.filter(state__in=FINAL_STATES).order_by("-finished_at", "uid")[:ENDED_SHOWN])


def _cluster(cluster: Cluster, names: dict[str, str], now: datetime) -> dict[str, Any]:
    """Return a cluster's pulse, what is free on it, and the quotas of some tenants there."""
    snapshot = snapshots.take(cluster=cluster, now=now).snapshot
    quotas = _quotas(snapshot, names)
    return {
        "cluster": cluster,
        "pulse": fleet_rows(cluster)["cluster"],
        "free": free_now(snapshot.fleet),
        "quotas": quotas[:QUOTAS_SHOWN],
        "more_quotas": len(quotas) > QUOTAS_SHOWN,
    }


def _quotas(snapshot: Snapshot, names: dict[str, str]) -> list[tuple[str, QuotaLine]]:
    """Return tenant and line, those in use first, the fullest of them first of all."""
    lines = tenant_lines(snapshot, names)
    lines.sort(key=lambda line: -line.row.used / max(1, line.bar.scale))
    return [(names[line.row.tenant], line) for line in lines]


def free_now(fleet: Fleet) -> dict[str, Any]:
    """Return the largest CPU job that fits one ready node now, and the free devices by model."""
    cpu = memory = 0
    if fleet.node_ready.any():
        cpu = max(0, int(fleet.node_cpu_free_milli[fleet.node_ready].max()))
        memory = max(0, int(fleet.node_memory_free_mib[fleet.node_ready].max()))
    usable = (
        fleet.device_healthy
        & (fleet.device_free_milli == WHOLE_MILLI)
        & fleet.node_ready[fleet.device_node]
    )
    return {
        "cpu_milli": cpu,
        "memory_mib": memory,
        "flavors": [
            {
                "slug": flavor.name,
                "name": flavor_label(flavor.name),
                "free": int((usable & (fleet.device_flavor == index)).sum()),
                "total": int((fleet.device_flavor == index).sum()),
            }
            for index, flavor in enumerate(fleet.flavors)
        ],
    }
