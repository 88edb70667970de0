"""What people do with jobs: submit, cancel, submit again."""

from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from scheduler import events
from scheduler.choices import FINAL_STATES, HOLDING_STATES, IntentState, JobState, Verb
from scheduler.models import EVICT_GRACE_S, Intent, Job, JobEvent, Placement
from scheduler.services.stored import stored_json
from scheduler.services.transitions import job_move, job_note
from scheduler.services.validation import JobRequest
from tenants import policies
from tenants.errors import ConflictError, NotAllowedError

KEY_LIMIT = 200


def job_submit(
    *,
    actor: User,
    request: JobRequest,
    now: datetime,
    pending: dict[str, Any],
    idempotency_key: str | None = None,
    expected_duration_s: float = 0.0,
    resubmit_of: Job | None = None,
) -> tuple[Job, bool]:
    """Queue a job that was validated and found able to run some day.

    Returns:
        The job, and whether it is new: the same key again gives the first one's job.

    Raises:
        NotAllowedError: the actor may not submit to the tenant.
    """
    if not policies.may_submit(actor, request.tenant):
        raise NotAllowedError(
            _("You may not submit to %(tenant)s.") % {"tenant": request.tenant.slug}
        )
    try:
        with transaction.atomic():
            job = Job.objects.create(
                **_columns(request),
                owner=actor,
                submitted_at=now,
                pending=stored_json(pending),
                idempotency_key=idempotency_key,
                expected_duration_s=expected_duration_s,
                resubmit_of=resubmit_of,
            )
            JobEvent.objects.create(
                job=job,
                at=now,
                kind="state",
                to_state=JobState.QUEUED,
                actor=actor.get_username(),
                reason="submitted",
            )
            events.changed(cluster_slug=request.cluster.slug)
    except IntegrityError:
        first = (
            idempotency_key
            and Job.objects.filter(owner=actor, idempotency_key=idempotency_key).first()
        )
        if not first:
            raise
        return first, False
    return job, True


def _columns(request: JobRequest) -> dict[str, Any]:
    names = JobRequest.__dataclass_fields__
    columns = {name: getattr(request, name) for name in names}
    columns["flavors"] = list(request.flavors)
    columns["tolerations"] = list(request.tolerations)
    columns["env"] = dict(request.env)
    return columns


def job_cancel(*, actor: User, job: Job, now: datetime) -> None:
    """Cancel a job: at once while it waits, by asking its executor while it holds something.

    Cancelling again while the executor stops the job changes nothing.

    Raises:
        NotAllowedError: neither owner nor lead nor admin.
        ConflictError: it has ended.
    """
    if not policies.may_cancel(actor, job.tenant, job.owner_id):
        raise NotAllowedError(_("Only its owner, a lead or an admin may cancel this job."))
    with transaction.atomic():
        locked = (
            Job.objects.select_for_update(of=("self",)).select_related("cluster").get(pk=job.pk)
        )
        if locked.state in FINAL_STATES:
            raise ConflictError(
                _("The job has ended: it is %(state)s.") % {"state": JobState(locked.state).label}
            )
        name = actor.get_username()
        if locked.state in HOLDING_STATES:
            _cancel_holding(locked, name, now)
        else:
            job_move(
                job=locked,
                to=JobState.CANCELLED,
                actor=name,
                now=now,
                reason="cancelled",
                finished_at=now,
                cancel_requested_at=now,
                promised_at=None,
                pending={},
            )


def _cancel_holding(job: Job, actor: str, now: datetime) -> None:
    if job.cancel_requested_at is not None:
        return
    Job.objects.filter(pk=job.pk).update(cancel_requested_at=now)
    placement = Placement.objects.get(job=job, released_at__isnull=True)
    evict_intend(placement=placement, reason="cancelled", now=now)
    placement.intents.filter(verb=Verb.EVICT, grace_s__gt=EVICT_GRACE_S).update(
        grace_s=EVICT_GRACE_S, state=IntentState.PENDING
    )  # it need not save its work for another turn any more
    job_note(job=job, kind="cancel_requested", actor=actor, now=now, reason="cancelled")
    events.changed(cluster_slug=job.cluster.slug)


def evict_intend(*, placement: Placement, reason: str, now: datetime) -> None:
    """Write that an executor is to stop a placement; once is enough."""
    Intent.objects.get_or_create(
        placement=placement, verb=Verb.EVICT, defaults={"reason": reason, "created_at": now}
    )
