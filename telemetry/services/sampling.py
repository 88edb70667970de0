"""Looks at a cluster with its collector and takes in what it saw."""

import json
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.utils.module_loading import import_string

from telemetry.choices import ClusterKind
from telemetry.models import Cluster, Device, Node
from telemetry.sense.base import COLLECTORS, Collector, CollectorUnavailableError
from telemetry.sense.synthetic import Held
from telemetry.services.intake import IngestReport, ingest

logger = logging.getLogger(__name__)

ERROR_LIMIT = 1000
WHOLE_MILLI = 1000

_collectors: dict[int, tuple[tuple[str, str, str], Collector]] = {}
"""Cluster -> what its collector was made from, and the collector: it may measure between looks."""


def sample_cluster(*, cluster: Cluster, now: datetime) -> IngestReport | None:
    """Look at a cluster once; None where its source can't be asked, and why stands on its row.

    Nodes then stay as they were last seen, and `seen_at` tells how old that is.
    """
    try:
        collector = _collector(cluster)
    except (ValueError, TypeError) as exc:
        _note_failure(cluster, f"the options of cluster {cluster.slug} are wrong: {exc}")
        return None
    try:
        readings = collector.collect(now_s=now.timestamp())
    except CollectorUnavailableError as exc:
        _note_failure(cluster, str(exc))
        return None
    return ingest(cluster=cluster, readings=readings, now=now)


def _collector(cluster: Cluster) -> Collector:
    made_from = (
        cluster.slug,
        cluster.kind,
        json.dumps(cluster.options, sort_keys=True, default=str),
    )
    known = _collectors.get(cluster.pk)
    if known is not None and known[0] == made_from:
        return known[1]
    build = import_string(COLLECTORS[cluster.kind])
    collector: Collector = build(cluster.slug, _options(cluster))
    _collectors[cluster.pk] = (made_from, collector)
    return collector


def _options(cluster: Cluster) -> Mapping[str, Any]:
    if cluster.kind != ClusterKind.SIMULATED:
        return dict(cluster.options)
    return {**cluster.options, "held": _holds_of(cluster.pk)}


def _holds_of(cluster_id: int) -> Callable[[], Mapping[str, Held]]:
    def held() -> Mapping[str, Held]:
        """Return what is held: device uid, or node name for its cores -> part and kind of job."""
        devices = Device.objects.filter(node__cluster_id=cluster_id, allocated_milli__gt=0)
        nodes = Node.objects.filter(
            cluster_id=cluster_id, allocated_cpu_milli__gt=0, cpu_milli__gt=0
        )
        return {
            uid: Held(milli, "training" if milli == WHOLE_MILLI else "inference")
            for uid, milli in devices.values_list("uid", "allocated_milli")
        } | {
            name: Held(min(held_milli * WHOLE_MILLI // all_milli, WHOLE_MILLI), "batch")
            for name, held_milli, all_milli in nodes.values_list(
                "name", "allocated_cpu_milli", "cpu_milli"
            )
        }

    return held


def _note_failure(cluster: Cluster, why: str) -> None:
    logger.warning("sense_failed cluster=%s why=%s", cluster.slug, why)
    text = why.replace("\x00", "")[:ERROR_LIMIT]
    Cluster.objects.filter(pk=cluster.pk).update(sense_error=text)
