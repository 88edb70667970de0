"""Compares what runs with what should, and repairs; never guesses.

An executor that does not answer leaves everything as it is: unknown is not free.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from django.db import DataError, IntegrityError
from django.db.models import QuerySet

from scheduler.choices import IntentState, JobState, Verb
from scheduler.execute.base import (
    FINISHED,
    Executor,
    ExecutorUnavailableError,
    Observation,
    Phase,
)
from scheduler.models import HEAVY, Intent, Job, Placement
from scheduler.services import attempts
from scheduler.services.batches import batched
from scheduler.services.jobs import evict_intend
from telemetry import services as telemetry
from telemetry.choices import NodeState, Scheduling
from telemetry.models import Cluster, Node
from tenants.errors import ConflictError

logger = logging.getLogger(__name__)

SLOW_AFTER = timedelta(seconds=30)
"""An attempt that an executor has for so long without beginning it is worth a word."""

LOST_AFTER = timedelta(seconds=15)
"""An attempt that an executor took and then does not list at all for so long has vanished."""

ASK_AGAIN_AFTER = timedelta(seconds=60)
"""An attempt that runs on so long after it was told to stop is told once more."""

RECORD_LOST = "The executor no longer knows this attempt; how it ended is not known."

START_BATCH = 100

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What one look found.

    Attributes:
        known: False = the executor did not answer.
        moved: placements whose job moved on.
        strays: attempts that ran though nothing holds for them, told to stop.
    """

    known: bool
    moved: int = 0
    strays: int = 0


def reconcile(
    *, cluster: Cluster, executor: Executor, now: datetime, node_lost_after_s: float
) -> Reconciled:
    """Bring jobs in line with what the executor sees, and stop what should not run."""
    _evict_from_nodes(cluster, now, node_lost_after_s)
    try:
        seen = {(s.uid, s.attempt): s for s in executor.observe(now_s=now.timestamp())}
    except ExecutorUnavailableError as away:
        logger.warning("executor unavailable cluster=%s error=%s", cluster.slug, away)
        return Reconciled(known=False)
    placements = {(str(p.job_id), p.attempt): p for p in _open(cluster)}
    started = _follow_starts(placements, seen, now)
    moved = {key for key, p in placements.items() if _followed(p, seen.get(key), now)}
    _follow_checkpoints(placements, seen)
    strays = _settle(executor, seen, moved, set(placements))
    _record_samples(cluster, seen, now)
    return Reconciled(known=True, moved=started + len(moved), strays=strays)


def _open(cluster: Cluster) -> QuerySet[Placement]:
    return (
        Placement.objects.filter(cluster=cluster, released_at__isnull=True)
        .select_related("job")
        .defer(*(f"job__{name}" for name in HEAVY))
        .prefetch_related("intents")
    )


def _follow_starts(
    placements: Mapping[Key, Placement], seen: Mapping[Key, Observation], now: datetime
) -> int:
    """Move jobs on that run, many at a time; return how many."""
    started = [
        (placement, seen[key])
        for key, placement in placements.items()
        if key in seen
        and seen[key].phase == Phase.RUNNING
        and placement.job.state == JobState.STARTING
    ]
    return sum(
        len(attempts.attempts_running(started=batch, now=now))
        for batch in batched(started, START_BATCH)
    )


def _follow_checkpoints(
    placements: Mapping[Key, Placement], seen: Mapping[Key, Observation]
) -> None:
    """Keep when each attempt last wrote a checkpoint."""
    pairs = [
        (placement, seen[key])
        for key, placement in placements.items()
        if key in seen and seen[key].phase == Phase.RUNNING
    ]
    attempts.attempts_checkpointed(seen=pairs)


def _followed(placement: Placement, seen: Observation | None, now: datetime) -> bool:
    """Move one job on; one that can't be stored is logged, and does not keep others waiting."""
    try:
        return _follow(placement, seen, now)
    except (ConflictError, IntegrityError, DataError):
        logger.exception(
            "attempt not reconciled job=%s attempt=%s", placement.job_id, placement.attempt
        )
        return False


def _follow(placement: Placement, seen: Observation | None, now: datetime) -> bool:
    if seen is None:
        return _vanished(placement, now)
    if seen.phase in FINISHED:
        attempts.attempt_ended(placement=placement, seen=seen, now=now)
        return True
    bound = _intent(placement, Verb.BIND)
    if seen.phase == Phase.STARTING and bound is not None and _done_since(bound, SLOW_AFTER, now):
        attempts.attempt_slow(placement=placement, now=now)
    evict = _intent(placement, Verb.EVICT)
    if evict is not None and _done_since(evict, ASK_AGAIN_AFTER, now):
        attempts.intent_repeat(intent=evict)
    return False


def _intent(placement: Placement, verb: Verb) -> Intent | None:
    return next((intent for intent in placement.intents.all() if intent.verb == verb), None)


def _done_since(intent: Intent, span: timedelta, now: datetime) -> bool:
    """Return whether it was done that long ago, or the clock has stepped back behind it."""
    return (
        intent.state == IntentState.DONE
        and intent.done_at is not None
        and abs(now - intent.done_at) >= span
    )


def _vanished(placement: Placement, now: datetime) -> bool:
    """Note the end of an attempt that the executor, which answers, does not know."""
    bound = _intent(placement, Verb.BIND)
    if bound is None or bound.state == IntentState.PENDING:
        return False
    if bound.state == IntentState.FAILED:  # it was to be stopped before any start was seen
        phase, reason, message = Phase.CANCELLED, "cancelled", ""
    elif _done_since(bound, LOST_AFTER, now):
        phase, reason, message = Phase.LOST, "record_lost", RECORD_LOST
    else:
        return False
    end = Observation(
        uid=str(placement.job_id),
        attempt=placement.attempt,
        phase=phase,
        reason=reason,
        message=message,
    )
    attempts.attempt_ended(placement=placement, seen=end, now=now)
    return True


def _settle(
    executor: Executor, seen: Mapping[Key, Observation], moved: set[Key], open_keys: set[Key]
) -> int:
    """Stop attempts that hold nothing, and forget those whose end is stored."""
    closed = [key for key in seen if key not in open_keys]
    ours = _released(closed)
    strays = 0
    for key in closed:
        if key not in ours:
            _warn_of_stranger(*key)
        elif seen[key].phase in FINISHED:
            executor.forget(*key)
        else:
            executor.evict(*key, grace_s=0.0, reason="stray")
            strays += 1
    for key in moved & set(seen):
        if seen[key].phase in FINISHED:
            executor.forget(*key)  # its end was stored a moment ago
    return strays


@lru_cache(maxsize=1024)
def _warn_of_stranger(uid: str, attempt: int) -> None:
    """Say once that an attempt is not ours; whose it is, nobody knows, so it is left alone."""
    logger.warning("attempt unknown to the database uid=%s attempt=%s", uid, attempt)


def _released(keys: Sequence[Key]) -> set[Key]:
    rows = Placement.objects.filter(
        job_id__in=[uid for uid, _ in keys], released_at__isnull=False
    ).values_list("job_id", "attempt")
    return {(str(uid), attempt) for uid, attempt in rows}


def _evict_from_nodes(cluster: Cluster, now: datetime, node_lost_after_s: float) -> None:
    """Write evictions for what runs on draining nodes and on nodes away for too long."""
    draining = Node.objects.filter(cluster=cluster, scheduling=Scheduling.DRAINING)
    gone = Node.objects.filter(
        cluster=cluster,
        state=NodeState.UNKNOWN,
        seen_at__lt=now - timedelta(seconds=node_lost_after_s),
    )
    for nodes, reason in ((draining, "drain"), (gone, "node_lost")):
        placements = Placement.objects.filter(
            replicas__node__in=nodes, released_at__isnull=True
        ).exclude(intents__verb=Verb.EVICT)
        for placement in placements.distinct():
            evict_intend(placement=placement, reason=reason, now=now)


def _record_samples(cluster: Cluster, seen: Mapping[Key, Observation], now: datetime) -> None:
    rows = [
        (uid, s.cpu_frac, s.memory_mib)
        for (uid, _), s in seen.items()
        if s.phase == Phase.RUNNING and s.cpu_frac is not None
    ]
    known = {
        str(uid)
        for uid in Job.objects.filter(pk__in=[uid for uid, *_ in rows]).values_list("pk", flat=True)
    }
    telemetry.write_job_samples(
        cluster=cluster, rows=[row for row in rows if row[0] in known], now=now
    )
