from typing import Any

import pytest

from telemetry import events, services
from telemetry.choices import Scheduling
from telemetry.models import Cluster
from tests import factories
from tests.factories import NOW
from tests.telemetry.services.readings import OnCommit, heard

pytestmark = pytest.mark.django_db


def test_a_node_is_cordoned_drained_and_opened(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: OnCommit,
) -> None:
    news = heard(monkeypatch, events.nodes_changed)
    node = factories.node(cluster)
    who: dict[str, Any] = {"actor_name": "boss", "now": NOW}
    with django_capture_on_commit_callbacks(execute=True):
        services.node_cordon(node=node, reason=" fan \x00\n" + "x" * 600, **who)
    node.refresh_from_db()
    assert node.scheduling == Scheduling.CORDONED
    assert (node.scheduling_reason[:5], len(node.scheduling_reason)) == ("fan  ", 500)
    services.node_drain(node=node, reason="swap", **who)
    node.refresh_from_db()
    assert (node.scheduling, node.scheduling_reason) == (Scheduling.DRAINING, "swap")
    services.node_uncordon(node=node, **who)
    node.refresh_from_db()
    assert (node.scheduling, node.scheduling_reason) == (Scheduling.OPEN, "")
    assert news == [events.NodesChanged(cluster.pk, "demo")]
