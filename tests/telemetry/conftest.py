from typing import TYPE_CHECKING

import pytest

from telemetry import events

if TYPE_CHECKING:
    from telemetry.models import Cluster

TOPICS = (events.nodes_changed, events.cluster_sampled)


@pytest.fixture(autouse=True)
def _nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the upper apps out: what they do with news is tested where they are."""
    for topic in TOPICS:
        monkeypatch.setattr(topic, "_listeners", [])


@pytest.fixture
def cluster() -> "Cluster":
    from tests import factories  # noqa: PLC0415 - pure tests of this folder need no Django

    return factories.cluster("demo")
