"""Entitled, fair and allocated share per tenant, from the last cycle that wrote them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from scheduler.models import Cycle
from telemetry.models import Cluster
from tenants.models import Tenant, Viewer


@dataclass(frozen=True, slots=True)
class Fairness:
    """The shares of one cluster at one time.

    Attributes:
        at: time of the cycle; None = no cycle yet.
        rows: tenant, flavor, entitled, fair, allocated, requested and part in milli-units, and
            past_frac; the tenants that the viewer may not see are summed under tenant None.
    """

    at: datetime | None
    rows: list[dict[str, Any]]


def fairness_get(*, viewer: "Viewer", cluster: Cluster) -> Fairness:
    """Return the newest shares of a cluster, others' summed."""
    last = cycle_list(cluster=cluster).exclude(fair_shares=[]).first()
    if last is None:
        return Fairness(None, [])
    seen = set(Tenant.objects.visible_to(viewer).values_list("slug", flat=True))
    rows: list[dict[str, Any]] = []
    others: dict[str, dict[str, Any]] = {}
    for row in last.fair_shares:
        if row["tenant"] in seen:
            rows.append(row)
            continue
        rest = others.setdefault(row["flavor"], {**dict.fromkeys(row, 0), "tenant": None})
        rest["flavor"] = row["flavor"]
        for name in ("entitled", "fair", "allocated", "requested"):
            rest[name] += row[name]
        rest["part"] = rest.get("part", 0) + row.get("part", 0)
    return Fairness(last.at, rows + [others[name] for name in sorted(others)])


def cycle_list(*, cluster: Cluster) -> QuerySet[Cycle]:
    """Return a cluster's cycles, newest first."""
    return Cycle.objects.filter(cluster=cluster).order_by("-pk")
