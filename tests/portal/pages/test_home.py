"""The first page."""

from django.test import Client
from pytest_django import DjangoAssertNumQueries

from scheduler.choices import JobState
from scheduler.models import Job
from tests import factories
from tests.portal.pages.conftest import World, text_of


def test_home_shows_my_jobs_with_the_reason_and_nobody_elses(ada: Client, world: World) -> None:
    Job.objects.filter(pk=world.job.pk).update(pending={"code": "on_hold"})
    factories.job(world.vision, world.lead, world.demo, name="leads-job")
    page = text_of(ada.get("/"))
    assert "train &lt;b&gt;big" in page
    assert "It is on hold" in page
    assert "leads-job" not in page
    assert "hidden-job" not in page


def test_home_shows_what_lately_ended(ada: Client, world: World) -> None:
    Job.objects.filter(pk=world.job.pk).update(
        state=JobState.SUCCEEDED, finished_at=factories.NOW, started_at=factories.NOW
    )
    page = text_of(ada.get("/"))
    assert "Lately finished" in page
    assert "Nothing of yours runs or waits" in page


def test_somebody_new_gets_the_first_steps(lead: Client, ada: Client) -> None:
    assert "data-checklist" in text_of(lead.get("/"))
    assert "data-checklist" not in text_of(ada.get("/"))


def test_this_machine_stands_before_what_is_invented(ada: Client) -> None:
    page = text_of(ada.get("/"))
    assert page.index('data-cluster="this-machine"') < page.index('data-cluster="demo"')
    assert "8 of 8 free" in page


def test_home_shows_the_quota_of_my_tenants_only(ada: Client) -> None:
    page = text_of(ada.get("/"))
    assert "0 of 4" in page
    assert "Speech team" not in page


def test_home_takes_a_bounded_number_of_queries(
    ada: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(60):
        ada.get("/")


def test_who_may_only_look_is_told_so_and_what_to_do(viewer: Client) -> None:
    page = text_of(viewer.get("/"))
    assert "your role only looks" in page
    assert "ask an admin or a lead to add you" not in page
    assert "<small data-role>Viewer</small>" in page


def test_the_menu_names_the_most_that_one_may_do(lead: Client, root: Client) -> None:
    assert "<small data-role>Lead</small>" in text_of(lead.get("/"))
    assert "<small data-role>Administrator</small>" in text_of(root.get("/"))
