"""Database rows for tests: plain functions, every argument optional."""

from datetime import UTC, datetime
from itertools import count
from typing import Any

from django.contrib.auth.models import User

from scheduler.models import Job, PriorityClass
from telemetry.choices import ClusterKind
from telemetry.models import Cluster, Device, Node
from tenants.choices import Role
from tenants.models import Membership, Quota, Tenant

NOW = datetime(2026, 3, 2, 12, 0, 0, tzinfo=UTC)
_numbers = count(1)


def user(username: str = "", **columns: Any) -> User:
    return User.objects.create_user(username=username or f"user{next(_numbers)}", **columns)


def admin(username: str = "") -> User:
    return user(username or f"admin{next(_numbers)}", is_superuser=True, is_staff=True)


def tenant(slug: str = "", parent: Tenant | None = None, **columns: Any) -> Tenant:
    slug = slug or f"tenant{next(_numbers)}"
    row: Tenant = Tenant.objects.create(
        slug=slug, name=columns.pop("name", slug.title()), parent=parent, **columns
    )
    return row


def membership(person: User, of: Tenant, role: Role = Role.MEMBER) -> Membership:
    return Membership.objects.create(user=person, tenant=of, role=role)


def member(of: Tenant, role: Role = Role.MEMBER, username: str = "") -> User:
    person = user(username)
    membership(person, of, role)
    return person


def cluster(slug: str = "", **columns: Any) -> Cluster:
    slug = slug or f"cluster{next(_numbers)}"
    values = {"name": slug.title(), "kind": ClusterKind.SIMULATED, **columns}
    return Cluster.objects.create(slug=slug, **values)


def node(of: Cluster | None = None, name: str = "", **columns: Any) -> Node:
    values = {"cpu_milli": 64_000, "memory_mib": 512 * 1024, "seen_at": NOW, **columns}
    return Node.objects.create(
        cluster=of or cluster(), name=name or f"node{next(_numbers)}", **values
    )


def device(of: Node | None = None, index: int = 0, **columns: Any) -> Device:
    values = {
        "uid": f"GPU-{next(_numbers)}",
        "vendor": "nvidia",
        "model": "NVIDIA A100-SXM4-80GB",
        "flavor": "nvidia-a100-80gb",
        "memory_mib": 81_920,
        "compute_units": 312.0,
        "seen_at": NOW,
        **columns,
    }
    return Device.objects.create(node=of or node(), index=index, **values)


def quota(of: Tenant, on: Cluster, flavor: str = "cpu", nominal: int = 0, **columns: Any) -> Quota:
    return Quota.objects.create(tenant=of, cluster=on, flavor=flavor, nominal=nominal, **columns)


def priority_class(slug: str = "normal", value: int = 100, **columns: Any) -> PriorityClass:
    row, _ = PriorityClass.objects.get_or_create(slug=slug, defaults={"value": value, **columns})
    return row


def job(of: Tenant, owner: User | None = None, on: Cluster | None = None, **columns: Any) -> Job:
    values = {"submitted_at": NOW, "command": "true", **columns}
    return Job.objects.create(
        tenant=of,
        owner=owner or user(),
        cluster=on or cluster(),
        name=values.pop("name", f"job{next(_numbers)}"),
        priority_class=values.pop("priority_class", None) or priority_class(),
        **values,
    )
