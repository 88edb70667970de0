import pytest
from django.contrib.auth.models import User

from tenants import events
from tenants.models import Tenant
from tests import factories

TOPICS = (events.quota_changed, events.tenant_changed, events.membership_changed)


@pytest.fixture(autouse=True)
def _nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the upper apps out: what they do with news is tested where they are."""
    for topic in TOPICS:
        monkeypatch.setattr(topic, "_listeners", [])


@pytest.fixture
def lab() -> Tenant:
    return factories.tenant("lab")


@pytest.fixture
def boss() -> User:
    return factories.admin("boss")
