"""Every line of the contract for scripts that is about jobs."""

from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from scheduler.models import Job
from tests.portal.world import World, asked

JOBS = "/api/v1/jobs/"
ALL_FIELDS = {
    "name": "all fields",
    "tenant": "vision",
    "cluster": "this-machine",
    "kind": "training",
    "command": "python train.py",
    "image": "registry.example/train:1",
    "replicas": 2,
    "cpu_milli": 1500,
    "memory_mib": 2048,
    "devices": 1,
    "gpu_milli": 500,
    "gpu_memory_mib": 4096,
    "flavors": ["nvidia-a100-80gb-sxm"],
    "priority_class": "low",
    "time_limit_s": 600,
    "env": {"SEED": "7"},
    "preferred_topology": "nic",
}


def test_a_job_needs_only_name_tenant_and_command(ada: APIClient) -> None:
    answer = ada.post(JOBS, asked(), format="json")
    assert answer.status_code == 201, answer.content
    job = answer.json()
    assert job["state"] == "queued"
    assert job["cluster"] == "this-machine"
    assert job["pending"]["code"] == "pending_evaluation"
    assert set(job["pending"]) >= {
        "code",
        "message",
        "evidence",
        "remedies",
        "expected_start_p50",
        "expected_start_p90",
    }
    assert answer["Location"].endswith(f"/api/v1/jobs/{job['uid']}/")


def test_a_job_keeps_every_field_that_it_names(ada: APIClient) -> None:
    answer = ada.post(JOBS, ALL_FIELDS, format="json")
    assert answer.status_code == 201, answer.content
    kept = ada.get(f"{JOBS}{answer.json()['uid']}/").json()
    assert {name: kept[name] for name in ALL_FIELDS} == ALL_FIELDS


def test_a_job_that_starts_no_longer_says_why_it_waits(
    ada: APIClient, cycle: Callable[..., None]
) -> None:
    uid = ada.post(JOBS, asked(), format="json").json()["uid"]
    cycle()
    job = ada.get(f"{JOBS}{uid}/").json()
    assert (job["state"], job["pending"]) == ("starting", None)


def test_a_job_that_waits_says_why_in_a_sentence(
    ada: APIClient, cycle: Callable[..., None]
) -> None:
    ada.post(JOBS, asked(replicas=2, cpu_milli=8000), format="json")
    uid = ada.post(JOBS, asked(cpu_milli=4000), format="json").json()["uid"]
    cycle()
    pending = ada.get(f"{JOBS}{uid}/").json()["pending"]
    assert pending["code"] == "waiting_for_capacity"
    assert "4 cores" in pending["message"]
    assert pending["expected_start_p50"] <= pending["expected_start_p90"]


def test_a_dry_run_says_now_and_changes_nothing(ada: APIClient) -> None:
    answer = ada.post(f"{JOBS}?dry_run=true", asked(devices=1), format="json")
    assert answer.status_code == 200, answer.content
    said = answer.json()
    assert (said["verdict"], said["pending"]) == ("now", None)
    assert [part["node"] for part in said["placement"]] == ["n1"]
    assert said["compute_units"] == 312.0
    assert said["cu_hours"] == 312.0
    assert {line["flavor"] for line in said["quota"]} == {"cpu", "nvidia-a100-80gb-sxm"}
    assert not Job.objects.exists()


def test_a_dry_run_of_what_never_fits_answers_200_with_the_remedy(ada: APIClient) -> None:
    answer = ada.post(f"{JOBS}?dry_run=true", asked(devices=3), format="json")
    assert answer.status_code == 200
    said = answer.json()
    assert said["verdict"] == "never"
    assert said["pending"]["code"] == "never_fits"
    assert said["pending"]["remedies"][0]["code"] == "fewer_devices"
    assert "2 devices" in said["pending"]["remedies"][0]["message"]


def test_what_never_fits_is_refused_with_the_field_to_change(ada: APIClient) -> None:
    answer = ada.post(JOBS, asked(devices=3), format="json")
    assert answer.status_code == 400
    refusal = answer.json()
    assert refusal["code"] == "never_fits"
    assert list(refusal["fields"]) == ["devices"]
    assert refusal["pending"]["evidence"]["asked"]["devices"] == 3
    assert not Job.objects.exists()


def test_another_teams_tenant_is_as_unknown_as_one_that_does_not_exist(ada: APIClient) -> None:
    theirs = ada.post(JOBS, asked(tenant="language"), format="json")
    none = ada.post(JOBS, asked(tenant="nobody"), format="json")
    assert theirs.status_code == none.status_code == 400
    assert theirs.json()["message"].replace("language", "nobody") == none.json()["message"]


def test_a_viewer_may_not_submit(viewer: APIClient) -> None:
    answer = viewer.post(JOBS, asked(), format="json")
    assert answer.status_code == 400
    assert list(answer.json()["fields"]) == ["tenant"]


def test_the_owner_cancels_a_waiting_job_once(ada: APIClient) -> None:
    uid = ada.post(JOBS, asked(), format="json").json()["uid"]
    answer = ada.post(f"{JOBS}{uid}/cancel/")
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    again = ada.post(f"{JOBS}{uid}/cancel/")
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


def test_a_running_job_is_asked_to_stop(
    ada: APIClient, cycle: Callable[..., None], run_first: Callable[[], None]
) -> None:
    uid = ada.post(JOBS, asked(), format="json").json()["uid"]
    run_first()
    assert ada.get(f"{JOBS}{uid}/").json()["state"] == "running"
    assert ada.post(f"{JOBS}{uid}/cancel/").json()["cancel_requested_at"] is not None
    cycle(after_s=11)
    cycle(after_s=20)
    job = ada.get(f"{JOBS}{uid}/").json()
    assert (job["state"], job["reason"]) == ("cancelled", "cancelled")
    assert job["reason_message"] == "Somebody cancelled it."


def test_somebody_who_only_looks_may_not_cancel(ada: APIClient, viewer: APIClient) -> None:
    uid = ada.post(JOBS, asked(), format="json").json()["uid"]
    answer = viewer.post(f"{JOBS}{uid}/cancel/")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")


def test_a_colleague_submits_again_in_their_own_name(ada: APIClient, lead: APIClient) -> None:
    uid = ada.post(JOBS, ALL_FIELDS, format="json").json()["uid"]
    answer = lead.post(f"{JOBS}{uid}/resubmit/")
    assert answer.status_code == 201, answer.content
    copy = answer.json()
    assert (copy["owner"], copy["resubmit_of"]) == ("lead", uid)
    assert {name: copy[name] for name in ALL_FIELDS} == ALL_FIELDS


def test_somebody_who_only_looks_may_not_submit_again(ada: APIClient, viewer: APIClient) -> None:
    uid = ada.post(JOBS, asked(), format="json").json()["uid"]
    assert viewer.post(f"{JOBS}{uid}/resubmit/").status_code == 403


def test_a_job_tells_what_happened_to_it(ada: APIClient, cycle: Callable[..., None]) -> None:
    uid = ada.post(JOBS, asked(), format="json").json()["uid"]
    cycle()
    events = ada.get(f"{JOBS}{uid}/events/").json()["results"]
    moves = [(e["from_state"], e["to_state"], e["actor"], e["reason"]) for e in events]
    assert moves == [
        ("", "queued", "ada", "submitted"),
        ("queued", "starting", "scheduler", "placed"),
    ]


def test_the_log_is_plain_text_that_goes_on_from_a_byte(
    ada: APIClient, run_first: Callable[[], None]
) -> None:
    uid = ada.post(JOBS, asked(), format="json").json()["uid"]
    empty = ada.get(f"{JOBS}{uid}/log/")
    assert (empty.status_code, empty.content, empty["X-Log-Size"]) == (200, b"", "0")
    run_first()
    whole = ada.get(f"{JOBS}{uid}/log/", HTTP_ACCEPT="text/plain")
    assert whole.status_code == 200
    assert whole["Content-Type"] == "text/plain; charset=utf-8"
    assert whole["X-Content-Type-Options"] == "nosniff"
    assert whole.content.startswith(b"simulated: ")
    assert whole["X-Log-Attempt"] == "1"
    assert whole["X-Log-Next"] == whole["X-Log-Size"] == str(len(whole.content))
    rest = ada.get(f"{JOBS}{uid}/log/?since=11")
    assert rest.content == whole.content[11:]
    behind = ada.get(f"{JOBS}{uid}/log/?since=99999999")
    assert (behind.content, behind["X-Log-Next"]) == (b"", str(len(whole.content)))


@pytest.mark.parametrize("since", ["-1", "1e3", "x", "１", "9" * 30, "%00"])
def test_a_byte_that_is_no_number_is_refused(ada: APIClient, since: str) -> None:
    uid = ada.post(JOBS, asked(), format="json").json()["uid"]
    answer = ada.get(f"{JOBS}{uid}/log/?since={since}")
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["since"])


def test_the_list_is_narrowed_in_the_database(ada: APIClient) -> None:
    for name in ("one", "two"):
        ada.post(JOBS, asked(name=name), format="json")
    uid = ada.post(JOBS, asked(name="three", kind="training"), format="json").json()["uid"]
    ada.post(f"{JOBS}{uid}/cancel/")

    def names(query: str) -> list[str]:
        return [job["name"] for job in ada.get(f"{JOBS}?{query}").json()["results"]]

    assert names("") == ["three", "two", "one"]
    assert names("state=queued") == ["two", "one"]
    assert names("state=queued&state=cancelled&ordering=name") == ["one", "three", "two"]
    assert names("kind=training") == ["three"]
    assert names("name=TW") == ["two"]
    assert names("owner=eve") == []
    assert names("submitted_before=2001-01-01T00:00:00Z") == []
    assert len(names("page_size=2")) == 2
    wrong = ada.get(f"{JOBS}?state=sleeping")
    assert (wrong.status_code, list(wrong.json()["fields"])) == (400, ["state"])


def test_a_list_takes_as_many_queries_for_many_jobs_as_for_one(
    ada: APIClient, django_assert_max_num_queries: Callable[..., object]
) -> None:
    for number in range(12):
        ada.post(JOBS, asked(name=f"job {number}"), format="json")
    with django_assert_max_num_queries(6):  # type: ignore[attr-defined]
        assert ada.get(JOBS).json()["count"] == 12


def test_pages_are_bounded(ada: APIClient, world: World) -> None:
    del world
    assert ada.get(f"{JOBS}?page_size=100000").status_code == 200
    assert ada.get(f"{JOBS}?page=999").json()["code"] == "not_found"
