import pytest

from telemetry import events

TOPICS = (events.nodes_changed, events.cluster_sampled)


@pytest.fixture(autouse=True)
def _nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the upper apps out: what they do with news is tested where they are."""
    for topic in TOPICS:
        monkeypatch.setattr(topic, "_listeners", [])
