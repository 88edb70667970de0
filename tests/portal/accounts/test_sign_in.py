"""The door: what it gives away, where it leads, and whom it lets try how often."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from tests import factories

pytestmark = pytest.mark.django_db

LOGIN = "/accounts/login/"
PASSWORD = "long-enough-7Q"


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def mia() -> User:
    person = factories.user("mia")
    person.set_password(PASSWORD)
    person.save()
    return person


def sign_in(client: Client, user: str, password: str, **more: str) -> Any:
    return client.post(LOGIN, {"login": user, "password": password, **more})


@pytest.mark.usefixtures("mia")
@pytest.mark.parametrize(
    "wanted",
    [
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "javascript:alert(1)",
        "http:///x",
    ],
)
def test_it_leads_to_no_other_site(wanted: str) -> None:
    assert sign_in(Client(), "mia", PASSWORD, next=wanted)["Location"] == "/"


@pytest.mark.usefixtures("mia")
def test_it_leads_back_to_where_one_was_going() -> None:
    client = Client()
    there = client.get("/jobs/?q=a%26b")["Location"]
    assert there == "/accounts/login/?next=/jobs/%3Fq%3Da%2526b"
    assert sign_in(client, "mia", PASSWORD, next="/jobs/?q=a%26b")["Location"] == "/jobs/?q=a%26b"


@pytest.mark.usefixtures("mia")
def test_a_session_that_somebody_else_chose_is_not_kept() -> None:
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = "chosen0123456789abcdef0123456789"
    sign_in(client, "mia", PASSWORD)
    assert client.cookies[settings.SESSION_COOKIE_NAME].value != "chosen0123456789abcdef0123456789"
    assert client.get("/").status_code == 200


@pytest.mark.usefixtures("mia")
def test_it_does_not_tell_whether_there_is_such_a_person() -> None:
    answers = [sign_in(Client(), name, "wrong").content.decode() for name in ("mia", "nobody")]
    texts = [
        re.findall(r"k-error[^>]*>([^<]+)|alert-danger[^>]*>\s*<div>([^<]+)", a) for a in answers
    ]
    assert texts[0]
    assert texts[0] == texts[1]


@pytest.mark.usefixtures("mia")
def test_who_guesses_too_often_is_not_let_in_by_the_right_password() -> None:
    for _ in range(5):
        sign_in(Client(), "mia", "wrong")
    client = Client()
    answer = sign_in(client, "mia", PASSWORD)
    assert answer.status_code == 200
    assert "Too many failed login attempts" in answer.content.decode()
    assert client.get("/").status_code == 302


def test_an_address_that_tries_without_end_waits_and_reads_why() -> None:
    client = Client()
    codes = [sign_in(client, f"name{n}", "wrong").status_code for n in range(31)]
    assert codes[-1] == 429
    page = sign_in(client, "mia", "wrong").content.decode()
    assert "Wait some minutes" in page
    assert "k-entrance" in page


def test_every_page_carries_the_headers_that_browsers_need(mia: User) -> None:
    client = Client()
    client.force_login(mia)
    answer = client.get("/")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["Referrer-Policy"] == "same-origin"
    assert "private" in answer["Cache-Control"]
    policy = answer["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


@pytest.mark.usefixtures("mia")
def test_scripts_can_not_read_the_session() -> None:
    client = Client()
    sign_in(client, "mia", PASSWORD)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
