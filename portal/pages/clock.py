"""The time of a page: pages are an outermost layer, and this is where they read the clock."""

from datetime import datetime

from django.utils import timezone


def now() -> datetime:
    """Return the present time in UTC."""
    return timezone.now()  # noqa: TID251 - the outermost layer
