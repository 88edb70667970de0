"""Two teams that know nothing of each other, a local cluster and a simulated one."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from scheduler.models import Job, PriorityClass
from scheduler.services.setup import policy_ensure, priority_classes_ensure
from telemetry import services as telemetry
from telemetry.choices import ClusterKind
from telemetry.models import Cluster
from tenants.choices import Role
from tenants.models import Tenant
from tests import factories

A100 = "nvidia-a100-80gb-sxm"


@dataclass
class World:
    """Names of what there is."""

    here: Cluster
    demo: Cluster
    organisation: Tenant
    vision: Tenant
    language: Tenant
    ada: User
    lead: User
    viewer: User
    eve: User
    root: User
    job: Job
    secret: Job

    def sees(self, person: User) -> Client:
        """Return a browser in which the person is signed in."""
        client = Client()
        client.force_login(person)
        return client


@pytest.fixture
def world(db: None, settings: Any, tmp_path: Path) -> Iterator[World]:
    del db
    cache.clear()
    settings.DATA = tmp_path
    priority_classes_ensure()
    telemetry.samples_partition(day=datetime.now(UTC).date())
    here = factories.cluster("this-machine", kind=ClusterKind.LOCAL, name="This machine")
    demo = factories.cluster("demo", name="Demo")
    for cluster in (here, demo):
        policy_ensure(cluster=cluster)
    factories.node(here, "desk", cpu_milli=8000, memory_mib=32 * 1024)
    for name in ("n1", "n2"):
        node = factories.node(demo, name)
        for index in range(4):
            factories.device(node, index, flavor=A100)
    organisation = factories.tenant("organisation")
    vision = factories.tenant("vision", organisation)
    language = factories.tenant("language", organisation, name="Speech team")
    factories.quota(vision, demo, A100, 4000)
    factories.quota(language, demo, A100, 4000)
    ada = factories.member(vision, username="ada")
    eve = factories.member(language, username="eve")
    normal = PriorityClass.objects.get(slug="normal")
    yield World(
        here=here,
        demo=demo,
        organisation=organisation,
        vision=vision,
        language=language,
        ada=ada,
        lead=factories.member(vision, Role.LEAD, username="lead"),
        viewer=factories.member(vision, Role.VIEWER, username="viewer"),
        eve=eve,
        root=factories.admin("root"),
        job=factories.job(
            vision,
            ada,
            demo,
            name="train <b>big</b>",
            env={"KEY": "se&cret"},
            priority_class=normal,
        ),
        secret=factories.job(language, eve, demo, name="hidden-job", priority_class=normal),
    )
    cache.clear()


@pytest.fixture
def ada(world: World) -> Client:
    return world.sees(world.ada)


@pytest.fixture
def eve(world: World) -> Client:
    return world.sees(world.eve)


@pytest.fixture
def lead(world: World) -> Client:
    return world.sees(world.lead)


@pytest.fixture
def viewer(world: World) -> Client:
    return world.sees(world.viewer)


@pytest.fixture
def root(world: World) -> Client:
    return world.sees(world.root)


def text_of(response: Any) -> str:
    return response.content.decode()  # type: ignore[no-any-return]
