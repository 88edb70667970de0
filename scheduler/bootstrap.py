"""A new installation's first rows: admin, clusters, tenants. Made once, never overwritten."""

import secrets
from collections import Counter
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from scheduler.core.resources import CPU_FLAVOR
from scheduler.demo import DEMO_OWNER
from scheduler.services.setup import policy_ensure, priority_classes_ensure
from scheduler.services.validation import DEFAULT_CLUSTER
from telemetry import services as telemetry
from telemetry.choices import ClusterKind
from telemetry.models import Cluster, Device, Node
from tenants import services as tenants
from tenants.choices import Role
from tenants.models import Quota, Tenant

ADMIN = "admin"
ROOT_TENANT = "organisation"
DEMO_CLUSTER = "demo"
PASSWORD_BYTES = 12

DEMO_TENANTS = (
    ("vision", "Vision", 2.0, 0.30),
    ("language", "Language", 3.0, 0.40),
    ("robotics", "Robotics", 1.0, 0.20),
)
"""slug, name, fair weight, part of the demo fleet that it owns; the rest is lent to all."""


def bootstrap(*, demo: bool, now: datetime) -> str | None:
    """Create what is missing.

    Args:
        demo: also the simulated fleet and the demo tenants, where they never were.
        now: time of the first samples.

    Returns:
        The first admin's password where it was just created, else None.
    """
    priority_classes_ensure()
    password = _first_admin()
    admin = User.objects.filter(is_superuser=True).order_by("pk").first()
    telemetry.samples_partition(day=now.date())
    _this_machine(now)
    if admin is not None:
        _root_tenant(admin)
        if demo:
            _demo(admin, now)
    if not demo:
        Cluster.objects.filter(slug=DEMO_CLUSTER).update(enabled=False)
    return password


def _first_admin() -> str | None:
    if User.objects.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    User.objects.create_superuser(username=ADMIN, email="", password=password)
    return password


def _this_machine(now: datetime) -> None:
    cluster, _new = Cluster.objects.get_or_create(
        slug=DEFAULT_CLUSTER,
        defaults={"name": "This machine", "kind": ClusterKind.LOCAL},
    )
    if cluster.enabled != settings.LOCAL_EXECUTOR:
        cluster.enabled = settings.LOCAL_EXECUTOR
        cluster.save(update_fields=["enabled"])
    policy_ensure(cluster=cluster)
    if cluster.enabled:
        telemetry.sample_cluster(cluster=cluster, now=now)


def _root_tenant(admin: User) -> None:
    if not Tenant.objects.exists():
        tenants.tenant_create(actor=admin, slug=ROOT_TENANT, name="Organisation")


def _demo(admin: User, now: datetime) -> None:
    cluster, new = Cluster.objects.get_or_create(
        slug=DEMO_CLUSTER,
        defaults={
            "name": "Demo (simulated)",
            "kind": ClusterKind.SIMULATED,
            "clock_scale": settings.DEMO_CLOCK_SCALE,
        },
    )
    Cluster.objects.filter(pk=cluster.pk).update(
        enabled=True, clock_scale=settings.DEMO_CLOCK_SCALE
    )
    policy_ensure(cluster=cluster)
    if new:
        telemetry.sample_cluster(cluster=cluster, now=now)
        with transaction.atomic():
            _demo_tenants(admin, cluster)


def _demo_tenants(admin: User, cluster: Cluster) -> None:
    root = Tenant.objects.filter(parent=None).order_by("pk").first()
    owner = User.objects.filter(username=DEMO_OWNER).first()
    if owner is None:  # without a password: nobody signs in as the demo
        owner = User.objects.create_user(DEMO_OWNER)
    capacity = _capacity(cluster)
    owned: Counter[str] = Counter()
    for slug, name, weight, part in DEMO_TENANTS:
        tenant = Tenant.objects.filter(slug=slug).first() or tenants.tenant_create(
            actor=admin, slug=slug, name=name, parent=root, fair_weight=weight
        )
        tenants.membership_set(actor=admin, tenant=tenant, user=owner, role=Role.MEMBER)
        for flavor, total in capacity.items():
            nominal = int(total * part) // 1000 * 1000
            owned[flavor] += nominal
            _quota(admin, tenant, cluster, flavor, nominal)
    if root is not None:
        for flavor, total in capacity.items():
            _quota(admin, root, cluster, flavor, total - owned[flavor])


def _quota(admin: User, tenant: Tenant, cluster: Cluster, flavor: str, nominal: int) -> None:
    if not Quota.objects.filter(tenant=tenant, cluster=cluster, flavor=flavor).exists():
        tenants.quota_set(
            actor=admin, tenant=tenant, cluster=cluster, flavor=flavor, nominal=nominal
        )


def _capacity(cluster: Cluster) -> dict[str, int]:
    devices = Device.objects.filter(node__cluster=cluster).values_list("flavor", flat=True)
    capacity = {flavor: count * 1000 for flavor, count in sorted(Counter(devices).items())}
    capacity[CPU_FLAVOR] = sum(
        Node.objects.filter(cluster=cluster).values_list("cpu_milli", flat=True)
    )
    return capacity
