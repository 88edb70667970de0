"""News of the scheduler, published when a transaction commits.

Two kinds of listeners: the cycle, woken over the broker and coalesced, and browsers, nudged through
channel groups. Both are level-triggered: they read the state anew, so a lost nudge costs latency
only.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from asgiref.sync import async_to_sync
from celery import current_app
from channels.layers import get_channel_layer
from django.core.cache import cache
from django.db import transaction

CYCLE_TASK = "scheduler.tasks.run_cycle"
"""By name, for tasks stand above everything that has news."""

WAKE_KEEP_S = 10
"""A wake-up that nobody took for so long is void; the timer's cycle stands in for it."""


@dataclass(slots=True)
class Burst:
    """News held back, each cluster once.

    Attributes:
        wakes: slugs of clusters that need a new decision.
        nudges: slugs of clusters at which browsers should look again.
    """

    wakes: set[str] = field(default_factory=set)
    nudges: set[str] = field(default_factory=set)


_burst: ContextVar[Burst | None] = ContextVar("burst", default=None)


def fleet_group(cluster_slug: str) -> str:
    """Return the channel group of one cluster's live pages."""
    return f"fleet.{cluster_slug}"


def wake_key(cluster_slug: str) -> str:
    """Return the cache key that says a cycle is already on its way."""
    return f"wake:{cluster_slug}"


def changed(*, cluster_slug: str) -> None:
    """Say, once the transaction commits, that something on a cluster calls for a new decision."""
    transaction.on_commit(lambda: _tell(cluster_slug, decide=True), robust=True)


def seen(*, cluster_slug: str) -> None:
    """Say, once the transaction commits, that browsers may look again; no decision is needed."""
    transaction.on_commit(lambda: _tell(cluster_slug, decide=False), robust=True)


@contextmanager
def burst() -> Iterator[Burst]:
    """Hold back this thread's news, and send each cluster's once at the end.

    A process that dies inside sends nothing: the timer's cycle finds what it left.
    """
    held = Burst()
    token = _burst.set(held)
    try:
        yield held
    finally:
        _burst.reset(token)
        for slug in sorted(held.wakes):
            changed(cluster_slug=slug)
        for slug in sorted(held.nudges - held.wakes):
            seen(cluster_slug=slug)


def _tell(cluster_slug: str, *, decide: bool) -> None:
    held = _burst.get()
    if held is not None:
        (held.wakes if decide else held.nudges).add(cluster_slug)
        return
    try:
        if decide:
            wake(cluster_slug)
    finally:
        nudge(cluster_slug)


def wake(cluster_slug: str) -> None:
    """Ask for a cycle, unless one is already on its way."""
    key = wake_key(cluster_slug)
    if not cache.add(key, 1, timeout=WAKE_KEEP_S):
        return
    asked = False
    try:
        current_app.send_task(CYCLE_TASK, (cluster_slug,), expires=WAKE_KEEP_S)
        asked = True
    finally:
        if not asked:
            cache.delete(key)  # or the next news would think that it was


def nudge(cluster_slug: str) -> None:
    """Tell the browsers on a cluster to look again."""
    layer = get_channel_layer()
    if layer is not None:
        async_to_sync(layer.group_send)(fleet_group(cluster_slug), {"type": "fleet.changed"})
