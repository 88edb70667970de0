"""How each cluster decides, and what its last cycles did; for those who run the portal."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from portal.pages import clock
from portal.pages.forms.clusters import PolicyForm
from portal.pages.forms.pairings import PairingForm
from portal.pages.forms.throughputs import ThroughputForm
from portal.pages.forms.weights import weight_initial
from portal.pages.shell import Shell
from portal.pages.signed_in import (
    SignedInRequest,
    cluster_or_404,
    refused,
    require_platform_admin,
)
from portal.reasons import clash_sentence
from scheduler.selectors.fairness import cycle_list
from scheduler.selectors.pairings import pairing_list
from scheduler.selectors.policies import policy_get
from scheduler.selectors.strategies import shadow_list
from scheduler.selectors.throughputs import learnt_list, throughput_list
from scheduler.services.policy import policy_update
from scheduler.snapshots import policy_of
from telemetry.models import Cluster
from telemetry.selectors import cluster_list
from tenants.errors import DomainError, InvalidValueError

CYCLES_SHOWN = 30
SHADOWS_SHOWN = 10
LEARNT_SHOWN = 200


@require_http_methods(["GET", "HEAD", "POST"])
def clusters(request: SignedInRequest) -> HttpResponse:
    """Show one cluster's policy and cycles; change the policy."""
    require_platform_admin(request)
    slug = request.GET.get("cluster") or Shell(request).cluster
    if not slug:
        return render(request, "pages/fleet_none.html")
    cluster = cluster_or_404(request, slug)
    form = PolicyForm(request.POST if request.method == "POST" else None, initial=_initial(cluster))
    if request.method == "POST" and form.is_valid() and _change(request, cluster, form):
        messages.success(request, _("Saved; the next cycle obeys."))
        return redirect(f"{request.path}?cluster={cluster.slug}")
    context: dict[str, Any] = {
        "cluster": cluster,
        "clusters": list(cluster_list()),
        "cycles": list(cycle_list(cluster=cluster)[:CYCLES_SHOWN]),
        "clashes": _clashes(cluster),
        "shadows": list(shadow_list(cluster=cluster)[:SHADOWS_SHOWN]),
        "form": form,
        "throughputs": list(throughput_list()),
        "learnt": list(learnt_list(viewer=request.user)[:LEARNT_SHOWN]),
        "throughput_form": ThroughputForm(),
        "pairings": list(pairing_list()),
        "pairing_form": PairingForm(),
        "now": clock.now(),
    }
    return render(request, "pages/clusters.html", context, status=422 if form.errors else 200)


def _clashes(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the clashes of the last cycle, in words."""
    last = cycle_list(cluster=cluster).first()
    found = last.clashes if last else []
    return [{"uid": clash["uid"], "sentence": clash_sentence(clash)} for clash in found]


def _initial(cluster: Cluster) -> dict[str, Any]:
    policy, row = policy_of(cluster), policy_get(cluster=cluster)
    stored = {name: getattr(row, name) for name in PolicyForm.base_fields}
    return {
        **stored,
        "strategy": policy.strategy,
        "shadow": policy.shadow,
        "solver": policy.solver,
        "power_cap_w": policy.power_cap_w,
        **{f"kind_{kind}": strategy for kind, strategy in policy.kinds},
        **weight_initial(row.weights),
    }


def _change(request: SignedInRequest, cluster: Cluster, form: PolicyForm) -> bool:
    try:
        policy_update(actor=request.user, cluster=cluster, **form.wanted())
    except InvalidValueError as wrong:
        form.add_refusals(wrong.fields)
        return False
    except DomainError as error:
        refused(request, error)
        return False
    return True
