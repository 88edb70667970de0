"""A person's API tokens."""

import re

import pytest
from django.test import Client
from knox.models import AuthToken

from tests.portal.pages.conftest import World, text_of


def test_a_token_is_shown_once_and_works(ada: Client, world: World) -> None:
    page = text_of(ada.post("/me/tokens/", {"days": "7"}))
    shown = re.search(r'id="new-token" readonly value="([0-9a-f]+)"', page)
    assert shown
    assert AuthToken.objects.get().user == world.ada
    assert shown[1] not in text_of(ada.get("/me/tokens/"))
    answer = Client().get("/api/v1/me/", headers={"Authorization": f"Token {shown[1]}"})
    assert answer.json()["username"] == "ada"


def test_the_page_with_a_token_is_kept_nowhere(ada: Client) -> None:
    assert "no-store" in ada.post("/me/tokens/", {"days": "7"})["Cache-Control"]


@pytest.mark.parametrize("days", ["0", "-1", "99999", "x", ""])
def test_a_life_that_is_no_number_of_days_is_refused(ada: Client, days: str) -> None:
    assert ada.post("/me/tokens/", {"days": days}).status_code == 422
    assert not AuthToken.objects.exists()


def test_only_the_owner_sees_and_revokes_a_token(ada: Client, eve: Client) -> None:
    ada.post("/me/tokens/", {"days": "7"})
    key = AuthToken.objects.get().token_key
    assert key[:8] not in text_of(eve.get("/me/tokens/"))
    assert eve.post(f"/me/tokens/{key}/revoke/").status_code == 404
    assert AuthToken.objects.exists()
    ada.post(f"/me/tokens/{key}/revoke/")
    assert not AuthToken.objects.exists()
