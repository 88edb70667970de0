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

from tests.portal.world import World, asked, client_of

EXAMPLES = 6
CHECKS = (
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
ALWAYS = {400, 401, 403, 404, 405, 413, 415, 429}
"""Refusals that any address may answer; the description names those worth a word."""


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_invented_requests_are_answered_as_described(world: World) -> None:
    ada = client_of(world.ada)
    assert ada.post("/api/v1/jobs/", asked(), format="json").status_code == 201
    token = {"Authorization": ada._credentials["HTTP_AUTHORIZATION"]}
    schema = schemathesis.openapi.from_wsgi(
        "/api/schema/?format=json", get_wsgi_application(), headers=token
    )
    count = 0
    for found in schema.get_all_operations():
        _try(found.ok(), token)
        count += 1
    assert count > 30


def _try(operation: Any, token: dict[str, str]) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def check(case: Any) -> None:
        response = case.call(headers=token)
        refused = response.status_code in ALWAYS
        case.validate_response(response, checks=CHECKS[:1] if refused else CHECKS)
        if refused:
            assert set(response.json()) >= {"code", "message", "fields"}

    check()
