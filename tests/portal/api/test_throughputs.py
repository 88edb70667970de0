"""Throughputs that an admin gives."""

from datetime import UTC, datetime

import pytest
from rest_framework.test import APIClient

from scheduler.models import LearntThroughput
from tests.portal.world import A100, World

PATH = "/api/v1/throughputs/"
ROW = {"job_class": "lm", "flavor": A100, "throughput": 0.5, "note": "measured in March"}


def test_who_runs_the_portal_says_it_anew_and_forgets_it(root: APIClient, ada: APIClient) -> None:
    made = root.post(PATH, ROW, format="json")
    assert (made.status_code, made.json()) == (200, {"id": made.json()["id"], **ROW})
    again = root.post(PATH, {**ROW, "throughput": 1, "note": ""}, format="json").json()
    assert again == {"id": made.json()["id"], **ROW, "throughput": 1.0, "note": ""}
    assert ada.get(f"{PATH}?job_class=lm").json()["results"] == [again]
    assert ada.get(f"{PATH}?job_class=cv").json()["results"] == []
    assert ada.get(f"{PATH}{again['id']}/").json() == again
    assert root.delete(f"{PATH}{again['id']}/").status_code == 204
    assert root.delete(f"{PATH}{again['id']}/").status_code == 404


def test_what_runs_have_shown_is_read_by_those_of_the_tenant(
    world: World, ada: APIClient, eve: APIClient
) -> None:
    at = datetime(2026, 1, 5, tzinfo=UTC)
    LearntThroughput.objects.create(
        tenant=world.vision,
        job_class="lm",
        flavor=A100,
        throughput=0.5,
        work_count=2,
        run_count=4,
        last_run_at=at,
    )
    learnt = "/api/v1/learnt-throughputs/"
    (row,) = ada.get(f"{learnt}?tenant=vision&job_class=lm").json()["results"]
    assert (row["throughput"], row["work_count"], row["run_count"]) == (0.5, 2, 4)
    assert row["overruled"] is False
    assert ada.get(f"{learnt}?job_class=cv").json()["results"] == []
    assert eve.get(learnt).json()["results"] == []
    assert ada.post(learnt, {}, format="json").status_code == 405


def test_there_may_not_be_too_many_but_one_that_is_there_may_change(
    root: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.services.throughputs.THROUGHPUT_MOST", 1)
    assert root.post(PATH, ROW, format="json").status_code == 200
    assert root.post(PATH, ROW | {"throughput": 0.25}, format="json").status_code == 200
    assert root.post(PATH, ROW | {"job_class": "cv"}, format="json").status_code == 400
