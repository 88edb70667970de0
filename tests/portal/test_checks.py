"""A wrong setting is refused at start, in one line that names it, its value and the remedy."""

from typing import Any

import pytest

from portal import checks

CASES = {
    "a time zone that does not exist": ("DISPLAY_TIME_ZONE", "Mars/X", "KILTER_TIME_ZONE=Mars/X"),
    "a path for a time zone": ("DISPLAY_TIME_ZONE", "../etc/passwd", "KILTER_TIME_ZONE=../etc"),
    "a user that does not exist": ("LOCAL_RUN_AS", "nosuch", "KILTER_LOCAL_RUN_AS=nosuch"),
}


@pytest.mark.parametrize(("name", "value", "said"), CASES.values(), ids=CASES.keys())
def test_names_that_do_not_exist_are_refused(
    settings: Any, name: str, value: str, said: str
) -> None:
    setattr(settings, name, value)
    (wrong,) = checks.names_exist(None)
    assert said in wrong.msg


def test_names_that_exist_pass(settings: Any) -> None:
    settings.DISPLAY_TIME_ZONE, settings.LOCAL_RUN_AS = "Asia/Shanghai", "root"
    assert checks.names_exist(None) == []


def test_amounts_below_what_makes_sense_are_refused(settings: Any) -> None:
    settings.SAMPLE_S = 0.0
    (wrong,) = checks.settings_make_sense(None)
    assert "KILTER_SAMPLE_S=0.0" in wrong.msg
