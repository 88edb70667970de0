"""Bounds what cycles write; jobs, placements, events and the ledger are kept."""

from datetime import datetime

from scheduler.models import Cycle, Decision


def tidy(*, before: datetime) -> int:
    """Delete cycles older than `before` that started nothing, and their holds.

    Returns:
        How many cycles went.
    """
    starts = Decision.objects.filter(verb="start").values("cycle_id")
    old = Cycle.objects.filter(at__lt=before).exclude(pk__in=starts)
    Decision.objects.filter(cycle__in=old).delete()
    gone, _ = old.delete()
    return gone
