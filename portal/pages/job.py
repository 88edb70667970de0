"""One job: where it stands and why, what it prints, uses and holds; cancel and submit again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from portal import reasons
from portal.flavor_names import flavor_label
from portal.pages import clock
from portal.pages.forms.request import wishes
from portal.pages.job_charts import job_figure
from portal.pages.signed_in import SignedInRequest, job_or_404, refused
from portal.pages.waiting import priority_rows, waiting
from scheduler.choices import FINAL_STATES, HOLDING_STATES, WAITING_STATES, JobState
from scheduler.models import Job, JobEvent, LedgerEntry, Placement
from scheduler.selectors.expected import expected_score
from scheduler.selectors.jobs import job_events, job_placements, jobs_named
from scheduler.selectors.usage import MILLI_US_PER_DEVICE_HOUR
from scheduler.services.jobs import job_cancel
from scheduler.submission import JobRefusedError, job_as_data, job_ask
from tenants import policies
from tenants.errors import DomainError

EVENTS_SHOWN = 200
REPLICAS_SHOWN = 32


@require_safe
def job_detail(request: SignedInRequest, uid: UUID) -> HttpResponse:
    """Show one job."""
    job = job_or_404(request, uid)
    request.cluster_on_page = job.cluster
    now = clock.now()
    waits = job.state in WAITING_STATES
    placements = list(job_placements(viewer=request.user, job=job).prefetch_related("ledger"))
    context = {
        "job": job,
        "now": now,
        "final": job.state in FINAL_STATES,
        "holding": job.state in HOLDING_STATES,
        "waiting": waiting(job.pending) if waits else None,
        "score": expected_score(cluster=job.cluster) if waits else None,
        "ending": reasons.end_sentence(job.reason) if job.state in FINAL_STATES else "",
        "steps": steps(job, now),
        "checkpoint": checkpoint_of(job, placements),
        "events": event_rows(
            list(job_events(viewer=request.user, job=job)[:EVENTS_SHOWN]), request.user
        ),
        "placements": [placement_rows(placement) for placement in placements],
        "booked": [booked(entry) for p in placements for entry in p.ledger.all()],
        "may_cancel": job.state not in FINAL_STATES
        and policies.may_cancel(request.user, job.tenant, job.owner_id),
        "may_resubmit": policies.may_submit(request.user, job.tenant),
        "log_url": reverse("api:job-log", kwargs={"uid": job.pk}),
        "figure": job_figure(job, placements[0] if placements else None, now=now),
        "flavor_names": [flavor_label(flavor) for flavor in job.flavors],
        "wishes": wishes(job),
    }
    return render(request, "pages/job.html", context)


@require_POST
def cancel(request: SignedInRequest, uid: UUID) -> HttpResponse:
    """Cancel a job."""
    job = job_or_404(request, uid)
    now = clock.now()
    try:
        job_cancel(actor=request.user, job=job, now=now)
    except DomainError as error:
        refused(request, error)
    else:
        messages.success(request, _("“%(name)s” is being cancelled.") % {"name": job.name})
    return redirect("pages:job-detail", uid=job.pk)


@require_POST
def resubmit(request: SignedInRequest, uid: UUID) -> HttpResponse:
    """Submit the same again."""
    job = job_or_404(request, uid)
    now = clock.now()
    try:
        again, _new = job_ask(actor=request.user, data=job_as_data(job), now=now, resubmit_of=job)
    except JobRefusedError as never:
        messages.error(request, reasons.sentence(never.pending))
        return redirect("pages:job-detail", uid=job.pk)
    except DomainError as error:
        refused(request, error)
        return redirect("pages:job-detail", uid=job.pk)
    messages.success(request, _("“%(name)s” is queued again.") % {"name": again.name})
    return redirect("pages:job-detail", uid=again.pk)


@dataclass(frozen=True, slots=True)
class Step:
    """A point of a job's life, and how long it was until the next.

    Attributes:
        name: in words.
        at: when.
        verb: what it did from then on; "" after the last.
        lasted_s: how long; None after the last.
    """

    name: str
    at: datetime
    verb: str = ""
    lasted_s: float | None = None


def steps(job: Job, now: datetime) -> list[Step]:
    """Return submitted, started, finished: when, and how long until the next."""
    points = [(_("Submitted"), job.submitted_at, _("waited"))]
    if job.started_at is not None:
        points.append((_("Started"), job.started_at, _("ran")))
    if job.finished_at is not None:
        points.append((str(JobState(job.state).label).capitalize(), job.finished_at, ""))
    ends = [at for _name, at, _verb in points[1:]]
    ends.append(points[-1][1] if job.state in FINAL_STATES else now)
    return [
        Step(name, at, verb, max(0.0, (end - at).total_seconds()) if verb else None)
        for (name, at, verb), end in zip(points, ends, strict=True)
    ]


def checkpoint_of(job: Job, placements: Sequence[Placement]) -> datetime | None:
    """Return when a job that is not over last saved its work, in this attempt or an earlier one.

    Args:
        job: the job.
        placements: its own, newest first.
    """
    if job.state in FINAL_STATES:
        return None
    return next((p.checkpointed_at for p in placements if p.checkpointed_at is not None), None)


def event_rows(events: Sequence[JobEvent], viewer: User) -> list[dict[str, Any]]:
    """Return each event with its reason in words, and for whom it made room if that may be seen."""
    uids = {str(event.data["beneficiary"]) for event in events if event.data.get("beneficiary")}
    seen = {str(job.pk): job for job in jobs_named(viewer=viewer, uids=uids)}
    return [
        {
            "event": event,
            "sentence": reasons.event_sentence(event.kind, event.reason, event.data),
            "news": reasons.news_word(event.kind),
            "for": seen.get(str(event.data.get("beneficiary"))),
        }
        for event in events
    ]


def placement_rows(placement: Placement) -> dict[str, Any]:
    """Return a placement with its replicas, their nodes and devices."""
    replicas = list(placement.replicas.all())
    return {
        "placement": placement,
        "flavor": flavor_label(placement.flavor) if placement.flavor else "",
        "parts": priority_rows(placement.priority_parts),
        "replicas": [
            {
                "index": replica.index,
                "node": replica.node.name,
                "cpu_milli": replica.cpu_milli,
                "memory_mib": replica.memory_mib,
                "devices": [
                    {"index": hold.device.index, "gpu_milli": hold.gpu_milli}
                    for hold in replica.device_holds.all()
                ],
            }
            for replica in replicas[:REPLICAS_SHOWN]
        ],
        "more_replicas": max(0, len(replicas) - REPLICAS_SHOWN),
    }


def booked(entry: LedgerEntry) -> dict[str, Any]:
    """Return a line of the ledger in device-hours (or core-hours) and CU-hours."""
    hours = (entry.closed_at - entry.opened_at).total_seconds() / 3600
    utilised = entry.utilised_milli_us
    return {
        "flavor": flavor_label(entry.flavor),
        "allocated_h": float(entry.allocated_milli_us) / MILLI_US_PER_DEVICE_HOUR,
        "utilised_h": None if utilised is None else float(utilised) / MILLI_US_PER_DEVICE_HOUR,
        "cu_hours": None if entry.compute_units is None else entry.compute_units * hours,
    }
