"""One job's page, and what may be done there."""

from datetime import timedelta

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from portal.pages.job import steps
from scheduler.choices import JobState
from scheduler.models import Job, JobEvent, Placement
from tests.factories import NOW
from tests.portal.pages.conftest import World, text_of

PENDING = {
    "code": "waiting_for_capacity",
    "evidence": {"asked": {"devices": 4}, "free": {"devices": 2}},
    "remedies": [{"code": "fewer_devices", "params": {"devices": 2, "starts_now": True}}],
    "expected_start_p50": "2026-03-02T12:10:00+00:00",
    "expected_start_p90": "2026-03-02T12:30:00+00:00",
    "position": 3,
}


def test_a_waiting_job_says_why_what_helps_and_when(ada: Client, world: World) -> None:
    Job.objects.filter(pk=world.job.pk).update(pending=PENDING)
    page = text_of(ada.get(f"/jobs/{world.job.pk}/"))
    assert 'data-waiting="waiting_for_capacity"' in page
    assert "Too little is free" in page
    assert "Ask for 2 devices per replica, and it starts now." in page
    assert 'datetime="2026-03-02T12:10:00+00:00"' in page
    assert "<dd>3</dd>" in page


def test_a_job_shows_what_it_wishes_besides_its_size_and_nothing_else(
    ada: Client, world: World
) -> None:
    path = f"/jobs/{world.job.pk}/"
    assert "Fewest replicas" not in text_of(ada.get(path))
    Job.objects.filter(pk=world.job.pk).update(
        replicas_min=2,
        replicas_max=8,
        required_topology="rack",
        placement_wish="spread",
        tolerations=["spot", "maintenance"],
        anti_affinity="<b>mine</b>",
        checkpoint_interval_s=5400,
    )
    page = text_of(ada.get(path))
    for label, value in (
        ("Fewest replicas", "2"),
        ("All replicas in", "one rack"),
        ("Placement", "spread over nodes"),
        ("Tolerated taints", "spot, maintenance"),
        ("Never on a node with", "&lt;b&gt;mine&lt;/b&gt;"),
        ("Checkpoint every", "1h30m"),
    ):
        assert f'<dt>{label}</dt><dd class="k-break">{value}</dd>' in page
    assert "Interference class" not in page


def test_a_job_shows_its_last_checkpoint_until_it_is_over(ada: Client, world: World) -> None:
    saved_at = NOW - timedelta(minutes=3)
    for attempt, at in ((1, saved_at), (2, None)):  # the second one has saved nothing yet
        Placement.objects.create(
            job=world.job,
            attempt=attempt,
            cluster=world.demo,
            created_at=NOW,
            released_at=NOW if attempt == 1 else None,
            checkpointed_at=at,
        )
    path = f"/jobs/{world.job.pk}/"
    assert f'Last checkpoint: <time datetime="{saved_at.isoformat()}"' in text_of(ada.get(path))
    Job.objects.filter(pk=world.job.pk).update(state=JobState.SUCCEEDED)
    assert "data-checkpoint" not in text_of(ada.get(path))


@pytest.mark.parametrize(
    ("count", "said"), [(1, "Preempted once, to"), (3, "Preempted 3 times, to")]
)
def test_how_often_a_job_made_room_is_said(
    ada: Client, world: World, count: int, said: str
) -> None:
    path = f"/jobs/{world.job.pk}/"
    assert "data-preempted" not in text_of(ada.get(path))
    Job.objects.filter(pk=world.job.pk).update(preempted_count=count)
    assert said in text_of(ada.get(path))
    assert said.lower().removesuffix(", to") in text_of(ada.get("/jobs/"))


def test_name_command_and_environment_are_shown_as_text(ada: Client, world: World) -> None:
    Job.objects.filter(pk=world.job.pk).update(command="echo '<img src=x onerror=alert(1)>'")
    page = text_of(ada.get(f"/jobs/{world.job.pk}/"))
    assert "<img src=x" not in page
    assert "<b>big</b>" not in page
    assert "se&amp;cret" in page


@pytest.mark.parametrize("verb", ["", "cancel/", "resubmit/"])
def test_the_job_of_another_tenant_does_not_exist(eve: Client, world: World, verb: str) -> None:
    path = f"/jobs/{world.job.pk}/{verb}"
    response = eve.post(path) if verb else eve.get(path)
    assert response.status_code == 404
    world.job.refresh_from_db()
    assert world.job.state == JobState.QUEUED


def test_the_owner_cancels(ada: Client, world: World) -> None:
    response = ada.post(f"/jobs/{world.job.pk}/cancel/", follow=True)
    world.job.refresh_from_db()
    assert world.job.state == JobState.CANCELLED
    assert "is being cancelled" in text_of(response)
    assert 'data-action="cancel"' not in text_of(response)


def test_a_viewer_sees_but_may_not_cancel(viewer: Client, world: World) -> None:
    page = text_of(viewer.get(f"/jobs/{world.job.pk}/"))
    assert 'data-action="cancel"' not in page
    response = viewer.post(f"/jobs/{world.job.pk}/cancel/", follow=True)
    world.job.refresh_from_db()
    assert world.job.state == JobState.QUEUED
    assert "may cancel this job" in text_of(response)


def test_a_job_that_has_ended_says_so_when_cancelled_again(ada: Client, world: World) -> None:
    ada.post(f"/jobs/{world.job.pk}/cancel/")
    response = ada.post(f"/jobs/{world.job.pk}/cancel/", follow=True)
    assert "has ended" in text_of(response)


def test_submitting_again_makes_a_new_job_that_names_the_first(ada: Client, world: World) -> None:
    response = ada.post(f"/jobs/{world.job.pk}/resubmit/")
    again = Job.objects.get(resubmit_of=world.job)
    assert response["Location"] == f"/jobs/{again.pk}/"
    assert (again.name, again.env, again.cluster) == (
        world.job.name,
        world.job.env,
        world.job.cluster,
    )


@pytest.mark.parametrize("verb", ["cancel", "resubmit"])
def test_a_link_changes_nothing(ada: Client, world: World, verb: str) -> None:
    assert ada.get(f"/jobs/{world.job.pk}/{verb}/").status_code == 405


def test_a_form_of_another_origin_changes_nothing(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.ada)
    assert client.post(f"/jobs/{world.job.pk}/cancel/").status_code == 403


def test_the_timeline_gives_each_stretch_its_length(world: World) -> None:
    world.job.started_at = NOW + timedelta(seconds=30)
    world.job.finished_at = NOW + timedelta(seconds=90)
    world.job.state = JobState.SUCCEEDED
    found = steps(world.job, NOW + timedelta(hours=1))
    assert [step.lasted_s for step in found] == [30, 60, None]
    assert [step.at for step in found] == [
        NOW,
        NOW + timedelta(seconds=30),
        NOW + timedelta(seconds=90),
    ]


def test_a_clock_that_stepped_back_gives_no_negative_length(world: World) -> None:
    world.job.started_at = NOW - timedelta(seconds=5)
    world.job.state = JobState.RUNNING
    found = steps(world.job, NOW - timedelta(seconds=10))
    assert [step.lasted_s for step in found] == [0, 0]


def test_a_job_page_takes_a_bounded_number_of_queries(
    ada: Client, world: World, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(20):
        ada.get(f"/jobs/{world.job.pk}/")


def test_an_eviction_names_who_it_was_for_only_to_those_who_may_know(world: World) -> None:
    JobEvent.objects.create(
        job=world.job,
        at=NOW,
        kind="eviction",
        from_state=JobState.RUNNING,
        to_state=JobState.RUNNING,
        actor="scheduler",
        reason="reclaimed",
        data={"beneficiary": str(world.secret.pk)},
    )
    path = f"/jobs/{world.job.pk}/"
    own, admins = (
        text_of(world.sees(world.ada).get(path)),
        text_of(world.sees(world.root).get(path)),
    )
    assert "told to end" in own
    assert "It is to end, as a tenant claims its quota back." in own
    assert str(world.secret.pk) not in own
    assert f'href="/jobs/{world.secret.pk}/"' in admins


def test_what_an_eviction_cost_is_said(ada: Client, world: World) -> None:
    JobEvent.objects.create(
        job=world.job,
        at=NOW,
        kind="state",
        from_state=JobState.RUNNING,
        to_state=JobState.QUEUED,
        actor="scheduler",
        reason="preempted",
        data={"lost_s": 300, "lost_device_s": 1200},
    )
    page = text_of(ada.get(f"/jobs/{world.job.pk}/"))
    assert "It made room for a job of higher priority" in page
    assert "Work lost: 1,200 device-seconds." in page
