"""Who gets in: tokens, sessions and their limits."""

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.test import Client
from knox.models import AuthToken
from redis.exceptions import RedisError
from rest_framework.test import APIClient

from tests.portal.world import World, asked

JOBS = "/api/v1/jobs/"


def test_nobody_is_let_in_without_a_token(anonymous: APIClient) -> None:
    answer = anonymous.get(JOBS)
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Token")
    assert answer.json() == {
        "code": "not_authenticated",
        "message": "Authentication credentials were not provided.",
        "fields": {},
    }


@pytest.mark.parametrize("token", ["wrong", "x" * 64, "\xff", "a b", "", "é", "../.."])
def test_a_token_that_is_none_is_refused(anonymous: APIClient, token: str) -> None:
    answer = anonymous.get(JOBS, HTTP_AUTHORIZATION=f"Token {token}")
    assert answer.status_code == 401


def test_an_expired_token_is_refused(world: World) -> None:
    _kept, token = AuthToken.objects.create(world.ada, expiry=timedelta(seconds=-1))
    answer = APIClient().get(JOBS, HTTP_AUTHORIZATION=f"Token {token}")
    assert answer.status_code == 401


def test_only_the_hash_of_a_token_is_kept(world: World) -> None:
    kept, token = AuthToken.objects.create(world.ada, expiry=timedelta(days=1))
    row = AuthToken.objects.values().get(pk=kept.pk)
    assert token not in str(row)


def test_the_token_of_somebody_deactivated_is_refused(world: World, ada: APIClient) -> None:
    world.ada.is_active = False
    world.ada.save()
    assert ada.get(JOBS).status_code == 401


def test_a_session_reads_and_needs_the_csrf_token_to_write(world: World) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(world.ada)
    assert browser.get(JOBS).status_code == 200
    refused = browser.post(JOBS, asked(), content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")


def test_tokens_are_made_in_a_browser_listed_and_revoked(world: World) -> None:
    browser = Client()
    browser.force_login(world.ada)
    made = browser.post("/api/v1/me/tokens/", {"days": 3}, content_type="application/json")
    assert made.status_code == 201, made.content
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {made.json()['token']}")
    assert client.get("/api/v1/me/").json() == {"username": "ada", "is_platform_admin": False}
    listed = client.get("/api/v1/me/tokens/").json()["results"]
    assert [row["key"] for row in listed] == [made.json()["key"]]
    assert "token" not in listed[0]
    assert client.delete(f"/api/v1/me/tokens/{made.json()['key']}/").status_code == 204
    assert client.get("/api/v1/me/").status_code == 401


def test_a_token_can_not_make_a_token(ada: APIClient) -> None:
    assert ada.post("/api/v1/me/tokens/", {}, format="json").status_code == 403


@pytest.mark.parametrize("days", [0, -1, "3", 1.5, True, 10**9])
def test_a_lifetime_that_is_none_is_refused(world: World, days: object) -> None:
    browser = Client()
    browser.force_login(world.ada)
    answer = browser.post("/api/v1/me/tokens/", {"days": days}, content_type="application/json")
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["days"])


def test_nobody_revokes_the_token_of_another(ada: APIClient, eve: APIClient) -> None:
    key = ada.get("/api/v1/me/tokens/").json()["results"][0]["key"]
    assert eve.delete(f"/api/v1/me/tokens/{key}/").status_code == 404


def test_an_error_inside_shows_nothing_of_the_inside(
    ada: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_arguments: object) -> None:
        raise KeyError("secret detail")

    monkeypatch.setattr("portal.api.v1.jobs.job_dry_run", broken)
    answer = ada.post(f"{JOBS}?dry_run=true", asked(), format="json")
    body = answer.json()
    assert (answer.status_code, body["code"]) == (500, "internal_error")
    assert len(body["request_id"]) == 32
    assert b"secret" not in answer.content


@pytest.mark.parametrize("away", [OperationalError("host=secret"), RedisError("secret")])
def test_a_database_or_broker_that_is_away_is_answered_with_503(
    ada: APIClient, monkeypatch: pytest.MonkeyPatch, away: Exception
) -> None:
    def broken(**_arguments: object) -> None:
        raise away

    monkeypatch.setattr("portal.api.v1.jobs.job_ask", broken)
    answer = ada.post(JOBS, asked(), format="json")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert int(answer["Retry-After"]) >= 1
    assert b"secret" not in answer.content
