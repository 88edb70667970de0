"""From what a person typed to a queued job: validate, ask the engine, refuse or queue."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from scheduler.estimates import Estimate, job_estimate
from scheduler.models import Job
from scheduler.services.jobs import KEY_LIMIT, job_submit
from scheduler.services.validation import FIELDS, JobRequest, job_request_validate
from tenants.errors import DomainError, InvalidValueError


class JobRefusedError(DomainError):
    """The job could never run as asked; `estimate` says why and what would help."""

    def __init__(self, estimate: Estimate) -> None:
        self.estimate = estimate
        self.pending = estimate.pending or {}
        self.code = str(self.pending.get("code", "never_fits"))
        super().__init__(self.code)


def job_ask(
    *,
    actor: User,
    data: Mapping[str, Any],
    now: datetime,
    text: bool = False,
    idempotency_key: str | None = None,
    resubmit_of: Job | None = None,
) -> tuple[Job, bool]:
    """Submit what was asked for.

    Args:
        actor: who asks.
        data: field -> value, see `scheduler.services.validation`.
        now: time of submission.
        text: amounts are text as typed in a form.
        idempotency_key: a repeated call with the same key answers the first one's job.
        resubmit_of: the job that this one repeats.

    Returns:
        The job, and whether it is new.

    Raises:
        InvalidValueError: field -> what is wrong.
        JobRefusedError: it could never run.
        NotAllowedError: the actor may not submit to the tenant.
    """
    if idempotency_key is not None:
        _check_key(idempotency_key)
        first = Job.objects.filter(owner=actor, idempotency_key=idempotency_key).first()
        if first is not None:
            return first, False
    request = job_request_validate(data=data, actor=actor, text=text)
    estimate = job_estimate(request=request, now=now)
    if estimate.verdict == "never":
        raise JobRefusedError(estimate)
    return job_submit(
        actor=actor,
        request=request,
        now=now,
        pending=estimate.pending or {"code": "pending_evaluation"},
        idempotency_key=idempotency_key,
        resubmit_of=resubmit_of,
    )


def _check_key(key: str) -> None:
    if not 1 <= len(key) <= KEY_LIMIT or not key.isprintable():
        raise InvalidValueError.of(
            "Idempotency-Key", f"Send 1 to {KEY_LIMIT} printable characters, such as a UUID."
        )


def job_dry_run(
    *, actor: User, data: Mapping[str, Any], now: datetime, text: bool = False
) -> tuple[JobRequest, Estimate]:
    """Return what would become of a request, without writing anything."""
    request = job_request_validate(data=data, actor=actor, text=text)
    return request, job_estimate(request=request, now=now)


def job_as_data(job: Job) -> dict[str, Any]:
    """Return a job as the data of a request that asks for the same again."""
    plain = {name: getattr(job, name) for name in FIELDS if hasattr(job, name)}
    plain |= {
        "tenant": job.tenant.slug,
        "cluster": job.cluster.slug,
        "priority_class": job.priority_class.slug,
        "replicas": job.replicas_max,
    }
    return plain
