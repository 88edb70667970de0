"""How decisions are made on each cluster, as admins set it."""

from scheduler.models import SchedulingPolicy
from telemetry.models import Cluster


def policy_get(*, cluster: Cluster) -> SchedulingPolicy:
    """Return a cluster's policy, with the defaults where none is stored."""
    return SchedulingPolicy.objects.filter(cluster=cluster).first() or SchedulingPolicy(
        cluster=cluster
    )


def policy_budgets() -> dict[str, float]:
    """Return cluster -> seconds that a decision may take."""
    return dict(SchedulingPolicy.objects.values_list("cluster__slug", "budget_s"))
