"""One cluster, live: its nodes and devices, and how much of it is held and busy over time."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from portal.pages import clock
from portal.pages.charts.frame import FigureDict, Meta
from portal.pages.charts.utilisation import UtilisationRow, utilisation_figure
from portal.pages.shell import Shell
from portal.pages.signed_in import SignedInRequest, cluster_or_404
from scheduler.selectors.fleet import fleet_rows
from telemetry.models import Cluster
from telemetry.selectors import SeriesPoint, cluster_list, node_list, node_state, utilisation_series

SPANS: dict[str, timedelta] = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
POINTS = 240


@require_safe
def fleet_index(request: SignedInRequest) -> HttpResponse:
    """Lead to the cluster that most want to see."""
    slug = Shell(request).cluster
    if slug:
        return redirect("pages:fleet", slug=slug)
    return render(request, "pages/fleet_none.html")


@require_safe
def fleet(request: SignedInRequest, slug: str) -> HttpResponse:
    """Show one cluster; with `span` in the address and asked by htmx, its chart alone."""
    cluster = cluster_or_404(request, slug)
    now = clock.now()
    span = request.GET.get("span", "1h")
    span = span if span in SPANS else "1h"
    context: dict[str, Any] = {
        "cluster": cluster,
        "spans": list(SPANS),
        "span": span,
        "figure": utilisation_of(cluster, now=now, span=SPANS[span]),
    }
    if getattr(request, "htmx", False):
        return render(request, "pages/fleet_chart.html", context)
    context |= {
        "pulse": fleet_rows(cluster)["cluster"],
        "clusters": list(cluster_list(enabled=True)),
        "nodes": node_rows(cluster),
        "now": now,
    }
    return render(request, "pages/fleet.html", context)


def node_rows(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the nodes with what they have, hold and use, for the table."""
    return [
        {
            "node": node,
            "state": node_state(state=node.state, scheduling=node.scheduling),
            "device_count": len(devices := list(node.devices.all())),
            "device_milli": sum(device.allocated_milli for device in devices),
            "unhealthy": sum(device.health != "healthy" for device in devices),
        }
        for node in node_list(cluster=cluster)
    ]


def utilisation_of(cluster: Cluster, *, now: datetime, span: timedelta) -> FigureDict:
    """Return allocated against utilised over a span that ends now."""
    points = utilisation_series(cluster=cluster, since=now - span, until=now, points=POINTS)
    rows = [
        UtilisationRow(
            at=point.at.isoformat(),
            at_s=point.at.timestamp(),
            allocated_frac=point.allocated_frac,
            utilised_frac=point.utilised_frac,
        )
        for point in points
    ]
    labels = {
        "allocated": _("allocated"),
        "utilised": _("utilised"),
        "axis": _("part of all devices"),
    }
    meta = Meta(
        what=_("Allocated: held by jobs. Utilised: measured busy. Their distance is waste."),
        source=_("Invented by the simulated fleet.")
        if cluster.is_simulated
        else _("Mean of samples; of cores where there are no accelerators."),
        at=cluster.sampled_at.isoformat() if cluster.sampled_at else "",
    )
    return utilisation_figure(rows, labels, meta, step_s=step_s(points))


def step_s(points: Sequence[SeriesPoint]) -> float:
    """Return the distance of two points of a series in seconds."""
    if len(points) < 2:  # noqa: PLR2004 - two points make a distance
        return 1.0
    return (points[1].at - points[0].at).total_seconds()
