"""What an executor's news does to a job: it runs, it ended, it goes back to the queue."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from scheduler.choices import HOLDING_STATES, IntentState, JobState, Verb
from scheduler.core.plan import EvictionCause
from scheduler.core.requeue import back_off_s
from scheduler.execute.base import Observation, Phase
from scheduler.models import HEAVY, Intent, Job, Placement
from scheduler.services.checkpoints import work_lost
from scheduler.services.holds import placement_release
from scheduler.services.stored import stored_integer, stored_text, stored_time
from scheduler.services.transitions import job_move, job_note, jobs_move

ERROR_LIMIT = 2000

ENDS: dict[Phase, JobState] = {
    Phase.SUCCEEDED: JobState.SUCCEEDED,
    Phase.FAILED: JobState.FAILED,
    Phase.CANCELLED: JobState.CANCELLED,
    Phase.TIMED_OUT: JobState.TIMED_OUT,
    Phase.LOST: JobState.FAILED,
}

RESIZED = "resized"
"""Reason of an eviction that lets a job go on with other replicas."""

FOR_OTHERS = frozenset({*EvictionCause, RESIZED})
"""Reasons of an eviction that a plan decided."""

REQUEUE_REASONS = FOR_OTHERS | {"node_lost", "drain"}
"""Reasons of an eviction that is not the job's own fault: it waits for another turn."""

STOPPED_BY_US = frozenset({Phase.CANCELLED, Phase.LOST})
"""Ends that an eviction brings about; who ended by itself meanwhile, has ended."""


def attempts_running(
    *, started: Sequence[tuple[Placement, Observation]], now: datetime
) -> set[int]:
    """Note that attempts run.

    Args:
        started: placements, and what their executor says of them.
        now: where it does not say since when.

    Returns:
        The keys of the placements whose jobs run since now.
    """
    with transaction.atomic():
        rows = Job.objects.select_for_update(of=("self",)).select_related("cluster")
        rows = rows.filter(pk__in=[p.job_id for p, _ in started], state=JobState.STARTING)
        jobs = {(job.pk, job.attempt): job for job in rows.defer(*HEAVY).order_by("pk")}
        moved = [(p, seen) for p, seen in started if (p.job_id, p.attempt) in jobs]
        if not moved:
            return set()
        jobs_move(
            jobs=[jobs[p.job_id, p.attempt] for p, _ in moved],
            to=JobState.RUNNING,
            actor="executor",
            now=now,
            reason="started",
        )
        for placement, seen in moved:
            placement.started_at = stored_time(seen.started_s) or now
            jobs[placement.job_id, placement.attempt].started_at = placement.started_at
        Placement.objects.bulk_update([p for p, _ in moved], ["started_at"])
        Job.objects.bulk_update([jobs[p.job_id, p.attempt] for p, _ in moved], ["started_at"])
    return {placement.pk for placement, _ in moved}


def attempts_checkpointed(*, seen: Sequence[tuple[Placement, Observation]]) -> None:
    """Keep the times of checkpoints that are news."""
    fresh: list[Placement] = []
    for placement, observation in seen:
        at = stored_time(observation.checkpointed_s)
        if at is not None and at != placement.checkpointed_at:
            placement.checkpointed_at = at
            fresh.append(placement)
    if fresh:
        Placement.objects.bulk_update(fresh, ["checkpointed_at"])


def attempt_slow(*, placement: Placement, now: datetime) -> None:
    """Note, once an attempt, that its executor took it but it does not begin."""
    told = placement.job.events.filter(kind="slow_start", at__gte=placement.created_at)
    if not told.exists():
        job_note(
            job=placement.job, kind="slow_start", actor="executor", now=now, reason="slow_start"
        )


def attempt_ended(*, placement: Placement, seen: Observation, now: datetime) -> None:
    """Note how an attempt ended, free what it held, and book it."""
    with transaction.atomic():
        job = _lock(placement)
        if not placement_release(placement=placement, now=now) or job.state not in HOLDING_STATES:
            return
        attempts_checkpointed(seen=[(placement, seen)])  # its grace may have given time for one
        evicted = placement.intents.filter(verb=Verb.EVICT).first()
        requeue = (
            seen.phase in STOPPED_BY_US
            and job.cancel_requested_at is None
            and evicted is not None
            and evicted.reason in REQUEUE_REASONS
        )
        if requeue and evicted is not None:
            lost = _lost(job, placement, seen, now) if evicted.reason in FOR_OTHERS else {}
            _requeue(job, evicted, lost, now)
        else:
            _finish(job, seen, now)


def _lost(job: Job, placement: Placement, seen: Observation, now: datetime) -> dict[str, Any]:
    """Return what an eviction has cost."""
    at = stored_time(seen.finished_s) or now
    return dict(work_lost(job=job, placement=placement, now=at))


def _losses(job: Job) -> int:
    return job.events.filter(kind="state", to_state=JobState.QUEUED, reason="node_lost").count()


def _requeue(job: Job, evicted: Intent, lost: dict[str, Any], now: datetime) -> None:
    """Put a job back in its old place of the queue; a resized one first, as room is kept for it."""
    reason = evicted.reason
    wait_s = back_off_s(_losses(job)) if reason == "node_lost" else 0.0
    if evicted.beneficiary_id is not None:
        lost = lost | {"beneficiary": str(evicted.beneficiary_id)}
    job_move(
        job=job,
        to=JobState.QUEUED,
        actor="scheduler",
        now=now,
        reason=reason,
        data=lost,
        started_at=None,
        not_before=now + timedelta(seconds=wait_s) if wait_s else None,
        promised_at=now if evicted.target else None,
        preempted_count=job.preempted_count + (evicted.beneficiary_id is not None),
        pending={"code": "pending_evaluation"},
    )


def _finish(job: Job, seen: Observation, now: datetime) -> None:
    columns: dict[str, Any] = {
        "finished_at": stored_time(seen.finished_s) or now,
        "exit_code": stored_integer(seen.exit_code),
        "pending": {},
    }
    started_at = stored_time(seen.started_s)
    if started_at is not None:
        columns["started_at"] = started_at
    job_move(
        job=job,
        to=ENDS[seen.phase],
        actor="executor",
        now=now,
        reason=seen.reason,
        message=seen.message,
        **columns,
    )


def attempt_refused(*, placement: Placement, message: str, now: datetime) -> None:
    """Note that an executor will never start this attempt."""
    refused = Observation(
        uid=str(placement.job_id),
        attempt=placement.attempt,
        phase=Phase.FAILED,
        reason="start_failed",
        message=message,
    )
    attempt_ended(placement=placement, seen=refused, now=now)


def intents_done(*, intents: Sequence[Intent], now: datetime) -> None:
    """Note what an executor was told."""
    Intent.objects.filter(pk__in=[intent.pk for intent in intents]).update(
        state=IntentState.DONE, done_at=now, tries=F("tries") + 1, last_error=""
    )


def intent_failed(*, intent: Intent, error: str, final: bool, now: datetime) -> None:
    """Note that telling an executor failed, for now or for good."""
    Intent.objects.filter(pk=intent.pk).update(
        state=IntentState.FAILED if final else IntentState.PENDING,
        tries=F("tries") + 1,
        last_error=stored_text(error, ERROR_LIMIT),
        done_at=now if final else None,
    )


def intent_dropped(*, intent: Intent, why: str, now: datetime) -> None:
    """Note that an executor needs not be told any more."""
    Intent.objects.filter(pk=intent.pk).update(
        state=IntentState.FAILED, last_error=stored_text(why, ERROR_LIMIT), done_at=now
    )


def intent_repeat(*, intent: Intent) -> None:
    """Ask once more for what an executor was told and did not do."""
    Intent.objects.filter(pk=intent.pk, state=IntentState.DONE).update(state=IntentState.PENDING)


def _lock(placement: Placement) -> Job:
    jobs = Job.objects.select_for_update(of=("self",)).select_related("cluster")
    return jobs.get(pk=placement.job_id)
