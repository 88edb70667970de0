"""The list of jobs."""

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from scheduler.choices import JobState
from tests import factories
from tests.portal.pages.conftest import World, text_of


def test_everybody_sees_the_jobs_of_their_tenants_only(ada: Client, eve: Client) -> None:
    assert "train &lt;b&gt;big" in text_of(ada.get("/jobs/"))
    assert "hidden-job" not in text_of(ada.get("/jobs/"))
    assert "hidden-job" in text_of(eve.get("/jobs/"))


def test_markup_in_a_name_is_shown_as_text(ada: Client) -> None:
    page = text_of(ada.get("/jobs/"))
    assert "<b>big</b>" not in page
    assert "&lt;b&gt;big&lt;/b&gt;" in page


def test_the_address_narrows_the_list(ada: Client, world: World) -> None:
    factories.job(world.vision, world.ada, world.here, name="second", state=JobState.FAILED)
    page = text_of(ada.get("/jobs/?state=failed&state=cancelled"))
    assert "second" in page
    assert "train &lt;" not in page
    assert "second" in text_of(ada.get("/jobs/?cluster=this-machine"))
    assert "train &lt;" not in text_of(ada.get("/jobs/?q=SECO"))
    assert "second" in text_of(ada.get("/jobs/?q=ada&mine=true"))


@pytest.mark.parametrize(
    "query",
    ["state=nonsense", "tenant=language", "q=%00", "page=99", "sort=nonsense", "per_page=7"],
)
def test_a_strange_address_breaks_nothing_and_shows_nothing_foreign(
    ada: Client, query: str
) -> None:
    response = ada.get(f"/jobs/?{query}")
    assert response.status_code == 200
    assert "hidden-job" not in text_of(response)


def test_an_empty_list_says_what_to_do(ada: Client, world: World) -> None:
    world.job.delete()
    page = text_of(ada.get("/jobs/"))
    assert "No jobs yet" in page
    assert 'href="/jobs/new/"' in page


def test_a_list_that_is_too_narrow_can_be_cleared(ada: Client) -> None:
    page = text_of(ada.get("/jobs/?q=nothing-like-it"))
    assert "No job matches" in page
    assert 'href="/jobs/"' in page


def test_a_page_has_as_many_rows_as_asked_for(ada: Client, world: World) -> None:
    for number in range(30):
        factories.job(world.vision, world.ada, world.here, name=f"many-{number}")
    assert text_of(ada.get("/jobs/")).count("data-job=") == 25
    assert text_of(ada.get("/jobs/?per_page=50")).count("data-job=") == 31


def test_more_jobs_cost_no_more_queries(
    ada: Client, world: World, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(25):
        factories.job(world.vision, world.ada, world.here, name=f"many-{number}")
    with django_assert_max_num_queries(16):
        ada.get("/jobs/")
