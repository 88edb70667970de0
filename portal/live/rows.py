"""The rows of live pages: small, JSON, and only what the viewer may see."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from portal import reasons
from portal.live.deltas import Rows
from scheduler.choices import FINAL_STATES, HOLDING_STATES, WAITING_STATES
from scheduler.execute.base import ExecutorUnavailableError
from scheduler.models import Job
from scheduler.selectors.fairness import fairness_get
from scheduler.selectors.jobs import job_list, job_log, placement_list
from telemetry.models import Cluster
from telemetry.selectors import job_series

JOBS_MOST = 500
ENDED_SHOWN = timedelta(minutes=2)
USE_OVER = timedelta(seconds=60)


def job_rows(user: User, job: Job) -> Rows:
    """Return `job`, `placement`, `use` and `log` of one job."""
    return {
        "job": _whole(job),
        "placement": _placement(user, job),
        "use": _use(job),
        "log": _log(job),
    }


def active_rows(user: User) -> Rows:
    """Return uid -> row of the jobs that wait, run, or have ended a moment ago; newest first."""
    since = timezone.now() - ENDED_SHOWN  # noqa: TID251 - the outermost layer
    lately = Q(state__in=FINAL_STATES, finished_at__gte=since)
    jobs = job_list(viewer=user).filter(~Q(state__in=FINAL_STATES) | lately)
    return {str(job.pk): _short(job) for job in jobs[:JOBS_MOST]}


def fairness_rows(user: User, cluster: Cluster) -> Rows:
    """Return `tenant|flavor` -> shares, and `cycle` -> when they were found."""
    found = fairness_get(viewer=user, cluster=cluster)
    rows: dict[str, dict[str, Any]] = {
        f"{row['tenant'] or ''}|{row['flavor']}": row for row in found.rows
    }
    return rows | {"cycle": {"at": _iso(found.at)}}


def _short(job: Job) -> dict[str, Any]:
    waits = reasons.pending_view(job.pending) if job.state in WAITING_STATES else None
    return {
        "name": job.name,
        "tenant": job.tenant.slug,
        "cluster": job.cluster.slug,
        "owner": job.owner.get_username(),
        "state": job.state,
        "pending": waits
        and {
            name: waits[name]
            for name in ("code", "message", "position", "expected_start_p50", "expected_start_p90")
        },
        "submitted_at": _iso(job.submitted_at),
        "started_at": _iso(job.started_at),
        "finished_at": _iso(job.finished_at),
    }


def _whole(job: Job) -> dict[str, Any]:
    ended = job.state in FINAL_STATES
    return {
        **_short(job),
        "pending": reasons.pending_view(job.pending) if job.state in WAITING_STATES else None,
        "attempt": job.attempt,
        "exit_code": job.exit_code,
        "reason": job.reason,
        "reason_message": reasons.end_sentence(job.reason) if ended else "",
        "message": job.message,
        "cancel_requested_at": _iso(job.cancel_requested_at),
        "ended": ended,
    }


def _placement(user: User, job: Job) -> dict[str, Any]:
    last = placement_list(viewer=user).filter(job=job).first()
    if last is None:
        return {"attempt": 0, "replicas": []}
    return {
        "attempt": last.attempt,
        "flavor": last.flavor,
        "created_at": _iso(last.created_at),
        "started_at": _iso(last.started_at),
        "released_at": _iso(last.released_at),
        "replicas": [
            {
                "node": replica.node.name,
                "devices": [
                    {"index": hold.device.index, "gpu_milli": hold.gpu_milli}
                    for hold in replica.device_holds.all()
                ],
            }
            for replica in last.replicas.all()
        ],
    }


def _use(job: Job) -> dict[str, Any]:
    """Return the newest sample of the last minute: cores busy and resident memory."""
    points = []
    if job.state in HOLDING_STATES:
        now = timezone.now()  # noqa: TID251 - the outermost layer
        points = [
            p
            for p in job_series(job_uid=job.pk, since=now - USE_OVER, until=now, points=12)
            if p.utilised_frac is not None or p.memory_used_mib is not None
        ]
    if not points:
        return {"at": None, "cpu_cores": None, "memory_mib": None}
    last = points[-1]
    cores = None if last.utilised_frac is None else round(last.utilised_frac, 3)
    return {"at": _iso(last.at), "cpu_cores": cores, "memory_mib": last.memory_used_mib}


def _log(job: Job) -> dict[str, Any]:
    try:
        chunk = job_log(job=job, since=0, limit=0)
    except ExecutorUnavailableError:
        return {"attempt": job.attempt, "size": None, "truncated": False}
    return {"attempt": job.attempt, "size": chunk.size, "truncated": chunk.truncated}


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
