"""The words of the figures in the reader's language; the figures themselves know none."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Words = Mapping[str, str | Promise]

UTILISATION: Final[Words] = {
    "allocated": _("Allocated"),
    "utilised": _("Utilised"),
    "axis": _("Share of devices (%)"),
}
FAIRNESS: Final[Words] = {
    "requested": _("Requested"),
    "entitled": _("Entitled"),
    "fair": _("Fair share"),
    "allocated": _("Allocated"),
    "axis": _("Devices"),
}
QUOTA: Final[Words] = {
    "own": _("Own quota in use"),
    "borrowed": _("Borrowed"),
    "asked": _("This request"),
    "nominal": _("Nominal quota"),
    "limit": _("Limit with borrowing"),
    "axis": _("Devices"),
}
JOB_METRICS: Final[Words] = {
    "cpu": _("CPU"),
    "memory": _("Memory"),
    "devices": _("Devices"),
    "cpu_axis": _("Cores"),
    "memory_axis": _("GiB"),
    "devices_axis": _("Busy (%)"),
}
TIMELINE: Final[Words] = {"attempt": _("Attempt {n}")}
USAGE: Final[Words] = {
    "utilised": _("Utilised"),
    "idle": _("Allocated but idle"),
    "unmeasured": _("Not measured"),
    "axis": _("CU-hours"),
}


def spoken(words: Words) -> dict[str, str]:
    """Return the words in the language of this request."""
    return {key: str(text) for key, text in words.items()}
