"""What the verifier counts with: who holds what, and who is above whom."""

from collections import Counter
from typing import TypeAlias

from scheduler.core.resources import CPU_FLAVOR, may_be_given
from scheduler.core.snapshot import JobSpec, Snapshot

Held: TypeAlias = Counter[tuple[str, str]]
"""(tenant, flavor) -> milli-units that the tenant itself holds."""


def charge(held: Held, job: JobSpec, flavor: str, replicas: int) -> None:
    """Count what a tenant is charged for some replicas of a job on a flavor, "" for none."""
    held[job.tenant, CPU_FLAVOR] += job.shape.cpu_milli * replicas
    if flavor:
        held[job.tenant, flavor] += job.shape.device_milli * replicas


def upwards(snapshot: Snapshot, slug: str) -> list[str]:
    """Return a tenant and those above it, from itself to its root."""
    parents = {tenant.slug: tenant.parent for tenant in snapshot.tenants}
    way, at = list[str](), parents.get(slug) if slug not in parents else slug
    while at is not None:
        way.append(at)
        at = parents[at]
    return way


def options_of(snapshot: Snapshot, job: JobSpec) -> list[str]:
    """Return the flavors that a job may be given, by name or by MIG profile; [""] for none."""
    if not job.shape.devices:
        return [""]
    names = [flavor.name for flavor in snapshot.fleet.flavors]
    return [n for n in names if may_be_given(n, job.flavors, job.shape.devices)]
