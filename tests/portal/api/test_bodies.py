"""Bad input, at the least: each gets a clear answer that names the field, and no job is made."""

import json
from typing import Any

import pytest
from rest_framework.exceptions import ParseError
from rest_framework.test import APIClient

from portal.api.v1.auth import BODY_LIMIT_BYTES, parse_object
from scheduler.models import Job
from tests.portal.world import asked

JOBS = "/api/v1/jobs/"
AMOUNTS = (
    "cpu_milli",
    "memory_mib",
    "devices",
    "gpu_milli",
    "replicas",
    "time_limit_s",
    "checkpoint_interval_s",
)
NOT_AMOUNTS: dict[str, Any] = {
    "a float": 0.5,
    "a whole float": 4.0,
    "a float in exponents": 1e3,
    "text in exponents": "1e3",
    "a decimal as text": "0.5",
    "binary units": "16Gi",
    "decimal units": "16GB",
    "full-width digits": "１６",
    "a number as text": "1",
    "negative": -1,
    "absurd": 10**30,
    "beyond a 32-bit column": 2**31,
    "text": "ten minutes",
    "NaN as text": "NaN",
    "a boolean": True,
    "a list": [1],
    "an object": {"n": 1},
}


@pytest.mark.parametrize("value", NOT_AMOUNTS.values(), ids=NOT_AMOUNTS.keys())
@pytest.mark.parametrize("field", AMOUNTS)
def test_an_amount_is_a_json_integer_within_bounds(
    ada: APIClient, field: str, value: object
) -> None:
    answer = ada.post(f"{JOBS}?dry_run=1", asked(**{field: value}), format="json")
    assert answer.status_code == 400
    refusal = answer.json()
    assert refusal["code"] == "invalid"
    assert field in refusal["fields"]
    assert set(refusal) == {"code", "message", "fields"}


@pytest.mark.parametrize("field", ["cpu_milli", "memory_mib", "replicas", "time_limit_s"])
def test_zero_is_refused_where_something_is_needed(ada: APIClient, field: str) -> None:
    answer = ada.post(JOBS, asked(**{field: 0}), format="json")
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])


@pytest.mark.parametrize(("interval_s", "status"), [(0, 201), (31_536_000, 201), (31_536_001, 400)])
def test_a_checkpoint_interval_is_from_none_to_a_year(
    ada: APIClient, interval_s: int, status: int
) -> None:
    answer = ada.post(JOBS, asked(checkpoint_interval_s=interval_s), format="json")
    assert answer.status_code == status
    if status == 400:
        assert list(answer.json()["fields"]) == ["checkpoint_interval_s"]
    else:
        assert answer.json()["checkpoint_interval_s"] == interval_s


def test_null_means_the_default(ada: APIClient) -> None:
    answer = ada.post(JOBS, asked(cpu_milli=None, flavors=None), format="json")
    assert (answer.status_code, answer.json()["cpu_milli"]) == (201, 1000)


TEXTS: dict[str, tuple[str, Any]] = {
    "no name": ("name", ""),
    "a name that is no text": ("name", 7),
    "a control character in a name": ("name", "a\x07b"),
    "an escape sequence in a name": ("name", "\x1b[31mred"),
    "a right-to-left override in a name": ("name", "a\u202eb"),
    "a name without end": ("name", "x" * 201),
    "an empty command": ("command", "   "),
    "a command that is no text": ("command", ["rm", "-rf"]),
    "a bell in a command": ("command", "echo \x07"),
    "a command of 70 kB": ("command", "x" * 70_000),
    "an unknown flavor": ("flavors", ["h900"]),
    "a flavor that is no list": ("flavors", "nvidia-a100-80gb-sxm"),
    "an unknown cluster": ("cluster", "nowhere"),
    "a cluster that is a number": ("cluster", 1),
    "an unknown kind": ("kind", "mining"),
    "a kind that is a list": ("kind", ["batch"]),
    "an unknown priority class": ("priority_class", "king"),
    "an environment that is a list": ("env", ["A=1"]),
    "an environment of numbers": ("env", {"A": 1}),
    "a variable that Kilter sets": ("env", {"CUDA_VISIBLE_DEVICES": "0"}),
    "a variable with a bad name": ("env", {"a b": "1"}),
    "an image with blanks": ("image", "a b"),
    "an unknown field": ("nodes", 3),
}


@pytest.mark.parametrize(("field", "value"), TEXTS.values(), ids=TEXTS.keys())
def test_a_bad_value_names_its_field(ada: APIClient, field: str, value: object) -> None:
    devices = {"devices": 1} if field == "flavors" else {}
    answer = ada.post(JOBS, asked(**{field: value, **devices}), format="json")
    assert answer.status_code == 400, answer.content
    assert [name.strip("“”") for name in answer.json()["fields"]] == [field]
    assert not Job.objects.exists()


def test_markup_in_a_name_is_kept_as_it_is(ada: APIClient) -> None:
    name = "<script>alert(1)</script> & 'quotes' 训练"
    answer = ada.post(JOBS, asked(name=name), format="json")
    assert answer["Content-Type"] == "application/json"
    assert answer.json()["name"] == name


def test_ten_megabytes_are_refused_with_413(ada: APIClient) -> None:
    body = json.dumps(asked(command="x" * 10_000_000))
    answer = ada.post(JOBS, body, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert str(BODY_LIMIT_BYTES) in answer.json()["message"]


BODIES = {
    "nothing at all": b"",
    "no JSON": b"name=first",
    "half a JSON": b'{"name": "a"',
    "a list": b"[]",
    "a text": b'"x"',
    "NaN": b'{"min_throughput": NaN}',
    "Infinity": b'{"min_throughput": -Infinity}',
    "a number that is infinite": b'{"min_throughput": 1e999}',
    "an interval that is not a number": b'{"checkpoint_interval_s": NaN}',
    "a key that stands there twice": b'{"name": "a", "name": "b"}',
    "a key that stands there twice, deep": b'{"env": {"A": "1", "A": "2"}}',
    "half a surrogate pair": b'{"name": "\\ud800"}',
    "half a surrogate pair in a key": b'{"\\ud800": 1}',
    "NUL": b'{"name": "a\\u0000b"}',
    "a raw NUL": b'{"name": "a\x00b"}',
    "no UTF-8": b'{"name": "\xff"}',
    "a byte order mark": b'\xef\xbb\xbf{"name": "a"}',
    "an integer of 5000 digits": b'{"devices": ' + b"9" * 5000 + b"}",
    "a depth bomb of lists": b"[" * 200_000,
    "a depth bomb of objects": b'{"a":' * 100_000,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_doubtful_body_is_refused(body: bytes) -> None:
    with pytest.raises(ParseError):
        parse_object(body)


def test_a_doubtful_body_is_answered_in_the_one_shape(ada: APIClient) -> None:
    for body in (b"[" * 200_000, b'{"name": "\\ud800"}', b"\xff"):
        answer = ada.post(JOBS, body, content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (400, "parse_error")


def test_only_json_is_taken(ada: APIClient) -> None:
    answer = ada.post(JOBS, "name=first", content_type="application/x-www-form-urlencoded")
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_a_method_that_does_not_exist_is_answered_in_the_one_shape(ada: APIClient) -> None:
    answer = ada.delete(JOBS)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")


@pytest.mark.parametrize("path", ["nothing/", "jobs/not-a-uuid/", "jobs", ""])
def test_an_address_that_does_not_exist_is_answered_in_json(ada: APIClient, path: str) -> None:
    answer = ada.get(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_dry_run_that_is_neither_true_nor_false_is_refused(ada: APIClient) -> None:
    answer = ada.post(f"{JOBS}?dry_run=maybe", asked(), format="json")
    assert (answer.status_code, list(answer.json()["fields"])) == (400, ["dry_run"])


@pytest.mark.parametrize(
    "query",
    [
        "tenant=%00",
        "name=%00",
        "submitted_after=yesterday",
        "page=0",
        "page=x",
        "ordering=password",
        "state=%F0%28",
    ],
)
def test_a_bad_query_is_refused_and_breaks_nothing(ada: APIClient, query: str) -> None:
    answer = ada.get(f"{JOBS}?{query}")
    assert answer.status_code in {400, 404}
    assert set(answer.json()) == {"code", "message", "fields"}


@pytest.mark.parametrize(
    "query",
    [
        "submitted_after=0001-01-01T00:00:00%2B14:00",
        "submitted_before=9999-12-31T23:59:59-12:00",
    ],
)
def test_times_far_away_break_nothing(ada: APIClient, query: str) -> None:
    assert ada.get(f"{JOBS}?{query}").json()["count"] == 0
