import pytest

from tenants import events

TOPICS = (events.quota_changed, events.tenant_changed, events.membership_changed)


@pytest.fixture(autouse=True)
def _nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the upper apps out: what they do with news is tested where they are."""
    for topic in TOPICS:
        monkeypatch.setattr(topic, "_listeners", [])
