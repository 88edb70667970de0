import re
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from knox.models import AuthToken

pytestmark = pytest.mark.django_db


def make(*arguments: str) -> str:
    output = StringIO()
    call_command("token", *arguments, stdout=output)
    return output.getvalue()


def test_a_token_is_printed_alone_and_only_its_hash_is_kept() -> None:
    user = get_user_model().objects.create_user("ada")
    said = make("ada")
    assert re.fullmatch(r"[0-9a-f]{64}\n", said)
    (kept,) = AuthToken.objects.filter(user=user)
    assert said.strip() not in (kept.digest, kept.token_key)


def test_a_token_lives_as_long_as_asked_for() -> None:
    get_user_model().objects.create_user("ada")
    make("ada", "--days", "7")
    kept = AuthToken.objects.get()
    assert abs(kept.expiry - kept.created - timedelta(days=7)) < timedelta(minutes=1)


def test_an_unknown_user_is_named_with_the_remedy() -> None:
    with pytest.raises(CommandError, match=r"no user 'bob'.*createsuperuser"):
        make("bob")


def test_an_inactive_user_gets_no_token() -> None:
    get_user_model().objects.create_user("ada", is_active=False)
    with pytest.raises(CommandError, match="not active"):
        make("ada")
    assert not AuthToken.objects.exists()


@pytest.mark.parametrize("days", ["0", "-1", "1.5", "3651", "９", "1e3", "9" * 40])
def test_a_lifetime_that_does_not_fit_is_refused(days: str) -> None:
    get_user_model().objects.create_user("ada")
    with pytest.raises(CommandError, match="number of days from 1 to 3650"):
        make("ada", f"--days={days}")
    assert not AuthToken.objects.exists()
