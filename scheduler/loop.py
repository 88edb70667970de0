"""The cycle, on one screen."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter

from django.core.cache import cache

from scheduler import events, snapshots
from scheduler.core.plan import Plan, SolverReport
from scheduler.decide import cycle, lasting
from scheduler.decide.strategies.base import RULES
from scheduler.execute.base import Executor
from scheduler.feedback.dispatch import dispatch
from scheduler.feedback.reconcile import Reconciled, reconcile
from scheduler.feedback.rescale import rescale
from scheduler.locks import cluster_lock
from scheduler.models import Cycle
from scheduler.services.alarms import strategy_noted
from scheduler.services.plans import Committed, cycle_timed, plan_commit
from scheduler.shadows import Decided
from scheduler.snapshots import Frozen
from telemetry.models import Cluster

logger = logging.getLogger(__name__)

WAIT_FOR_LOCK_S = 8.0
IDLE_RECORD_S = 60.0

_last: dict[int, lasting.Decided] = {}
"""Cluster -> what this process decided last on it; losing it costs time, nothing else."""


@dataclass(frozen=True, slots=True)
class Ports:
    """What a cycle works through."""

    executor: Executor
    node_lost_after_s: float


@dataclass(frozen=True, slots=True)
class CycleReport:
    """What one cycle did.

    Attributes:
        ran: False where another scheduler holds the cluster.
        reconciled: what was observed.
        started: jobs that start.
        decided: what a shadow may be compared with; None where nothing was written.
    """

    ran: bool
    reconciled: Reconciled | None = None
    started: tuple[str, ...] = ()
    decided: Decided | None = None


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
    wait_s = WAIT_FOR_LOCK_S if woken else 0
    with events.burst() as news, cluster_lock(cluster.pk, wait_s=wait_s) as held:
        if not held:
            return CycleReport(ran=False)
        now = clock()
        watch = Stopwatch()
        seen = _observe(cluster, ports, now)  # 1 observe what the last plans became
        watch.lap("observe")
        cache.delete(events.wake_key(cluster.slug))  # what changes from here on ...
        news.wakes.discard(cluster.slug)  # ... calls for the next cycle, the rest for this one
        frozen = _freeze(cluster, now)  # 2 freeze
        watch.lap("snapshot")
        plan = _decide(cluster, frozen, now)  # 3 decide
        watch.lap("decide")
        strategy_noted(cluster=cluster, policy=frozen.policy, plan=plan, now=now)
        done = _commit(cluster, plan, frozen, now)  # 4 commit holds, states and intents
        watch.lap("commit")
        dispatch(cluster=cluster, executor=ports.executor, now=now)  # 5 tell the executor
        watch.lap("dispatch")
        if done is not None:
            cycle_timed(cycle=done.cycle, timings=watch.steps)
        cache.set(beat_key(cluster.slug), now.timestamp(), timeout=None)
        if done is None:
            return CycleReport(ran=True, reconciled=seen)
        decided = Decided(done.cycle, frozen.snapshot, frozen.policy, plan)
        return CycleReport(ran=True, reconciled=seen, started=done.started, decided=decided)


def look(cluster: Cluster, ports: Ports, *, clock: Callable[[], datetime]) -> Reconciled | None:
    """Do what step 1 of a cycle does, between cycles; None where another scheduler is at it."""
    with events.burst(), cluster_lock(cluster.pk, wait_s=0) as held:
        return _observe(cluster, ports, clock()) if held else None


def _observe(cluster: Cluster, ports: Ports, now: datetime) -> Reconciled:
    """Carry out what is still to do, and bring jobs in line with what runs."""
    dispatch(cluster=cluster, executor=ports.executor, now=now)
    return reconcile(
        cluster=cluster,
        executor=ports.executor,
        now=now,
        node_lost_after_s=ports.node_lost_after_s,
    )


def _freeze(cluster: Cluster, now: datetime) -> Frozen:
    """Take the snapshot, once those that were resized have taken their places."""
    frozen = snapshots.take(cluster=cluster, now=now)
    if rescale(cluster=cluster, frozen=frozen, now=now):
        return snapshots.take(cluster=cluster, now=now)
    return frozen


def _decide(cluster: Cluster, frozen: Frozen, now: datetime) -> Plan:
    """Return the plan; where the engine fails, one that leaves everything as it is and says so."""
    snapshot, policy, last = frozen.snapshot, frozen.policy, _last.get(cluster.pk)
    try:
        plan = cycle.decide(
            snapshot,
            policy,
            now_s=now.timestamp(),
            budget_s=policy.budget_s,
            clock=perf_counter,
            last=last,
        )
    except Exception as failure:  # a fault must be seen, and not stop what else a cycle does
        logger.exception("no decision cluster=%s", snapshot.cluster)
        note = f"{type(failure).__name__}: {failure}"
        report = SolverReport(RULES, RULES, "error", note=note)
        return cycle.undecided(snapshot, report, now_s=now.timestamp())
    _last[cluster.pk] = lasting.remembered(last, snapshot, policy, plan)
    return plan


def _commit(cluster: Cluster, plan: Plan, frozen: Frozen, now: datetime) -> Committed | None:
    """Write what the plan says, where it says anything or nothing was said for a while."""
    says = plan.starts or plan.pending or plan.preempts or plan.resizes
    if not (says or _record_is_due(cluster, now)):
        return None
    done = plan_commit(
        cluster=cluster,
        plan=plan,
        fleet=frozen.snapshot.fleet,
        keys=frozen.keys,
        preemption=frozen.policy.preemption,
        now=now,
    )
    for uid, why in done.lost.items():
        logger.warning("decision lost cluster=%s job=%s why=%s", cluster.slug, uid, why)
    return done


def beat_key(cluster_slug: str) -> str:
    """Return the cache key of the time of the last cycle."""
    return f"cycle-at:{cluster_slug}"


def _record_is_due(cluster: Cluster, now: datetime) -> bool:
    last = (
        Cycle.objects.filter(cluster=cluster).order_by("-pk").values_list("at", flat=True).first()
    )
    return last is None or abs((now - last).total_seconds()) >= IDLE_RECORD_S
