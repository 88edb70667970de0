"""Pairs of classes that an admin gives."""

import pytest
from rest_framework.test import APIClient

from scheduler.models import Job

PATH = "/api/v1/pairings/"
ROW = {
    "class_a": "lm",
    "class_b": "cv",
    "throughput_a": 0.4,
    "throughput_b": 0.9,
    "note": "measured in March",
}
STORED = {
    "class_a": "cv",
    "class_b": "lm",
    "throughput_a": 0.9,
    "throughput_b": 0.4,
    "note": "measured in March",
    "shares": False,
}


def test_who_runs_the_portal_says_it_in_either_order_and_forgets_it(
    root: APIClient, ada: APIClient
) -> None:
    made = root.post(PATH, ROW, format="json")
    assert (made.status_code, made.json()) == (200, {"id": made.json()["id"], **STORED})
    turned = {"class_a": "cv", "class_b": "lm", "throughput_a": 0.5, "throughput_b": 0.5}
    again = root.post(PATH, turned, format="json").json()
    assert again == {"id": made.json()["id"], **turned, "note": "", "shares": True}
    assert ada.get(PATH).json()["results"] == [again]
    assert ada.get(f"{PATH}{again['id']}/").json() == again
    assert root.delete(f"{PATH}{again['id']}/").status_code == 204
    assert root.delete(f"{PATH}{again['id']}/").status_code == 404


def test_two_of_one_class_have_one_throughput(root: APIClient) -> None:
    like = {"class_a": "lm", "class_b": "lm", "throughput_a": 0.4}
    answer = root.post(PATH, {**like, "throughput_b": 0.5}, format="json")
    assert set(answer.json()["fields"]) == {"throughput_b"}
    assert root.post(PATH, {**like, "throughput_b": 0.4}, format="json").status_code == 200


def test_there_may_not_be_too_many_classes(
    root: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.services.pairings.PAIRED_CLASSES_MOST", 2)
    assert root.post(PATH, ROW, format="json").status_code == 200
    assert root.post(PATH, ROW | {"throughput_a": 0}, format="json").status_code == 200
    assert root.post(PATH, ROW | {"class_a": "rl"}, format="json").status_code == 400


@pytest.mark.parametrize("name", ["interference", "anti_affinity"])
def test_a_job_says_its_class_and_its_group(ada: APIClient, name: str) -> None:
    asked = {"name": "j", "tenant": "vision", "command": "true", name: "lm"}
    answer = ada.post("/api/v1/jobs/", asked, format="json")
    assert answer.status_code == 201, answer.json()
    assert getattr(Job.objects.get(), name) == answer.json()[name] == "lm"
    wrong = ada.post("/api/v1/jobs/", asked | {name: "<b>"}, format="json")
    assert set(wrong.json()["fields"]) == {name}
