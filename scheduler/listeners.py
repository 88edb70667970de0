"""What the lower apps' news means here: decide again, or only look again."""

from scheduler import events
from telemetry.events import ClusterSampled, NodesChanged, cluster_sampled, nodes_changed
from telemetry.models import Cluster
from tenants.events import QuotaChanged, TenantChanged, quota_changed, tenant_changed


def subscribe() -> None:
    """Subscribe; safe to repeat."""
    nodes_changed.subscribe(_decide_again)
    quota_changed.subscribe(_decide_again)
    tenant_changed.subscribe(_decide_everywhere)
    cluster_sampled.subscribe(_look_again)


def _decide_again(news: NodesChanged | QuotaChanged) -> None:
    events.changed(cluster_slug=news.cluster_slug)


def _decide_everywhere(_news: TenantChanged) -> None:
    for slug in Cluster.objects.filter(enabled=True).values_list("slug", flat=True):
        events.changed(cluster_slug=slug)


def _look_again(news: ClusterSampled) -> None:
    events.seen(cluster_slug=news.cluster_slug)
