"""Settings that can't work are refused at start, each with its value and remedy."""

import pwd
from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.core.checks import CheckMessage, Error, register


@register()
def settings_make_sense(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Check the amounts that come from the environment."""
    del app_configs, kwargs
    wrong: list[CheckMessage] = []
    for name, variable in (
        ("SAMPLE_S", "KILTER_SAMPLE_S"),
        ("CYCLE_TIMER_S", "KILTER_CYCLE_TIMER_S"),
        ("DEMO_CLOCK_SCALE", "KILTER_DEMO_CLOCK_SCALE"),
        ("NODE_LOST_AFTER_S", "KILTER_NODE_LOST_AFTER_S"),
        ("LOG_CAP_MIB", "KILTER_LOG_CAP_MIB"),
        ("JOB_KEEP_DAYS", "KILTER_JOB_KEEP_DAYS"),
        ("SAMPLE_KEEP_DAYS", "KILTER_SAMPLE_KEEP_DAYS"),
        ("ROLLUP_KEEP_DAYS", "KILTER_ROLLUP_KEEP_DAYS"),
        ("TOKEN_DAYS", "KILTER_TOKEN_DAYS"),
    ):
        value = getattr(settings, name)
        if not value > 0:
            wrong.append(
                Error(f"{variable}={value} must be more than 0.", id=f"kilter.{name.lower()}")
            )
    return wrong


@register()
def names_exist(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Check that the time zone and the user of local jobs are known to this machine."""
    del app_configs, kwargs
    wrong: list[CheckMessage] = []
    zone, user = settings.DISPLAY_TIME_ZONE, settings.LOCAL_RUN_AS
    if not _is_zone(zone):
        wrong.append(
            Error(
                f"KILTER_TIME_ZONE={zone} is no time zone; write one such as Europe/Berlin or UTC.",
                id="kilter.time_zone",
            )
        )
    if user and not _is_user(user):
        wrong.append(
            Error(
                f"KILTER_LOCAL_RUN_AS={user} is no user of this machine; "
                "create it, or unset the variable.",
                id="kilter.local_run_as",
            )
        )
    return wrong


def _is_zone(name: str) -> bool:
    if name == "UTC":  # also where the machine has no table of zones
        return True
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
