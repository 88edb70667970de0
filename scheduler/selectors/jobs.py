"""Jobs as people see them."""

from collections.abc import Collection
from typing import Any

from django.db.models import Count, Q, QuerySet

from scheduler.choices import FINAL_STATES, HOLDING_STATES, JobState
from scheduler.execute.base import LogChunk
from scheduler.models import Decision, Job, JobEvent, Placement, PriorityClass
from scheduler.ports import cluster_executor
from tenants.models import Viewer


def job_list(*, viewer: "Viewer") -> QuerySet[Job]:
    """Return the jobs that the viewer may see, newest first, with what a row shows."""
    return (
        Job.objects.visible_to(viewer)
        .select_related("tenant", "cluster", "owner", "priority_class")
        .order_by("-submitted_at", "uid")
    )


def job_get(*, viewer: "Viewer", uid: str) -> Job:
    """Return one job.

    Raises:
        Job.DoesNotExist: there is none, or the viewer may not see it; nobody can tell which.
    """
    return job_list(viewer=viewer).get(pk=uid)


def job_events(*, viewer: "Viewer", job: Job) -> QuerySet[JobEvent]:
    """Return a job's events, oldest first."""
    visible = Job.objects.visible_to(viewer).filter(pk=job.pk)
    return JobEvent.objects.filter(job__in=visible).order_by("at", "pk")


def job_placements(*, viewer: "Viewer", job: Job) -> QuerySet[Placement]:
    """Return a job's placements, newest first, with nodes and devices."""
    return placement_list(viewer=viewer).filter(job=job)


def placement_list(*, viewer: "Viewer") -> QuerySet[Placement]:
    """Return the placements of the jobs that the viewer may see, newest first."""
    return (
        Placement.objects.filter(job__in=Job.objects.visible_to(viewer))
        .select_related("job__tenant", "job__owner", "cluster")
        .prefetch_related("replicas__node", "replicas__device_holds__device")
        .order_by("-created_at", "-pk")
    )


def decision_list(*, viewer: "Viewer") -> QuerySet[Decision]:
    """Return what cycles said of the jobs that the viewer may see, newest first."""
    return (
        Decision.objects.filter(job__in=Job.objects.visible_to(viewer))
        .select_related("cycle__cluster", "job__tenant")
        .order_by("-cycle_id", "pk")
    )


def job_counts(*, viewer: "Viewer") -> dict[str, int]:
    """Return how many of the viewer's visible jobs wait, run and have ended."""
    counts: dict[str, Any] = Job.objects.visible_to(viewer).aggregate(
        waiting=Count("pk", filter=Q(state=JobState.QUEUED)),
        running=Count("pk", filter=Q(state__in=HOLDING_STATES)),
        ended=Count("pk", filter=Q(state__in=FINAL_STATES)),
    )
    return counts


def job_log(*, job: Job, since: int, limit: int) -> LogChunk:
    """Return a piece of a job's output, of its present or last attempt; `job` was scoped before."""
    if job.attempt == 0:
        return LogChunk(data=b"", since=since, size=0)
    return cluster_executor(job.cluster).log(str(job.pk), job.attempt, since=since, limit=limit)


def priority_class_list() -> QuerySet[PriorityClass]:
    """Return the priority classes, highest first."""
    return PriorityClass.objects.order_by("-value", "slug")


def jobs_named(*, viewer: "Viewer", uids: Collection[str]) -> QuerySet[Job]:
    """Return those of some jobs that the viewer may see, with their tenants."""
    return Job.objects.visible_to(viewer).filter(pk__in=uids).select_related("tenant")
