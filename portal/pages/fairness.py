"""Who is owed what and who gets what, on one cluster: the shares of its last cycle."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from portal.flavor_names import flavor_label
from portal.pages.charts.fairness import FairnessRow, fairness_figure
from portal.pages.charts.frame import FigureDict, Meta
from portal.pages.shell import Shell
from portal.pages.signed_in import SignedInRequest, cluster_or_404
from scheduler.core.resources import CPU_FLAVOR
from scheduler.selectors.expected import expected_score
from scheduler.selectors.fairness import Fairness, fairness_get
from telemetry.models import Cluster
from telemetry.selectors import cluster_list
from tenants.selectors import tenant_list

MEASURES = ("entitled", "fair", "allocated", "requested")


@require_safe
def fairness_index(request: SignedInRequest) -> HttpResponse:
    """Lead to the cluster that most want to see."""
    slug = Shell(request).cluster
    if slug:
        return redirect("pages:fairness", slug=slug)
    return render(request, "pages/fleet_none.html")


@require_safe
def fairness(request: SignedInRequest, slug: str) -> HttpResponse:
    """Show the shares of one cluster, flavor by flavor."""
    cluster = cluster_or_404(request, slug)
    shares = fairness_get(viewer=request.user, cluster=cluster)
    names = {tenant.slug: tenant.name for tenant in tenant_list(viewer=request.user)}
    context = {
        "cluster": cluster,
        "clusters": list(cluster_list(enabled=True)),
        "at": shares.at,
        "flavors": by_flavor(cluster, shares, names),
        "score": expected_score(cluster=cluster),
    }
    return render(request, "pages/fairness.html", context)


def by_flavor(cluster: Cluster, shares: Fairness, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return, for each flavor that anybody owns, holds or asks for: table and figure."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in shares.rows:
        if any(row[measure] for measure in MEASURES):
            grouped.setdefault(row["flavor"], []).append(row)
    return [
        {
            "flavor": flavor,
            "id": f"fair-{number}",
            "label": flavor_label(flavor),
            "rows": [{**row, "name": _shown(row, names), "past": _past_pct(row)} for row in rows],
            "figure": _figure(cluster, shares, flavor, rows, names),
        }
        for number, (flavor, rows) in enumerate(sorted(grouped.items()))
    ]


def _figure(
    cluster: Cluster,
    shares: Fairness,
    flavor: str,
    rows: list[dict[str, Any]],
    names: Mapping[str, str],
) -> FigureDict:
    drawn = [
        FairnessRow(
            tenant=_shown(row, names), **{measure: row[measure] / 1000 for measure in MEASURES}
        )
        for row in rows
    ]
    labels = {
        "entitled": _("entitled"),
        "fair": _("fair share"),
        "allocated": _("allocated"),
        "requested": _("requested"),
        "axis": _("cores") if flavor == CPU_FLAVOR else _("devices"),
    }
    meta = Meta(
        what=_("Shares as the last cycle saw them."),
        source=_("Invented by the simulated fleet.") if cluster.is_simulated else _("Scheduler."),
        at=shares.at.isoformat() if shares.at else "",
    )
    return fairness_figure(drawn, labels, meta)


def _past_pct(row: Mapping[str, Any]) -> float | None:
    """Return past use in percent of the cluster; None for all others, and of older cycles."""
    past = row.get("past_frac")
    return None if past is None or row["tenant"] is None else 100 * float(past)


def _shown(row: Mapping[str, Any], names: Mapping[str, str]) -> str:
    if row["tenant"] is None:
        return _("all others")
    return names.get(row["tenant"], str(row["tenant"]))
