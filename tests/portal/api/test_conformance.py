"""Invented requests against the description: nothing breaks, and answers are as described."""

from typing import Any

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from scheduler.models import Job, Pairing, Throughput
from tests import factories
from tests.portal.world import A100, World, asked, client_of, token_of

EXAMPLES = 6
CHECKS = (
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
ALWAYS = {400, 401, 403, 404, 405, 413, 415, 429}
"""Refusals that any address may answer; the description names those worth a word."""


def _real(path: str, world: World) -> dict[str, Any]:
    """Return path parameters that name something that is there."""
    tenants = path.startswith("/api/v1/tenants/")
    quotas = path.startswith("/api/v1/quotas/")
    known = {
        "uid": str(Job.objects.order_by("submitted_at", "uid")[0].pk),
        "slug": "vision" if tenants else "this-machine",
        "username": "viewer",
        "key": "nothing",
        "id": factories.quota(factories.tenant(), world.cluster).pk
        if quotas
        else _throughput()
        if path.startswith("/api/v1/throughputs/")
        else _pairing()
        if path.startswith("/api/v1/pairings/")
        else world.cluster.nodes.order_by("pk")[0].pk,
    }
    return {name: value for name, value in known.items() if f"{{{name}}}" in path}


def _pairing() -> int:
    found, _ = Pairing.objects.get_or_create(
        class_a="cv", class_b="lm", defaults={"throughput_a": 0.9, "throughput_b": 0.4}
    )
    return found.pk


def _throughput() -> int:
    found, _ = Throughput.objects.get_or_create(
        job_class="lm", flavor=A100, defaults={"throughput": 0.5}
    )
    return found.pk


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("real", [True, False], ids=["what is there", "what is invented"])
def test_invented_requests_are_answered_as_described(world: World, real: bool) -> None:
    root = client_of(world.root)
    assert root.post("/api/v1/jobs/", asked(), format="json").status_code == 201
    token = {"Authorization": token_of(world.root)}
    schema: Any = schemathesis.openapi.from_wsgi(
        "/api/schema/?format=json", get_wsgi_application(), headers=token
    )
    answered: set[int] = set()
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) > 30
    for operation in operations:
        fixed = _real(operation.path, world) if real else {}
        answered |= _try(operation, token, fixed)
    assert answered >= ({200, 201, 204, 400, 409} if real else {200, 400, 404})


def _try(operation: Any, token: dict[str, str], fixed: dict[str, Any]) -> set[int]:
    """Return the statuses that a few invented requests were answered with."""
    answered: set[int] = set()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        case.path_parameters = {**(case.path_parameters or {}), **fixed}
        response = case.call(headers=token)
        answered.add(response.status_code)
        refused = response.status_code in ALWAYS
        case.validate_response(response, checks=CHECKS[:1] if refused else CHECKS)
        if refused:
            assert set(response.json()) >= {"code", "message", "fields"}

    check()
    return answered
