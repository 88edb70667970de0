"""Bounds what cycles and jobs leave; jobs, placements, events and the ledger are kept."""

import logging
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef

from scheduler.choices import FINAL_STATES
from scheduler.execute.base import Executor, ExecutorError
from scheduler.models import Cycle, Decision, ExpectedStart, Job, StrategyAlarm

BATCH = 1000
log = logging.getLogger(__name__)


def tidy(*, before: datetime) -> int:
    """Delete cycles before `before` that only said what waits, and old alarms and expected starts.

    Returns:
        How many cycles went.
    """
    acts = Decision.objects.filter(cycle=OuterRef("pk")).exclude(verb="hold")
    old = Cycle.objects.filter(~Exists(acts), at__lt=before).order_by("pk")
    gone = 0
    while keys := list(old.values_list("pk", flat=True)[:BATCH]):
        with transaction.atomic():
            Decision.objects.filter(cycle__in=keys).delete()
            Cycle.objects.filter(pk__in=keys).delete()
        gone += len(keys)
    StrategyAlarm.objects.filter(cleared_at__lt=before).delete()
    ExpectedStart.objects.filter(over_at__lt=before).delete()
    return gone


def purge(executor: Executor, *, before: datetime) -> int:
    """Remove the logs and work folders of jobs that ended before `before`.

    A job that waits for another attempt keeps its checkpoints, and what no job is known of stays.

    Returns:
        Of how many jobs.
    """
    kept: dict[str, list[int]] = {}
    for uid, attempt in executor.kept():
        kept.setdefault(uid, []).append(attempt)
    uids, gone = list(kept), 0
    for first in range(0, len(uids), BATCH):
        over = Job.objects.filter(
            uid__in=uids[first : first + BATCH], state__in=FINAL_STATES, finished_at__lt=before
        )
        gone += sum(_purged(executor, str(uid), kept) for uid in over.values_list("uid", flat=True))
    return gone


def _purged(executor: Executor, uid: str, kept: dict[str, list[int]]) -> bool:
    try:
        executor.purge(uid, kept[uid])
    except ExecutorError as wrong:  # the others must not wait for this one
        log.warning("what job %s left could not be removed: %s", uid, wrong)
        return False
    return True
