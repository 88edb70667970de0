"""Nodes for those who run the portal: cordon, drain, open; the health of devices."""

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from portal.pages import clock
from portal.pages.forms.nodes import ReasonForm
from portal.pages.shell import Shell
from portal.pages.signed_in import SignedInRequest, cluster_or_404, require_platform_admin
from scheduler.models import Job
from scheduler.selectors.jobs import placement_list
from telemetry.choices import DeviceHealth, Scheduling
from telemetry.models import Cluster, Node
from telemetry.selectors import cluster_list, node_get, node_list, node_state
from telemetry.services import node_cordon, node_drain, node_uncordon
from tenants.audit import acting

ACTIONS: dict[str, Callable[..., Node]] = {
    "cordon": node_cordon,
    "drain": node_drain,
    "uncordon": node_uncordon,
}
TITLES = {
    "cordon": gettext_lazy("Cordon"),
    "drain": gettext_lazy("Drain"),
    "uncordon": gettext_lazy("Open again"),
}
DONE = {
    "cordon": gettext_lazy("%(node)s takes nothing new."),
    "drain": gettext_lazy("%(node)s takes nothing new; what runs there goes back to the queue."),
    "uncordon": gettext_lazy("%(node)s takes jobs again."),
}
OFFERED: dict[str, tuple[str, ...]] = {
    Scheduling.OPEN: ("cordon", "drain"),
    Scheduling.CORDONED: ("uncordon", "drain"),
    Scheduling.DRAINING: ("uncordon",),
}


@require_safe
def nodes(request: SignedInRequest) -> HttpResponse:
    """Show the nodes of a cluster with what may be done to each."""
    require_platform_admin(request)
    slug = request.GET.get("cluster") or Shell(request).cluster
    if not slug:
        return render(request, "pages/fleet_none.html")
    cluster = cluster_or_404(request, slug)
    jobs = jobs_by_node(request, cluster)
    context = {
        "cluster": cluster,
        "clusters": list(cluster_list(enabled=True)),
        "rows": [_row(node, jobs.get(node.pk, [])) for node in node_list(cluster=cluster)],
        "now": clock.now(),
    }
    return render(request, "pages/nodes.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def node_act(request: SignedInRequest, slug: str, name: str, action: str) -> HttpResponse:
    """Ask whether to cordon, drain or open a node, saying what that stops; do it."""
    require_platform_admin(request)
    cluster = cluster_or_404(request, slug)
    node = _node_or_404(cluster, name)
    if action not in ACTIONS:
        raise Http404
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        with acting(request.user):
            ACTIONS[action](
                actor_name=request.user.get_username(),
                node=node,
                reason=form.cleaned_data["reason"],
                now=clock.now(),
            )
        messages.success(request, DONE[action] % {"node": node.name})
        return redirect(f"{reverse('pages:admin-nodes')}?cluster={cluster.slug}")
    context = {
        "cluster": cluster,
        "node": node,
        "action": action,
        "title": TITLES[action],
        "jobs": jobs_by_node(request, cluster).get(node.pk, []),
        "form": form,
    }
    return render(request, "pages/node_act.html", context, status=422 if form.errors else 200)


def _node_or_404(cluster: Cluster, name: str) -> Node:
    try:
        return node_get(cluster=cluster, name=name)
    except Node.DoesNotExist as exc:
        raise Http404 from exc


def _row(node: Node, jobs: Iterable[Job]) -> dict[str, Any]:
    devices = list(node.devices.all())
    return {
        "node": node,
        "state": node_state(state=node.state, scheduling=node.scheduling),
        "devices": devices,
        "unhealthy": [d for d in devices if d.health != DeviceHealth.HEALTHY],
        "jobs": list(jobs),
        "actions": [(action, TITLES[action]) for action in OFFERED[node.scheduling]],
    }


def jobs_by_node(request: SignedInRequest, cluster: Cluster) -> dict[int, list[Job]]:
    """Return node -> the jobs that hold something of it, by name."""
    found: dict[int, list[Job]] = {}
    held = placement_list(viewer=request.user).filter(cluster=cluster, released_at__isnull=True)
    for placement in held:
        for node in {replica.node_id for replica in placement.replicas.all()}:
            found.setdefault(node, []).append(placement.job)
    return found
