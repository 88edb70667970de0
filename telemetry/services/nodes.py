"""What an admin says of nodes: open, cordoned (takes nothing new), draining (gives up what it has).

Who may say so is for the callers to know.
"""

import logging
from datetime import datetime

from django.db import transaction

from telemetry import events
from telemetry.choices import Scheduling
from telemetry.models import Node

logger = logging.getLogger(__name__)

REASON_LIMIT = 500


def node_cordon(*, actor_name: str, node: Node, reason: str, now: datetime) -> Node:
    """Let a node take nothing new; what runs there runs on."""
    return _set(node, Scheduling.CORDONED, actor_name, reason, now)


def node_drain(*, actor_name: str, node: Node, reason: str, now: datetime) -> Node:
    """Let a node take nothing new, and move away what runs there."""
    return _set(node, Scheduling.DRAINING, actor_name, reason, now)


def node_uncordon(*, actor_name: str, node: Node, reason: str = "", now: datetime) -> Node:
    """Let a node take jobs again."""
    return _set(node, Scheduling.OPEN, actor_name, reason, now)


def _set(node: Node, scheduling: Scheduling, actor_name: str, reason: str, now: datetime) -> Node:
    text = "".join(c if c.isprintable() else " " for c in reason).strip()[:REASON_LIMIT]
    with transaction.atomic():
        locked = (
            Node.objects.select_for_update(no_key=True, of=("self",))
            .select_related("cluster")
            .get(pk=node.pk)
        )
        locked.scheduling = scheduling
        locked.scheduling_reason = text
        locked.save(update_fields=["scheduling", "scheduling_reason"])
        events.nodes_changed.publish(events.NodesChanged(locked.cluster_id, locked.cluster.slug))
    logger.info(
        "node_scheduling_set cluster=%s node=%s scheduling=%s actor=%s at=%s reason=%r",
        locked.cluster.slug,
        locked.name,
        scheduling.value,
        actor_name,
        now.isoformat(),
        text,
    )
    return locked
