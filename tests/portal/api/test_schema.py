"""The description of the API, and the API against its description."""

import io

import pytest
import yaml
from django.core.management import call_command
from rest_framework.test import APIClient

RESOURCES = (
    "jobs",
    "clusters",
    "nodes",
    "devices",
    "tenants",
    "quotas",
    "placements",
    "usage",
    "decisions",
    "fairness",
    "priority-classes",
)


def test_the_schema_is_valid_and_complete() -> None:
    out = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=out)
    paths = yaml.safe_load(out.getvalue())["paths"]
    assert {f"/api/v1/{name}/" for name in RESOURCES} <= set(paths)
    parameters = paths["/api/v1/jobs/"]["post"]["parameters"]
    assert {"Idempotency-Key", "dry_run"} <= {p["name"] for p in parameters}


def test_the_schema_is_served_before_signing_in(anonymous: APIClient) -> None:
    assert anonymous.get("/api/schema/").status_code == 200


@pytest.mark.parametrize("path", ["/api/docs/", "/api/docs/?script="])
def test_the_docs_run_under_the_policy_without_inline_scripts(ada: APIClient, path: str) -> None:
    answer = ada.get(path)
    assert answer.status_code == 200
    policy = [part.strip() for part in answer["Content-Security-Policy"].split(";")]
    assert "script-src 'self'" in policy
    html = answer.content.decode()
    assert all(" src=" in part.split(">")[0] for part in html.split("<script")[1:])
