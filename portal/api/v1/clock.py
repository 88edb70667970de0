"""The time of a request: the API is an outermost layer, and this is where it reads the clock."""

from datetime import datetime

from django.utils import timezone


def now() -> datetime:
    """Return the present time in UTC."""
    return timezone.now()  # noqa: TID251 - the outermost layer
