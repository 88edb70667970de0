"""Amounts as people read them: binary memory, cores, devices, durations, ages."""

from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

UNKNOWN = "–"
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400
_MIB_PER_GIB = 1024


def memory_text(mib: float | None) -> str:
    """Return MiB as `512 MiB`, `1.5 GiB` or `2 TiB`; an unknown amount as a dash, never as zero."""
    if mib is None:
        return UNKNOWN
    for unit, size in (("TiB", _MIB_PER_GIB**2), ("GiB", _MIB_PER_GIB)):
        if abs(mib) >= size:
            return f"{_short(mib / size)} {unit}"
    return f"{_short(mib)} MiB"


def cpu_text(milli: float | None) -> str:
    """Return thousandths of a core as `4 cores`, `1 core` or `0.5 cores`."""
    if milli is None:
        return UNKNOWN
    cores = milli / 1000
    text = ngettext("%(count)s core", "%(count)s cores", 1 if cores == 1 else 2)
    return text % {"count": _short(cores)}


def devices_text(milli: float | None) -> str:
    """Return thousandths of a device as `2` or `0.25`."""
    return UNKNOWN if milli is None else _short(milli / 1000, digits=3)


def frac_text(frac: float | None) -> str:
    """Return a fraction in 0..1 as `37 %`."""
    return UNKNOWN if frac is None else f"{round(frac * 100)} %"


def duration_text(seconds: float | None) -> str:
    """Return a duration by its two largest units: `45 s`, `12 min`, `1 h 05 min`, `3 d 4 h`.

    A negative one (the clock stepped back) reads as `0 s`.
    """
    if seconds is None:
        return UNKNOWN
    whole = max(0, int(seconds))
    days, hours = divmod(whole // _HOUR_S, 24)
    minutes = whole % _HOUR_S // _MINUTE_S
    if days:
        return _("%(days)d d %(hours)d h") % {"days": days, "hours": hours}
    if hours:
        return _("%(hours)d h %(minutes)02d min") % {"hours": hours, "minutes": minutes}
    if minutes:
        return _("%(minutes)d min") % {"minutes": minutes}
    return _("%(seconds)d s") % {"seconds": whole}


def ago_text(then: datetime | None, now: datetime) -> str:
    """Return how long `then` is before (or after) `now`: `3 s ago`, `in 5 min`."""
    if then is None:
        return UNKNOWN
    age_s = (now - then).total_seconds()
    if age_s < 0:
        return _("in %(duration)s") % {"duration": duration_text(-age_s)}
    return _("%(duration)s ago") % {"duration": duration_text(age_s)}


def _short(number: float, digits: int = 1) -> str:
    """Return a number with at most `digits` decimals and no trailing zeros."""
    text = f"{number:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
