"""The only way jobs change state: compare, swap, and write who and why."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from scheduler import events
from scheduler.choices import FINAL_STATES, TRANSITIONS, JobState
from scheduler.models import Job, JobEvent
from scheduler.services.stored import stored_json, stored_text
from tenants.errors import ConflictError

REASON_LIMIT = 60
ANSWERS = frozenset({JobState.STARTING, JobState.RUNNING})
"""States that follow from a decision; to enter any other one calls for a new decision."""


def jobs_move(
    *,
    jobs: Sequence[Job],
    to: JobState,
    actor: str,
    now: datetime,
    reason: str = "",
    message: str = "",
    data: Mapping[UUID, dict[str, Any]] | None = None,
    **fields: Any,
) -> None:
    """Move jobs, all or none, from the one state they were read in; call inside a transaction.

    Args:
        jobs: at least one, of one cluster, as read; their state is what is compared.
        to: a state that TRANSITIONS allows.
        actor: a user's name, or the part of Kilter that acts.
        now: for the event.
        reason: short machine word.
        message: one plain sentence. A job that ends keeps reason and message.
        data: job -> numbers worth keeping, JSON-serialisable.
        **fields: further columns, the same for all, written in the same update.

    Raises:
        ConflictError: the move is not allowed, or somebody else moved a job first.
    """
    (before,) = {JobState(job.state) for job in jobs}
    reason, message = stored_text(reason, REASON_LIMIT), stored_text(message)
    if to not in TRANSITIONS[before]:
        raise ConflictError(
            _("A job that is %(before)s can't become %(to)s.")
            % {"before": before.label, "to": to.label}
        )
    if to in FINAL_STATES:
        fields |= {"reason": reason, "message": message}
    rows = Job.objects.filter(pk__in=[job.pk for job in jobs], state=before)
    if rows.update(state=to, **fields) != len(jobs):
        raise ConflictError(_("The job is no longer %(before)s.") % {"before": before.label})
    JobEvent.objects.bulk_create(
        JobEvent(
            job=job,
            at=now,
            kind="state",
            from_state=before,
            to_state=to,
            actor=actor,
            reason=reason,
            message=message,
            data=stored_json((data or {}).get(job.pk, {})),
        )
        for job in jobs
    )
    tell = events.seen if to in ANSWERS else events.changed
    tell(cluster_slug=jobs[0].cluster.slug)


def job_move(
    *,
    job: Job,
    to: JobState,
    actor: str,
    now: datetime,
    reason: str = "",
    message: str = "",
    data: dict[str, Any] | None = None,
    **fields: Any,
) -> None:
    """Move one job, as `jobs_move` does, and bring `job` up to date."""
    jobs_move(
        jobs=[job],
        to=to,
        actor=actor,
        now=now,
        reason=reason,
        message=message,
        data={job.pk: data} if data else None,
        **fields,
    )
    job.state = to
    for name, value in fields.items():
        setattr(job, name, value)


def job_note(
    *, job: Job, kind: str, actor: str, now: datetime, reason: str = "", message: str = ""
) -> None:
    """Write news of a job that moves nothing."""
    JobEvent.objects.create(
        job=job,
        at=now,
        kind=kind,
        from_state=job.state,
        to_state=job.state,
        actor=actor,
        reason=stored_text(reason, REASON_LIMIT),
        message=stored_text(message),
    )
