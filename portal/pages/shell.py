"""What the frame around every page shows; each part is read only where a template asks for it."""

import re
from datetime import datetime
from functools import cache, cached_property

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.utils.translation import gettext as _

from portal.pages import clock
from scheduler.models import StrategyAlarm
from scheduler.selectors.strategies import strategy_alarms
from scheduler.services.validation import DEFAULT_CLUSTER
from telemetry.models import Cluster
from telemetry.selectors import fleet as telemetry
from tenants import policies
from tenants import selectors as tenancy
from tenants.choices import Role

_RELEASE = re.compile(r"^## \[?([0-9][^\]\s]*)", re.MULTILINE)


class Shell:
    """The frame of one request.

    A page about one cluster sets `request.cluster_on_page`; the frame then says whether what it
    shows is simulated, and how old it is.
    """

    def __init__(self, request: HttpRequest) -> None:
        self._viewer = getattr(request, "user", AnonymousUser())
        self._cluster: Cluster | None = getattr(request, "cluster_on_page", None)

    @cached_property
    def is_admin(self) -> bool:
        """Whether the viewer runs the whole portal."""
        return policies.is_platform_admin(self._viewer)

    @cached_property
    def role(self) -> str:
        """The most that the viewer may do in any tenant, in words; "" where they are in none."""
        if self.is_admin:
            return _("Administrator")
        if isinstance(self._viewer, AnonymousUser):
            return ""
        roles = tenancy.roles_of(viewer=self._viewer)
        return next((str(role.label).capitalize() for role in Role if role in roles), "")

    @cached_property
    def can_submit(self) -> bool:
        """Whether there is a tenant that the viewer may submit to."""
        return bool(tenancy.tenants_submittable(viewer=self._viewer).exists())

    @cached_property
    def tenants(self) -> list[str]:
        """The names of the tenants that the viewer sees."""
        return [tenant.name for tenant in tenancy.tenant_list(viewer=self._viewer)]

    @cached_property
    def clusters(self) -> list[Cluster]:
        """The clusters in use."""
        return list(telemetry.cluster_list(enabled=True))

    @property
    def cluster(self) -> str:
        """The cluster that links lead to: the page's, else this machine, else the first."""
        if self._cluster is not None:
            return self._cluster.slug
        slugs = [cluster.slug for cluster in self.clusters]
        return DEFAULT_CLUSTER if DEFAULT_CLUSTER in slugs else next(iter(slugs), "")

    @cached_property
    def strategy_alarms(self) -> list[StrategyAlarm]:
        """The alarms of failing strategies; only who runs the portal sees them."""
        return list(strategy_alarms()) if self.is_admin else []

    @property
    def simulated(self) -> bool:
        """Whether the page shows a cluster whose numbers are invented."""
        return self._cluster is not None and self._cluster.is_simulated

    @property
    def fresh_at(self) -> datetime | None:
        """When the page's cluster was last sensed."""
        return None if self._cluster is None else self._cluster.sampled_at

    @property
    def now(self) -> datetime:
        """The time of this page."""
        return clock.now()

    @property
    def version(self) -> str:
        """The newest release that CHANGELOG.md names."""
        return version()


def shell(request: HttpRequest) -> dict[str, Shell]:
    """Return the frame, for templates."""
    return {"shell": Shell(request)}


@cache
def version() -> str:
    """Return the newest version of CHANGELOG.md, "0" where none was released."""
    path = settings.BASE_DIR / "CHANGELOG.md"
    found = _RELEASE.search(path.read_text("utf-8")) if path.exists() else None
    return found[1] if found else "0"
