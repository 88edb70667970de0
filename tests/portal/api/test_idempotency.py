"""The same Idempotency-Key answers the first one's job, however often and however fast."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection
from rest_framework.test import APIClient

from scheduler.models import Job
from tests.portal.world import World, asked, client_of

JOBS = "/api/v1/jobs/"


def test_a_repeated_key_answers_the_first_ones_job(ada: APIClient) -> None:
    first = ada.post(JOBS, asked(), format="json", HTTP_IDEMPOTENCY_KEY="k1")
    again = ada.post(JOBS, asked(name="other"), format="json", HTTP_IDEMPOTENCY_KEY="k1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["uid"] == first.json()["uid"]
    assert Job.objects.count() == 1


def test_another_key_makes_another_job(ada: APIClient) -> None:
    for key in ("k1", "k2"):
        assert ada.post(JOBS, asked(), format="json", HTTP_IDEMPOTENCY_KEY=key).status_code == 201
    assert Job.objects.count() == 2


def test_two_people_may_use_the_same_key(ada: APIClient, lead: APIClient) -> None:
    one = ada.post(JOBS, asked(), format="json", HTTP_IDEMPOTENCY_KEY="k")
    other = lead.post(JOBS, asked(), format="json", HTTP_IDEMPOTENCY_KEY="k")
    assert one.json()["uid"] != other.json()["uid"]


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
def test_a_key_that_is_no_key_is_refused(ada: APIClient, key: str) -> None:
    answer = ada.post(JOBS, asked(), format="json", HTTP_IDEMPOTENCY_KEY=key)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["Idempotency-Key"])


@pytest.mark.django_db(transaction=True)
def test_two_at_the_same_moment_make_one_job(world: World) -> None:
    clients = [client_of(world.ada), client_of(world.ada)]
    together = Barrier(2)

    def post(client: APIClient) -> tuple[int, str]:
        try:
            together.wait(timeout=10)
            answer = client.post(JOBS, asked(), format="json", HTTP_IDEMPOTENCY_KEY="same")
            return answer.status_code, answer.json()["uid"]
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(post, clients))
    assert sorted(status for status, _uid in answers) == [200, 201]
    assert len({uid for _status, uid in answers}) == 1
    assert Job.objects.count() == 1
