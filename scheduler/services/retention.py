"""Bounds what cycles write; jobs, placements, events and the ledger are kept."""

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef

from scheduler.models import Cycle, Decision

BATCH = 1000


def tidy(*, before: datetime) -> int:
    """Delete cycles older than `before` that started nothing, and what they said of jobs.

    Returns:
        How many cycles went.
    """
    starts = Decision.objects.filter(cycle=OuterRef("pk"), verb="start")
    old = Cycle.objects.filter(~Exists(starts), at__lt=before).order_by("pk")
    gone = 0
    while keys := list(old.values_list("pk", flat=True)[:BATCH]):
        with transaction.atomic():
            Decision.objects.filter(cycle__in=keys).delete()
            Cycle.objects.filter(pk__in=keys).delete()
        gone += len(keys)
    return gone
