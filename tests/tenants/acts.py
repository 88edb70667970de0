"""What several tests of services do."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.auth.models import User

from telemetry.events import Topic
from telemetry.models import Cluster
from tenants import services
from tenants.models import Quota, Tenant

pytestmark = pytest.mark.django_db

OnCommit = Callable[..., AbstractContextManager[list[Callable[[], None]]]]


def hear(monkeypatch: pytest.MonkeyPatch, topic: Topic[Any]) -> list[Any]:
    news: list[Any] = []
    monkeypatch.setattr(topic, "_listeners", [])
    topic.subscribe(news.append)
    return news


def own(actor: User, tenant: Tenant, cluster: Cluster, **values: Any) -> Quota:
    wanted: dict[str, Any] = {"flavor": "cpu", "nominal": 4000, **values}
    return services.quota_set(actor=actor, tenant=tenant, cluster=cluster, **wanted)
