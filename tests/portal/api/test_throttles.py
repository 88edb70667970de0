"""Too many estimates and submissions are put off, with the time to wait."""

import pytest
from rest_framework.test import APIClient

from portal.api.v1.throttles import DryRunThrottle, SubmitThrottle
from tests.portal.world import asked

JOBS = "/api/v1/jobs/"


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DryRunThrottle, "rate", "2/min")
    monkeypatch.setattr(SubmitThrottle, "rate", "1/min")


@pytest.mark.usefixtures("_few")
def test_more_than_a_bursts_worth_of_estimates_waits(ada: APIClient, lead: APIClient) -> None:
    statuses = [
        ada.post(f"{JOBS}?dry_run=true", asked(), format="json").status_code for _ in range(2)
    ]
    late = ada.post(f"{JOBS}?dry_run=true", asked(), format="json")
    assert statuses == [200, 200]
    assert (late.status_code, late.json()["code"]) == (429, "throttled")
    assert 1 <= int(late["Retry-After"]) <= 61
    assert lead.post(f"{JOBS}?dry_run=true", asked(), format="json").status_code == 200


@pytest.mark.usefixtures("_few")
def test_estimates_and_submissions_are_counted_apart_and_reading_is_free(ada: APIClient) -> None:
    assert ada.post(f"{JOBS}?dry_run=true", asked(), format="json").status_code == 200
    assert ada.post(JOBS, asked(), format="json").status_code == 201
    assert ada.post(JOBS, asked(), format="json").status_code == 429
    assert {ada.get(JOBS).status_code for _ in range(5)} == {200}
