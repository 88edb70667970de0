"""Asking for compute by form."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from portal.pages.forms.request import (
    JobRequestForm,
    as_typed,
    duration_as_typed,
    memory_as_typed,
    parsed_env,
)
from portal.pages.waiting import remedy_changes, waiting
from scheduler.choices import JobState
from scheduler.models import Job
from tests.portal.pages.conftest import A100, World, text_of

FIELDS = {
    "name": "first",
    "tenant": "vision",
    "cluster": "this-machine",
    "kind": "batch",
    "command": "echo hello",
    "replicas": "1",
    "cpu_milli": "1.5",
    "memory_mib": "2GiB",
    "devices": "0",
    "gpu_milli": "1",
    "time_limit_s": "1h30m",
    "env": "A=1\nB=x=y",
}


def test_a_request_is_queued_with_the_amounts_that_were_typed(ada: Client) -> None:
    response = ada.post("/jobs/new/", FIELDS)
    job = Job.objects.get(name="first")
    assert response.status_code == 302
    assert response["Location"] == f"/jobs/{job.pk}/"
    assert job.state == JobState.QUEUED
    assert (job.cpu_milli, job.memory_mib, job.time_limit_s) == (1500, 2048, 5400)
    assert job.env == {"A": "1", "B": "x=y"}
    assert job.owner.username == "ada"


@pytest.mark.parametrize("name", ["replicas_min", "min_throughput", "checkpoint_interval_s"])
def test_the_folded_fields_are_open_where_one_of_them_is_refused(ada: Client, name: str) -> None:
    folded, unfolded = '<details class="mb-3">', '<details class="mb-3" open>'
    assert folded in text_of(ada.post("/jobs/new/", FIELDS | {"cpu_milli": "many"}))
    assert unfolded in text_of(ada.post("/jobs/new/", FIELDS | {name: "many"}))


@pytest.mark.parametrize("level", ["link", "nic", "numa", "node", "rack", "block"])
def test_a_request_says_how_near_its_replicas_are_to_be(ada: Client, level: str) -> None:
    assert f'<option value="{level}">' in text_of(ada.get("/jobs/new/"))
    ada.post(
        "/jobs/new/", FIELDS | {"cluster": "demo", "devices": "1", "preferred_topology": level}
    )
    assert Job.objects.get(name="first").preferred_topology == level


def test_the_cluster_is_this_machine_unless_told_otherwise(ada: Client) -> None:
    page = text_of(ada.get("/jobs/new/"))
    assert '<option value="this-machine" selected>' in page


BAD = {
    "no name": ({"name": " "}, "A job needs a name."),
    "decimal unit": ({"memory_mib": "16GB"}, "16GiB"),
    "exponent": ({"cpu_milli": "1e3"}, "1e3"),
    "wide digits": ({"devices": "１"}, "plain digits"),
    "nothing": ({"replicas": "0"}, "&#x27;0&#x27;"),
    "another's tenant": ({"tenant": "language"}, "You may not submit"),
    "no such cluster": ({"cluster": "moon"}, "There is no cluster"),
    "env without =": ({"env": "A=1\nnonsense"}, "Line 2"),
    "reserved env": ({"env": "KILTER_X=1"}, "is set by Kilter"),
    "control character": ({"command": "echo \x1b[31m"}, "U+001B"),
    "NUL": ({"command": "echo \x00"}, "Null characters"),
    "image on processes": ({"image": "a/b:c"}, "runs processes"),
}


@pytest.mark.parametrize(("changed", "said"), BAD.values(), ids=BAD.keys())
def test_what_can_not_be_taken_comes_back_beside_the_field_and_nothing_is_lost(
    ada: Client, changed: dict[str, str], said: str
) -> None:
    response = ada.post("/jobs/new/", {**FIELDS, "name": "kept-name", **changed})
    page = text_of(response)
    assert response.status_code == 422
    assert said in page
    assert "echo hello" in page or "command" in changed
    assert "1h30m" in page
    assert "kept-name" in page or "name" in changed
    assert not Job.objects.filter(name="kept-name").exists()


def test_markup_that_was_typed_is_shown_as_text(ada: Client) -> None:
    page = text_of(ada.post("/jobs/new/", {**FIELDS, "memory_mib": "<script>alert(1)</script>"}))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_a_job_that_never_fits_is_refused_with_its_reason(ada: Client) -> None:
    response = ada.post("/jobs/new/", {**FIELDS, "memory_mib": "64GiB"})
    page = text_of(response)
    assert response.status_code == 422
    assert 'data-verdict="never"' in page
    assert 'value="64GiB"' in page
    assert "No node is large enough" in page
    assert not Job.objects.filter(name="first").exists()


def test_the_estimate_answers_before_name_and_command_are_typed(ada: Client) -> None:
    response = ada.post("/jobs/new/estimate/", {**FIELDS, "name": "", "command": ""})
    assert 'data-verdict="now"' in text_of(response)
    assert not Job.objects.filter(tenant__slug="vision", name="estimate").exists()


def test_the_estimate_names_the_field_that_is_wrong(ada: Client) -> None:
    page = text_of(ada.post("/jobs/new/estimate/", {**FIELDS, "memory_mib": "16GB"}))
    assert 'data-verdict="incomplete"' in page
    assert "<strong>Memory:</strong>" in page


def test_the_estimate_shows_quota_and_remedies_that_type_themselves(ada: Client) -> None:
    fields = {**FIELDS, "cluster": "demo", "devices": "6", "cpu_milli": "1", "memory_mib": "1GiB"}
    page = text_of(ada.post("/jobs/new/estimate/", fields))
    assert 'data-verdict="never"' in page
    assert "data-changes=" in page
    assert "k-bar" in page


def test_a_viewer_has_no_tenant_to_submit_to(viewer: Client) -> None:
    page = text_of(viewer.get("/jobs/new/"))
    assert "You are in no tenant yet" in page
    assert "<textarea" not in page


def test_a_copy_starts_with_what_the_job_asked_for(ada: Client, world: World) -> None:
    page = text_of(ada.get(f"/jobs/new/?from={world.job.pk}"))
    assert "train &lt;b&gt;big&lt;/b&gt;" in page
    assert "KEY=se&amp;cret" in page


def test_nobody_copies_a_job_that_they_may_not_see(ada: Client, world: World) -> None:
    assert ada.get(f"/jobs/new/?from={world.secret.pk}").status_code == 404


def test_the_estimate_is_only_for_posts(ada: Client) -> None:
    assert ada.get("/jobs/new/estimate/").status_code == 405


def test_an_estimate_takes_a_bounded_number_of_queries(
    ada: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(35):
        ada.post("/jobs/new/estimate/", FIELDS)


@pytest.mark.parametrize(
    ("remedy", "typed"),
    [
        ({"code": "fewer_devices", "params": {"devices": 4}}, {"devices": "4"}),
        ({"code": "less_memory", "params": {"memory_mib": 1536}}, {"memory_mib": "1536MiB"}),
        ({"code": "less_cpu", "params": {"cpu_milli": 1500}}, {"cpu_milli": "1.5"}),
        (
            {"code": "shorter_time_limit", "params": {"time_limit_s": 5400.9}},
            {"time_limit_s": "1h30m"},
        ),
        ({"code": "other_flavor", "params": {"flavor": A100}}, {"flavors": [A100]}),
        (
            {"code": "lower_min_throughput", "params": {"min_throughput": 0.31}},
            {"min_throughput": "0.31"},
        ),
        (
            {"code": "lower_min_throughput", "params": {"min_throughput": 0.0}},
            {"min_throughput": ""},
        ),
        ({"code": "ask_for_quota", "params": {"missing_milli": {A100: 1000}}}, {}),
    ],
)
def test_a_remedy_becomes_what_to_type(remedy: dict[str, Any], typed: dict[str, Any]) -> None:
    assert remedy_changes(remedy) == typed


def test_a_job_that_waits_for_nothing_has_no_reason() -> None:
    assert waiting({}) is None
    assert waiting(None) is None


def test_evidence_is_flattened_into_amounts_with_units() -> None:
    found = waiting({"code": "waiting_for_capacity", "evidence": {"free": {"memory_mib": 2048}}})
    assert found is not None
    assert found.evidence == [("free · memory", "2 GiB")]


def test_amounts_are_typed_back_exactly() -> None:
    assert (memory_as_typed(2048), memory_as_typed(1500)) == ("2GiB", "1500MiB")
    assert (duration_as_typed(93784), duration_as_typed(0)) == ("1d2h3m4s", "0s")


def test_a_name_that_comes_twice_is_named_with_its_line() -> None:
    with pytest.raises(ValidationError, match="Line 3"):
        parsed_env("A=1\n\nA=2")
    assert parsed_env("export A=1\r\n B =") == {"A": "1", "B": ""}


def test_a_job_as_typed_fills_every_field_of_the_form(world: World) -> None:
    assert set(as_typed(world.job)) == set(JobRequestForm().fields)
