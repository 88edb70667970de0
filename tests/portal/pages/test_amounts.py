"""Amounts read in binary units, by their two largest parts, and never invent a zero."""

from datetime import UTC, datetime, timedelta

import pytest

from portal.pages.amounts import (
    ago_text,
    cpu_text,
    devices_text,
    duration_text,
    frac_text,
    memory_text,
)

NOW = datetime(2026, 12, 2, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("mib", "text"),
    [
        (0, "0 MiB"),
        (512, "512 MiB"),
        (1024, "1 GiB"),
        (1536, "1.5 GiB"),
        (144384, "141 GiB"),
        (1048576, "1 TiB"),
        (100, "100 MiB"),
        (None, "–"),
    ],
)
def test_memory_is_binary(mib, text):
    assert memory_text(mib) == text


@pytest.mark.parametrize(
    ("milli", "text"), [(1000, "1 core"), (500, "0.5 cores"), (16000, "16 cores"), (None, "–")]
)
def test_processor_is_in_cores(milli, text):
    assert cpu_text(milli) == text


@pytest.mark.parametrize(("milli", "text"), [(2000, "2"), (250, "0.25"), (125, "0.125"), (0, "0")])
def test_devices_may_be_fractions(milli, text):
    assert devices_text(milli) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3900, "1 h 05 min"),
        (86400 * 3 + 3600 * 4 + 59, "3 d 4 h"),
        (-5, "0 s"),
        (None, "–"),
    ],
)
def test_duration_shows_its_two_largest_units(seconds, text):
    assert duration_text(seconds) == text


def test_age_counts_from_the_given_now():
    assert ago_text(NOW - timedelta(seconds=3), NOW) == "3 s ago"
    assert ago_text(NOW + timedelta(minutes=5), NOW) == "in 5 min"
    assert ago_text(None, NOW) == "–"


def test_unknown_share_is_a_dash_and_not_zero():
    assert frac_text(None) == "–"
    assert frac_text(0.371) == "37 %"
