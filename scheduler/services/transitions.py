"""The only way a job changes state: compare, swap, and write who and why."""

from datetime import datetime
from typing import Any

from scheduler import events
from scheduler.choices import FINAL_STATES, TRANSITIONS, JobState
from scheduler.models import Job, JobEvent
from tenants.errors import ConflictError


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
    """Move a job from the state that `job` was read in; call inside a transaction.

    Args:
        job: as read; its state is what is compared.
        to: a state that TRANSITIONS allows.
        actor: a user's name, or the part of Kilter that acts.
        now: for the event.
        reason: short machine word.
        message: one plain sentence. A job that ends keeps reason and message.
        data: numbers worth keeping, JSON-serialisable.
        **fields: further columns of the job, written in the same update.

    Raises:
        ConflictError: the move is not allowed, or somebody else moved the job first.
    """
    before = JobState(job.state)
    if to not in TRANSITIONS[before]:
        raise ConflictError(f"a job that is {before} can't become {to}")
    if to in FINAL_STATES:
        fields |= {"reason": reason, "message": message}
    moved = Job.objects.filter(pk=job.pk, state=before).update(state=to, **fields)
    if moved != 1:
        raise ConflictError(f"the job is no longer {before}")
    job.state = to
    for name, value in fields.items():
        setattr(job, name, value)
    JobEvent.objects.create(
        job=job,
        at=now,
        kind="state",
        from_state=before,
        to_state=to,
        actor=actor,
        reason=reason,
        message=message,
        data=data or {},
    )
    events.changed(cluster_slug=job.cluster.slug)


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
        reason=reason,
        message=message,
    )
