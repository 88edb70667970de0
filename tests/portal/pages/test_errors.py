"""What people see where a page can't be shown."""

import pytest
from django.test import Client

from tests.portal.pages.conftest import World, text_of


def test_a_page_that_is_not_there_says_so_in_the_portals_look(ada: Client) -> None:
    response = ada.get("/nothing-here/")
    assert response.status_code == 404
    assert "There is no such page" in text_of(response)


def test_a_page_of_the_platform_says_who_it_is_for(ada: Client) -> None:
    assert "for those who run the portal" in text_of(ada.get("/admin/nodes/"))


def test_a_form_without_its_token_says_what_to_do(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.ada)
    response = client.post(f"/jobs/{world.job.pk}/cancel/")
    assert response.status_code == 403
    assert "load the page again" in text_of(response)


def test_a_command_of_ten_megabytes_gets_a_clear_answer(ada: Client) -> None:
    response = ada.post("/jobs/new/", {"name": "big", "command": "x" * 10_000_000})
    assert response.status_code == 400
    assert "at most 1 MiB" in text_of(response)


def test_a_failure_of_the_portal_has_a_page(ada: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_kwargs: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("portal.pages.jobs.job_list", fail)
    ada.raise_request_exception = False
    response = ada.get("/jobs/")
    assert response.status_code == 500
    assert "Something went wrong" in text_of(response)
