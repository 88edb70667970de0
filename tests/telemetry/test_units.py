"""Quantities as people type them and programs send them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry import units
from telemetry.units import InvalidQuantityError, Quantity

REFUSED_EVERYWHERE = {
    "an exponent": "1e3",
    "not a number": "NaN",
    "infinity": "inf",
    "a minus sign": "-1",
    "a plus sign": "+1",
    "full-width digits": "１６",
    "Arabic-Indic digits": "٣",
    "a superscript": "2²",
    "nothing": "",
    "only blanks": "   ",
    "a newline inside": "1\n2",
    "a newline at the end": "16\n",
    "a no-break space": "\u00a016",
    "a thousands separator": "1,000",
    "an underscore": "1_000",
    "hexadecimal": "0x10",
    "a word": "many",
    "two points": "1.2.3",
    "a point without digits": ".",
    "a point without digits before": ".5",
    "a point without digits after": "5.",
    "markup": "<b>1</b>",
    "a null byte": "1\x00",
    "more digits than anybody needs": "9" * 41,
    "more than the bound": "9" * 30,
}
PARSERS: dict[str, Callable[[Any], int]] = {
    "cpu": units.parse_cpu_milli,
    "gpu": units.parse_gpu_milli,
    "memory": units.parse_memory_mib,
    "count": units.parse_count,
    "duration": units.parse_duration_s,
}


@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS.keys())
@pytest.mark.parametrize("text", REFUSED_EVERYWHERE.values(), ids=REFUSED_EVERYWHERE.keys())
def test_every_field_refuses(text: str, parse: Callable[[Any], int]) -> None:
    with pytest.raises(InvalidQuantityError) as refused:
        parse(text)
    assert refused.value.expected
    assert refused.value.remedy
    assert len(refused.value.value) <= 48
    assert refused.value.value.isprintable()


@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS.keys())
@pytest.mark.parametrize("value", [None, True, 1, 1.5, b"16", ["16"]])
def test_what_is_not_text_is_refused_as_text(value: object, parse: Callable[[Any], int]) -> None:
    with pytest.raises(InvalidQuantityError):
        parse(value)


TAKEN: dict[str, tuple[Callable[[Any], int], str, int]] = {
    "cores": (units.parse_cpu_milli, "2", 2000),
    "parts of a core": (units.parse_cpu_milli, "1.5", 1500),
    "thousandths of a core": (units.parse_cpu_milli, "1500m", 1500),
    "the finest part of a core": (units.parse_cpu_milli, "0.001", 1),
    "zeros behind thousandths": (units.parse_cpu_milli, "0.2500", 250),
    "blanks around": (units.parse_cpu_milli, "  2\t", 2000),
    "the most cores": (units.parse_cpu_milli, "10000", 10_000_000),
    "half a device": (units.parse_gpu_milli, "0.5", 500),
    "thousandths of a device": (units.parse_gpu_milli, "500m", 500),
    "a whole device": (units.parse_gpu_milli, "1", 1000),
    "GiB as Kubernetes writes it": (units.parse_memory_mib, "16Gi", 16384),
    "GiB in full": (units.parse_memory_mib, "16 GiB", 16384),
    "GiB in small letters": (units.parse_memory_mib, "16gib", 16384),
    "MiB": (units.parse_memory_mib, "512Mi", 512),
    "TiB with a part": (units.parse_memory_mib, "1.5Ti", 1_572_864),
    "a part of a GiB that is whole MiB": (units.parse_memory_mib, "0.5Gi", 512),
    "a plain integer of MiB": (units.parse_memory_mib, "4096", 4096),
    "the most memory": (units.parse_memory_mib, "64Ti", 67_108_864),
    "a count": (units.parse_count, "8", 8),
    "leading zeros": (units.parse_count, "008", 8),
    "no device": (units.parse_count, "0", 0),
    "plain seconds": (units.parse_duration_s, "3600", 3600),
    "seconds": (units.parse_duration_s, "90s", 90),
    "minutes": (units.parse_duration_s, "30m", 1800),
    "hours": (units.parse_duration_s, "4h", 14_400),
    "hours and minutes": (units.parse_duration_s, "1h30m", 5400),
    "days and hours apart": (units.parse_duration_s, "2d 4h", 187_200),
    "a clock": (units.parse_duration_s, "1:30:00", 5400),
    "the longest": (units.parse_duration_s, "365d", 31_536_000),
}


@pytest.mark.parametrize(("parse", "text", "expected"), TAKEN.values(), ids=TAKEN.keys())
def test_a_field_takes(parse: Callable[[Any], int], text: str, expected: int) -> None:
    assert parse(text) == expected


REFUSED: dict[str, tuple[Callable[[Any], int], str]] = {
    "zero cores": (units.parse_cpu_milli, "0"),
    "finer than a thousandth of a core": (units.parse_cpu_milli, "0.0001"),
    "one core too many": (units.parse_cpu_milli, "10001"),
    "a part of a thousandth": (units.parse_cpu_milli, "1.5m"),
    "more than one device as a part": (units.parse_gpu_milli, "1.001"),
    "no part of a device": (units.parse_gpu_milli, "0"),
    "no memory": (units.parse_memory_mib, "0Gi"),
    "a bare decimal": (units.parse_memory_mib, "1.5"),
    "KiB": (units.parse_memory_mib, "1024Ki"),
    "bytes": (units.parse_memory_mib, "1048576B"),
    "thousandths of a byte": (units.parse_memory_mib, "500m"),
    "a dotless i": (units.parse_memory_mib, "16G\u0131"),
    "more than 64 TiB": (units.parse_memory_mib, "65Ti"),
    "half a device as a count": (units.parse_count, "0.5"),
    "too many devices": (units.parse_count, "1025"),
    "no time": (units.parse_duration_s, "0s"),
    "minutes before hours": (units.parse_duration_s, "30m1h"),
    "a minute of 60 seconds": (units.parse_duration_s, "1:00:60"),
    "more than a year": (units.parse_duration_s, "366d"),
    "weeks": (units.parse_duration_s, "1w"),
}


@pytest.mark.parametrize(("parse", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_a_field_refuses(parse: Callable[[Any], int], text: str) -> None:
    with pytest.raises(InvalidQuantityError):
        parse(text)


CODES: dict[str, tuple[Callable[[Any], int], str, str, str]] = {
    "no amount": (units.parse_cpu_milli, "many", "malformed", "1.5 or 1500m"),
    "nothing": (units.parse_count, " ", "malformed", "1"),
    "an exponent": (units.parse_memory_mib, "1e3", "malformed", "16GiB"),
    "other digits": (units.parse_memory_mib, "１６Gi", "not_plain_digits", "16GiB"),
    "a decimal unit": (units.parse_memory_mib, "1.5TB", "decimal_unit", "1.5TiB"),
    "no whole MiB": (units.parse_memory_mib, "0.3Gi", "too_fine", "308MiB"),
    "finer than a thousandth": (units.parse_cpu_milli, "0.1234", "too_fine", "124m"),
    "too little": (units.parse_cpu_milli, "0", "too_small", "1 m"),
    "too much": (units.parse_count, "5000", "too_large", "1024 devices"),
}


@pytest.mark.parametrize(("parse", "text", "code", "suggestion"), CODES.values(), ids=CODES.keys())
def test_a_refusal_has_a_code_and_a_suggestion(
    parse: Callable[[Any], int], text: str, code: str, suggestion: str
) -> None:
    with pytest.raises(InvalidQuantityError) as refused:
        parse(text)
    assert (refused.value.code, refused.value.suggestion) == (code, suggestion)


def answer_of(parse: Callable[[Any], int], text: str) -> int | InvalidQuantityError:
    try:
        return parse(text)
    except InvalidQuantityError as refused:
        return refused


@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS.keys())
@given(text=st.text(max_size=50) | st.from_regex(r"[0-9.]{1,6} ?[a-zA-Z]{0,3}", fullmatch=True))
def test_any_text_is_an_amount_within_bounds_or_refused(
    parse: Callable[[Any], int], text: str
) -> None:
    answer = answer_of(parse, text)
    if isinstance(answer, int):
        assert 0 <= answer <= units.MEMORY.maximum
    else:
        assert str(answer).isprintable()


@given(milli=st.integers(1, 10_000_000))
def test_cores_as_written_are_read_back(milli: int) -> None:
    assert units.parse_cpu_milli(units.format_cpu(milli)) == milli


def test_decimal_gigabytes_are_refused_with_the_binary_unit_to_write() -> None:
    for text in ("16GB", "16 GB", "16G", "16gb"):
        with pytest.raises(InvalidQuantityError, match="16GiB"):
            units.parse_memory_mib(text)


def test_memory_that_is_no_whole_mib_is_refused_with_the_next_one() -> None:
    # 0.3 GiB = 307.2 MiB
    with pytest.raises(InvalidQuantityError, match="308MiB"):
        units.parse_memory_mib("0.3Gi")


def test_full_width_digits_are_refused_with_plain_ones_as_remedy() -> None:
    with pytest.raises(InvalidQuantityError, match="0-9"):
        units.parse_memory_mib("１６Gi")


def test_a_bound_is_named_when_it_is_passed() -> None:
    with pytest.raises(InvalidQuantityError, match="at most 1024 devices"):
        units.parse_count("5000")
    with pytest.raises(InvalidQuantityError, match="at least 1 m"):
        units.parse_cpu_milli("0")


JSON_REFUSED = ["1e3", "4.0", "true", "false", "null", '"4"', '"16Gi"', "[4]", "{}", "NaN", "-1"]


@pytest.mark.parametrize("text", JSON_REFUSED)
def test_the_api_takes_nothing_but_integers(text: str) -> None:
    with pytest.raises(InvalidQuantityError) as refused:
        units.require_integer(json.loads(text), units.CPU)
    assert refused.value.code == ("too_small" if text == "-1" else "not_an_integer")


@pytest.mark.parametrize("quantity", units.QUANTITIES.values(), ids=units.QUANTITIES.keys())
def test_the_api_takes_the_bounds_and_nothing_beyond(quantity: Quantity) -> None:
    assert units.require_integer(quantity.minimum, quantity) == quantity.minimum
    assert units.require_integer(quantity.maximum, quantity) == quantity.maximum
    for beyond in (quantity.minimum - 1, quantity.maximum + 1, 10**5000):
        with pytest.raises(InvalidQuantityError):
            units.require_integer(beyond, quantity)


FORMATTED: dict[str, tuple[Callable[[Any], str], float, str]] = {
    "MiB": (units.format_memory, 512, "512 MiB"),
    "just below a GiB": (units.format_memory, 1023, "1023 MiB"),
    "GiB": (units.format_memory, 16_384, "16 GiB"),
    "a part of a GiB": (units.format_memory, 1536, "1.5 GiB"),
    "tens of GiB keep their zero": (units.format_memory, 81_920, "80 GiB"),
    "TiB": (units.format_memory, 2_097_152, "2 TiB"),
    "no memory": (units.format_memory, 0, "0 MiB"),
    "cores": (units.format_cpu, 2000, "2"),
    "parts of a core": (units.format_cpu, 1500, "1.5"),
    "a hundred cores": (units.format_cpu, 100_000, "100"),
    "a thousandth": (units.format_cpu, 1, "0.001"),
    "devices": (units.format_devices_milli, 2500, "2.5"),
    "no device": (units.format_devices_milli, 0, "0"),
    "seconds": (units.format_duration, 45, "45s"),
    "minutes and seconds": (units.format_duration, 90, "1m 30s"),
    "hours and minutes": (units.format_duration, 5400, "1h 30m"),
    "days and hours, no minutes": (units.format_duration, 187_260, "2d 4h"),
    "days and nothing near": (units.format_duration, 86_401, "1d"),
    "whole hours": (units.format_duration, 7200, "2h"),
    "part of a second": (units.format_duration, 0.4, "0s"),
    "before now": (units.format_duration, -90, "-1m 30s"),
}


@pytest.mark.parametrize(("write", "amount", "expected"), FORMATTED.values(), ids=FORMATTED.keys())
def test_an_amount_is_written(write: Callable[[Any], str], amount: float, expected: str) -> None:
    assert write(amount) == expected


def test_compute_units_are_tflops_of_the_devices_held() -> None:
    assert units.compute_units(312.0, 2500) == 780.0
    assert units.compute_units(312.0, 0) == 0.0


def test_compute_units_of_an_unknown_model_are_unknown_and_not_zero() -> None:
    assert units.compute_units(None, 1000) is None
    assert units.cu_hours(None, 3600) is None


def test_cu_hours_are_compute_units_times_hours() -> None:
    assert units.cu_hours(780.0, 5400) == 1170.0
