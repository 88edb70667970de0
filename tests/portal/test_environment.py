import pytest
from django.core.exceptions import ImproperlyConfigured

from portal.environment import Environment, masked

WRONG = {
    "a word": "abc",
    "a fraction": "80.5",
    "an exponent": "1e3",
    "full-width digits": "８０",
    "zero": "0",
    "too large": "65536",
    "negative": "-1",
    "a hundred digits": "9" * 100,
}


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in WRONG.items()])
def test_a_port_that_does_not_fit_is_refused_by_name_and_value(text: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        Environment({"KILTER_PORT": text}).whole("KILTER_PORT", 8000, low=1, high=65535)
    assert f"KILTER_PORT={text!r}" in str(refused.value)
    assert "from 1 to 65535" in str(refused.value)


def test_an_empty_variable_counts_as_unset() -> None:
    env = Environment({"A": "  "})
    assert env.text("A", "x") == "x"
    assert env.whole("A", 3, low=1, high=5) == 3
    assert env.number("A", 0.5, low=0, high=1) == 0.5
    assert env.flag("A", default=True) is True
    assert env.words("A", ["y"]) == ["y"]
    assert env.database("A") is None


def test_values_are_read_without_the_space_around_them() -> None:
    env = Environment({"N": " 42 ", "F": "Yes", "W": "a, b,,c ", "X": "2.5", "L": "debug"})
    assert env.whole("N", 0, low=0, high=100) == 42
    assert env.flag("F", default=False) is True
    assert env.words("W") == ["a", "b", "c"]
    assert env.number("X", 1, low=0, high=3) == 2.5
    assert env.choice("L", "INFO", ("DEBUG", "INFO")) == "DEBUG"


@pytest.mark.parametrize("text", ["nan", "inf", "abc", "1e3", "-1", "11"])
def test_a_number_that_is_none_or_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="from 0 to 10"):
        Environment({"S": text}).number("S", 1.0, low=0, high=10)


def test_a_flag_and_a_choice_do_not_guess() -> None:
    with pytest.raises(ImproperlyConfigured, match="KILTER_DEBUG='maybe'"):
        Environment({"KILTER_DEBUG": "maybe"}).flag("KILTER_DEBUG", default=False)
    with pytest.raises(ImproperlyConfigured, match="LEVEL='LOUD' is none of DEBUG, INFO"):
        Environment({"LEVEL": "loud"}).choice("LEVEL", "INFO", ("DEBUG", "INFO"))


def test_a_postgresql_url_becomes_django_settings() -> None:
    found = Environment({"DB": "postgresql://me:p%40ss@host:5433/name?sslmode=require"})
    settings = found.database("DB")
    assert settings is not None
    assert settings["ENGINE"] == "django.db.backends.postgresql"
    assert (settings["USER"], settings["PASSWORD"]) == ("me", "p@ss")
    assert (settings["HOST"], settings["PORT"], settings["NAME"]) == ("host", 5433, "name")
    assert settings["OPTIONS"] == {"sslmode": "require"}


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///db.sqlite3",
        "mysql://me:hunter2@host/name",
        "postgresql://me:hunter2@host:port/name",
        "postgresql://me:hunter2@host",
        "hunter2",
    ],
)
def test_what_is_no_postgresql_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="no PostgreSQL URL") as refused:
        Environment({"DATABASE_URL": url}).database("DATABASE_URL")
    assert ":hunter2" not in str(refused.value)


CASES = {
    "user and password": ("redis://me:secret@h:1/0", "redis://me:***@h:1/0"),
    "password only": ("redis://:secret@h/0", "redis://:***@h/0"),
    "password with an at sign": ("postgresql://me:a@b@h/n", "postgresql://me:***@h/n"),
    "password with a slash": ("postgresql://me:a/b@h/n", "postgresql://me:***@h/n"),
    "password in the query": ("unix:///s?db=1&password=x&a=2", "unix:///s?db=1&password=***&a=2"),
    "no password": ("redis://h:6379/0", "redis://h:6379/0"),
}


@pytest.mark.parametrize(
    ("url", "shown"), [pytest.param(*case, id=name) for name, case in CASES.items()]
)
def test_passwords_are_hidden(url: str, shown: str) -> None:
    assert masked(url) == shown
