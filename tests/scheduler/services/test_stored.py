"""What comes from outside is made fit for a column, and nothing fit is changed."""

import json
import math

import numpy as np

from scheduler.services.stored import (
    stored_float,
    stored_integer,
    stored_json,
    stored_text,
    stored_time,
)


def test_a_value_becomes_what_a_json_column_gives_back() -> None:
    value = {"a": (1, 2.5), "b": np.int64(3), "c": {"d": np.float64("nan")}, "e": math.inf}
    kept = {"a": [1, 2.5], "b": 3, "c": {"d": None}, "e": None}
    assert stored_json(value) == kept
    assert json.loads(json.dumps(stored_json(value), allow_nan=False)) == kept


def test_text_loses_nul_and_half_characters_only() -> None:
    assert stored_text("plain 中文 <b>") == "plain 中文 <b>"
    assert stored_text("a\x00\udfff") == "a\N{REPLACEMENT CHARACTER}?"
    assert stored_text("abc", 2) == "ab"
    assert stored_json({"k\x00": ["\x00"]}) == {"k\ufffd": ["\ufffd"]}


def test_numbers_that_no_column_takes_are_unknown() -> None:
    assert [stored_float(x) for x in (1.5, None, math.nan, -math.inf)] == [1.5, None, None, None]
    assert [stored_integer(x) for x in (-15, None, 2**31)] == [-15, None, None]


def test_absurd_times_are_no_times() -> None:
    known = stored_time(0.0)
    assert known is not None
    assert known.isoformat() == "1970-01-01T00:00:00+00:00"
    assert [stored_time(x) for x in (None, -1.0, math.nan, math.inf, 1e300)] == [None] * 5
