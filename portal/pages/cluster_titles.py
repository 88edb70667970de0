"""The names that `scheduler.bootstrap` gives to clusters, in the reader's language."""

from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

GIVEN: Final = frozenset({gettext_noop("This machine"), gettext_noop("Demo (simulated)")})


def cluster_title(name: str) -> str:
    """Return a cluster's name; one that a person chose stays as it is."""
    return _(name) if name in GIVEN else name
