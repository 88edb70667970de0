"""What a new installation starts with, made once and never overwritten."""

from scheduler.models import PriorityClass, SchedulingPolicy
from telemetry.models import Cluster

PRIORITY_CLASSES = (
    ("high", 1000, False, False),
    ("normal", 500, True, True),
    ("low", 100, True, False),
)
"""slug, value, preemptible, is_default."""


def priority_classes_ensure() -> None:
    """Create the priority classes that are missing, where there are none at all."""
    if PriorityClass.objects.exists():
        return
    for slug, value, preemptible, is_default in PRIORITY_CLASSES:
        PriorityClass.objects.create(
            slug=slug, value=value, preemptible=preemptible, is_default=is_default
        )


def policy_ensure(*, cluster: Cluster) -> SchedulingPolicy:
    """Return a cluster's policy, made with the defaults where it is missing."""
    policy, _ = SchedulingPolicy.objects.get_or_create(cluster=cluster)
    return policy
