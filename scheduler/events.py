"""News of the scheduler, published when a transaction commits.

Two kinds of listeners: the cycle, woken over the broker and coalesced, and browsers, nudged through
channel groups. Both are level-triggered: they read the state anew, so a lost nudge costs latency
only.
"""

import logging

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.core.cache import cache
from django.db import transaction

logger = logging.getLogger(__name__)

WAKE_KEEP_S = 10


def fleet_group(cluster_slug: str) -> str:
    """Return the channel group of one cluster's live pages."""
    return f"fleet.{cluster_slug}"


def wake_key(cluster_slug: str) -> str:
    """Return the cache key that says a cycle is already on its way."""
    return f"wake:{cluster_slug}"


def changed(*, cluster_slug: str) -> None:
    """Say, once the transaction commits, that something on a cluster calls for a new decision."""
    transaction.on_commit(lambda: _wake_and_nudge(cluster_slug), robust=True)


def seen(*, cluster_slug: str) -> None:
    """Say, once the transaction commits, that browsers may look again; no decision is needed."""
    transaction.on_commit(lambda: nudge(cluster_slug), robust=True)


def _wake_and_nudge(cluster_slug: str) -> None:
    from scheduler import tasks  # noqa: PLC0415 - tasks import this module

    if cache.add(wake_key(cluster_slug), 1, timeout=WAKE_KEEP_S):
        tasks.run_cycle.delay(cluster_slug)
    nudge(cluster_slug)


def nudge(cluster_slug: str) -> None:
    """Tell the browsers on a cluster to look again."""
    layer = get_channel_layer()
    if layer is not None:
        async_to_sync(layer.group_send)(fleet_group(cluster_slug), {"type": "fleet.changed"})
