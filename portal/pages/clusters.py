"""How each cluster decides, and what its last cycles did; for those who run the portal."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from portal.flavor_names import flavor_label
from portal.pages import clock
from portal.pages.forms.clusters import PolicyForm
from portal.pages.forms.given import PairingForm, ThroughputForm
from portal.pages.forms.tenants import ServiceForm
from portal.pages.forms.weights import weight_initial
from portal.pages.shell import Shell
from portal.pages.signed_in import SignedInRequest, cluster_or_404, require_platform_admin
from portal.reasons import clash_sentence
from scheduler.selectors.fairness import cycle_list
from scheduler.selectors.pairings import pairing_list
from scheduler.selectors.policies import policy_get
from scheduler.selectors.strategies import shadow_list
from scheduler.selectors.throughputs import learnt_list, throughput_list
from scheduler.services.pairings import pairing_set
from scheduler.services.policy import policy_update
from scheduler.services.throughputs import throughput_set
from scheduler.snapshots import policy_of
from telemetry.flavors import BY_SLUG
from telemetry.models import Cluster
from telemetry.selectors import cluster_list, flavor_list

CYCLES_SHOWN = 30
SHADOWS_SHOWN = 10
LEARNT_SHOWN = 200


@require_http_methods(["GET", "HEAD", "POST"])
def clusters(request: SignedInRequest) -> HttpResponse:
    """Show one cluster's policy and cycles; change the policy, or what is said of all clusters."""
    require_platform_admin(request)
    slug = request.GET.get("cluster") or Shell(request).cluster
    if not slug:
        return render(request, "pages/fleet_none.html")
    cluster = cluster_or_404(request, slug)
    if request.method != "POST":
        return _page(request, cluster)
    name, form, service = _asked(request, cluster)
    if not form.carried_out(service):
        return _page(request, cluster, **{name: form})
    messages.success(request, _("Saved; the next cycle obeys."))
    return redirect(f"{request.path}?cluster={cluster.slug}")


def _asked(
    request: SignedInRequest, cluster: Cluster
) -> tuple[str, ServiceForm, Callable[[], object]]:
    """Return which of the page's forms was sent, as typed, and what carries it out."""
    actor, typed = request.user, request.POST
    match typed.get("save"):
        case "throughput":
            row = _throughput_form(typed)
            return "throughput_form", row, lambda: throughput_set(actor=actor, **row.cleaned_data)
        case "pairing":
            pair = PairingForm(typed)
            return "pairing_form", pair, lambda: pairing_set(actor=actor, **pair.cleaned_data)
        case _:
            form = PolicyForm(typed, initial=_initial(cluster))
            return (
                "form",
                form,
                lambda: policy_update(actor=actor, cluster=cluster, **form.wanted()),
            )


def _page(request: SignedInRequest, cluster: Cluster, **typed: ServiceForm) -> HttpResponse:
    """Return the page, with a form that was refused in place of the fresh one."""
    context: dict[str, Any] = {
        "cluster": cluster,
        "clusters": list(cluster_list()),
        "cycles": list(cycle_list(cluster=cluster)[:CYCLES_SHOWN]),
        "clashes": _clashes(cluster),
        "shadows": list(shadow_list(cluster=cluster)[:SHADOWS_SHOWN]),
        "form": typed.get("form") or PolicyForm(initial=_initial(cluster)),
        "throughputs": list(throughput_list()),
        "learnt": list(learnt_list(viewer=request.user)[:LEARNT_SHOWN]),
        "throughput_form": typed.get("throughput_form") or _throughput_form(),
        "pairings": list(pairing_list()),
        "pairing_form": typed.get("pairing_form") or PairingForm(),
        "now": clock.now(),
    }
    return render(request, "pages/clusters.html", context, status=422 if typed else 200)


def _throughput_form(typed: Any = None) -> ThroughputForm:
    """Return the form with all accelerators that there are, and then those that there could be."""
    known = (slug for slug, entry in BY_SLUG.items() if entry.vendor != "cpu")
    slugs = dict.fromkeys((*flavor_list(), *known))
    return ThroughputForm(typed, flavors=[(slug, flavor_label(slug)) for slug in slugs])


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
