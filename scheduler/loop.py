"""The cycle, on one screen."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter

from django.core.cache import cache

from scheduler import snapshots
from scheduler.core.errors import InvalidSnapshotError
from scheduler.decide import cycle
from scheduler.events import wake_key
from scheduler.execute.base import Executor
from scheduler.feedback.dispatch import dispatch
from scheduler.feedback.reconcile import Reconciled, reconcile
from scheduler.locks import cluster_lock
from scheduler.models import Cycle
from scheduler.services.plans import plan_commit
from telemetry.models import Cluster

logger = logging.getLogger(__name__)

WAIT_FOR_LOCK_S = 8.0
IDLE_RECORD_S = 60.0


@dataclass(frozen=True, slots=True)
class Ports:
    """What a cycle works through."""

    executor: Executor
    node_lost_after_s: float


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What one cycle did; `ran` is False where another scheduler holds the cluster."""

    ran: bool
    reconciled: Reconciled | None = None
    started: tuple[str, ...] = ()


class Stopwatch:
    """Milliseconds of each step."""

    def __init__(self) -> None:
        self._last = perf_counter()
        self.steps: dict[str, float] = {}

    def lap(self, step: str) -> None:
        """Book the time since the last lap to a step."""
        now = perf_counter()
        self.steps[step] = round((now - self._last) * 1000, 3)
        self._last = now


def run_cycle(
    cluster: Cluster, ports: Ports, *, clock: Callable[[], datetime], woken: bool
) -> CycleReport:
    """Observe, freeze, decide, commit, dispatch: one cycle of one cluster.

    Args:
        cluster: whose.
        ports: its executor.
        clock: tells the time; read once, when the lock is held.
        woken: something changed, so it is worth waiting for another cycle to end.
    """
    with cluster_lock(cluster.pk, wait_s=WAIT_FOR_LOCK_S if woken else 0) as held:
        if not held:
            return CycleReport(ran=False)
        now = clock()
        cache.delete(wake_key(cluster.slug))  # what changes from here on wakes the next cycle
        watch = Stopwatch()
        seen = observe(cluster, ports, now=now)  # 1 observe what the last plans became
        watch.lap("observe")
        frozen = snapshots.take(cluster=cluster, now=now)  # 2 freeze
        policy = snapshots.policy_of(cluster)
        watch.lap("snapshot")
        try:
            plan = cycle.decide(  # 3 decide
                frozen.snapshot,
                policy,
                now_s=now.timestamp(),
                budget_s=policy.budget_s,
                clock=perf_counter,
            )
        except InvalidSnapshotError:
            logger.exception("snapshot refused cluster=%s", cluster.slug)
            return CycleReport(ran=True, reconciled=seen)
        watch.lap("decide")
        started: tuple[str, ...] = ()
        if plan.starts or plan.pending or _record_is_due(cluster, now):
            committed = plan_commit(  # 4 commit holds, states and intents
                cluster=cluster,
                plan=plan,
                fleet=frozen.snapshot.fleet,
                keys=frozen.keys,
                now=now,
                timings=watch.steps,
            )
            started = committed.started
            for uid, why in committed.lost.items():
                logger.warning("start lost cluster=%s job=%s why=%s", cluster.slug, uid, why)
        dispatch(cluster=cluster, executor=ports.executor, now=now)  # 5 tell the executor
        cache.set(beat_key(cluster.slug), now.timestamp(), timeout=None)
        return CycleReport(ran=True, reconciled=seen, started=started)


def observe(cluster: Cluster, ports: Ports, *, now: datetime) -> Reconciled:
    """Carry out what is still to do, and bring jobs in line with what runs."""
    dispatch(cluster=cluster, executor=ports.executor, now=now)
    return reconcile(
        cluster=cluster,
        executor=ports.executor,
        now=now,
        node_lost_after_s=ports.node_lost_after_s,
    )


def beat_key(cluster_slug: str) -> str:
    """Return the cache key of the time of the last cycle."""
    return f"cycle-at:{cluster_slug}"


def _record_is_due(cluster: Cluster, now: datetime) -> bool:
    last = Cycle.objects.filter(cluster=cluster).order_by("-at").values_list("at", flat=True)[:1]
    return not last or (now - last[0]).total_seconds() >= IDLE_RECORD_S
