"""Jobs move along the table only, and who comes second is told."""

from itertools import product

import pytest
from django.db import transaction

from scheduler.choices import FINAL_STATES, TRANSITIONS, WAITING_STATES, JobState
from scheduler.models import Job, JobEvent
from scheduler.services.transitions import job_move, jobs_move
from tenants.errors import ConflictError
from tests import factories

pytestmark = pytest.mark.django_db

S = JobState
ALLOWED = {
    (S.AWAITING_APPROVAL, S.QUEUED),
    (S.AWAITING_APPROVAL, S.CANCELLED),
    (S.QUEUED, S.STARTING),
    (S.QUEUED, S.CANCELLED),
    (S.QUEUED, S.FAILED),
    (S.STARTING, S.RUNNING),
    (S.STARTING, S.QUEUED),
    (S.RUNNING, S.QUEUED),
    *product([S.STARTING, S.RUNNING], [S.SUCCEEDED, S.FAILED, S.CANCELLED, S.TIMED_OUT]),
}


def job(state: JobState = S.QUEUED) -> Job:
    return factories.job(factories.tenant(), state=state)


def move(row: Job, to: JobState, message: str = "") -> None:
    job_move(job=row, to=to, actor="tester", now=factories.NOW, reason="why", message=message)


@pytest.mark.parametrize(("before", "after"), list(product(S, S)))
def test_a_job_moves_exactly_as_the_table_says(before: JobState, after: JobState) -> None:
    row = job(before)
    if (before, after) in ALLOWED:
        move(row, after, message="so")
        row.refresh_from_db()
        assert row.state == after
        event = JobEvent.objects.get()
        assert (event.from_state, event.to_state, event.actor) == (before, after, "tester")
        assert (event.reason, event.message) == ("why", "so")
    else:
        with pytest.raises(ConflictError):
            move(row, after)
        assert Job.objects.get(pk=row.pk).state == before
        assert not JobEvent.objects.exists()


def test_every_state_that_is_not_final_has_a_way_on_and_every_final_one_has_none() -> None:
    for state in S:
        assert bool(TRANSITIONS[state]) == (state not in FINAL_STATES)
    for state in WAITING_STATES:
        assert S.CANCELLED in TRANSITIONS[state]


def test_who_read_the_job_before_somebody_moved_it_loses() -> None:
    row = job()
    stale = Job.objects.get(pk=row.pk)
    move(row, S.CANCELLED)
    with pytest.raises(ConflictError, match="no longer queued"):
        move(stale, S.STARTING)
    assert Job.objects.get(pk=row.pk).state == S.CANCELLED
    assert JobEvent.objects.count() == 1


def test_one_that_has_moved_keeps_all_the_others() -> None:
    of = factories.tenant()
    on = factories.cluster()
    rows = [factories.job(of, on=on) for _ in range(3)]
    Job.objects.filter(pk=rows[1].pk).update(state=S.CANCELLED)
    with pytest.raises(ConflictError), transaction.atomic():
        jobs_move(jobs=rows, to=S.STARTING, actor="x", now=factories.NOW)
    assert not Job.objects.filter(state=S.STARTING).exists()


def test_a_job_that_ends_keeps_why_and_what_can_not_be_stored_is_made_fit() -> None:
    row = job(S.RUNNING)
    job_move(
        job=row,
        to=S.FAILED,
        actor="executor",
        now=factories.NOW,
        reason="r" * 80,
        message="a\x00b\ud800" + "x" * 10_000,
    )
    row.refresh_from_db()
    assert row.reason == "r" * 60
    assert row.message.startswith("a\N{REPLACEMENT CHARACTER}b?")
    assert len(row.message) == 4000
