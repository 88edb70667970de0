"""A small world behind the API: two teams that know nothing of each other, one simulated fleet."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from knox.models import AuthToken
from rest_framework.test import APIClient

from scheduler import loop
from scheduler.models import PriorityClass
from scheduler.ports import cluster_executor
from scheduler.services.setup import policy_ensure, priority_classes_ensure
from telemetry import services as telemetry
from telemetry.models import Cluster
from tenants.choices import Role
from tenants.models import Tenant
from tests import factories

A100 = "nvidia-a100-80gb-sxm"


@dataclass
class World:
    """Names of what there is."""

    cluster: Cluster
    vision: Tenant
    language: Tenant
    ada: User
    lead: User
    viewer: User
    eve: User
    root: User


@pytest.fixture
def world(db: None, settings: Any, tmp_path: Path) -> World:
    del db
    cache.clear()
    settings.DATA = tmp_path  # so that no two tests share a simulated clock
    priority_classes_ensure()
    assert PriorityClass.objects.filter(is_default=True).exists()
    telemetry.samples_partition(day=datetime.now(UTC).date())
    cluster = factories.cluster("this-machine")
    policy = policy_ensure(cluster=cluster)
    policy.strategy = "rules"
    policy.save()
    for name in ("n1", "n2"):
        node = factories.node(cluster, name, cpu_milli=8000, memory_mib=32 * 1024)
        for index in range(2):
            factories.device(node, index, flavor=A100)
    vision, language = factories.tenant("vision"), factories.tenant("language")
    return World(
        cluster=cluster,
        vision=vision,
        language=language,
        ada=factories.member(vision, username="ada"),
        lead=factories.member(vision, Role.LEAD, username="lead"),
        viewer=factories.member(vision, Role.VIEWER, username="viewer"),
        eve=factories.member(language, username="eve"),
        root=factories.admin("root"),
    )


def token_of(user: User) -> str:
    """Return the value of an Authorization header."""
    _kept, token = AuthToken.objects.create(user, expiry=timedelta(days=1))
    return f"Token {token}"


def client_of(user: User | None) -> APIClient:
    client = APIClient()
    if user is not None:
        client.credentials(HTTP_AUTHORIZATION=token_of(user))
    return client


@pytest.fixture
def ada(world: World) -> APIClient:
    return client_of(world.ada)


@pytest.fixture
def lead(world: World) -> APIClient:
    return client_of(world.lead)


@pytest.fixture
def viewer(world: World) -> APIClient:
    return client_of(world.viewer)


@pytest.fixture
def eve(world: World) -> APIClient:
    return client_of(world.eve)


@pytest.fixture
def root(world: World) -> APIClient:
    return client_of(world.root)


@pytest.fixture
def anonymous(world: World) -> APIClient:
    del world
    return client_of(None)


@pytest.fixture
def cycle(world: World) -> Callable[..., None]:
    """Run one cycle of the fleet, `after_s` seconds from now."""

    def run(after_s: float = 0.0) -> None:
        at = datetime.now(UTC) + timedelta(seconds=after_s)
        ports = loop.Ports(executor=cluster_executor(world.cluster), node_lost_after_s=1e9)
        assert loop.run_cycle(world.cluster, ports, clock=lambda: at, woken=True).ran

    return run


@pytest.fixture
def run_first(cycle: Callable[..., None]) -> Callable[[], None]:
    """Place what waits, and let the simulated executor start it."""

    def run() -> None:
        for after_s in (0.0, 1.0, 10.0):
            cycle(after_s)

    return run


def asked(**fields: Any) -> dict[str, Any]:
    """Return the least that a request names, and `fields`."""
    return {"name": "first", "tenant": "vision", "command": "echo hello", **fields}
