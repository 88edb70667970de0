"""What every tenant owns of a cluster, as a tree, with what it uses and borrows."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.flavor_names import flavor_label
from portal.pages import clock
from portal.pages.bars import Bar
from portal.pages.forms.quotas import QuotaForm
from portal.pages.quota_bars import own_use
from portal.pages.shell import Shell
from portal.pages.signed_in import SignedInRequest, cluster_or_404, refused, tenant_or_404
from scheduler import snapshots
from scheduler.core.resources import CPU_FLAVOR
from scheduler.core.snapshot import Fleet
from scheduler.decide.quota import QuotaLedger
from scheduler.decide.standing import above_quota, quota_ledger
from telemetry import units
from telemetry.models import Cluster
from telemetry.selectors import cluster_list
from tenants import policies
from tenants.errors import DomainError
from tenants.models import Quota, Tenant
from tenants.selectors import QuotaRow, QuotaTree, quota_list, quota_tree, tenant_tree
from tenants.services import quota_delete, quota_set

AMOUNTS = ("nominal", "borrowing_limit", "lending_limit")


@dataclass(frozen=True, slots=True)
class FlavorTable:
    """One flavor's tree of quotas.

    Attributes:
        flavor, label: slug and name.
        rows: tenants, depth first, each with its bar, whether the viewer may edit it, and what it
            holds above all that its quota could give it, as after a cut.
        owned, capacity: in thousandths: what the tenants own together, and what there is.
    """

    flavor: str
    label: str
    rows: list[dict[str, Any]]
    owned: int
    capacity: int

    @property
    def is_over(self) -> bool:
        """Return whether more is owned than there is."""
        return self.owned > self.capacity


@require_http_methods(["GET", "HEAD", "POST"])
def quotas(request: SignedInRequest) -> HttpResponse:
    """Show a cluster's quotas; set one."""
    cluster = _cluster(request)
    if cluster is None:
        return render(request, "pages/fleet_none.html")
    form = _form(request, cluster, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.carried_out(lambda: _set(request, cluster, form)):
        messages.success(request, _("Saved."))
        return redirect(f"{reverse('pages:admin-quotas')}?cluster={cluster.slug}")
    context = {
        "cluster": cluster,
        "clusters": list(cluster_list(enabled=True)),
        "tables": tables(request, cluster),
        "form": form,
    }
    return render(request, "pages/quotas.html", context, status=422 if form.errors else 200)


@require_safe
def quota_edit(request: SignedInRequest, slug: str, tenant: str, flavor: str) -> HttpResponse:
    """Send the table of a flavor with one of its rows opened for editing."""
    cluster = cluster_or_404(request, slug)
    row = _editable_or_404(request, tenant)
    found = quota_list(viewer=request.user, cluster=cluster, tenant=row).filter(flavor=flavor)
    form = _form(request, cluster, initial=_as_typed(found.first()))
    return _table(request, cluster, flavor, editing=row.slug, form=form)


@require_POST
def quota_save(request: SignedInRequest, slug: str, tenant: str, flavor: str) -> HttpResponse:
    """Set one quota; send its flavor's table, with the row still open where it is refused."""
    cluster = cluster_or_404(request, slug)
    row = _editable_or_404(request, tenant)
    data = request.POST.copy()
    data["tenant"], data["flavor"] = row.slug, flavor
    form = _form(request, cluster, data)
    if form.carried_out(lambda: _set(request, cluster, form)):
        return _table(request, cluster, flavor)
    return _table(request, cluster, flavor, editing=row.slug, form=form)


@require_POST
def quota_remove(request: SignedInRequest, pk: int) -> HttpResponse:
    """Take from a tenant what it owns of a flavor."""
    row = quota_list(viewer=request.user).filter(pk=pk).first()
    if row is None:
        raise Http404
    try:
        quota_delete(actor=request.user, quota=row)
    except DomainError as error:
        refused(request, error)
    else:
        messages.success(request, _("Removed."))
    return redirect(f"{reverse('pages:admin-quotas')}?cluster={row.cluster.slug}")


def _editable(request: SignedInRequest) -> set[str]:
    return set(policies.quota_tenants(request.user).values_list("slug", flat=True))


def _editable_or_404(request: SignedInRequest, slug: str) -> Tenant:
    row = tenant_or_404(request, slug)
    if not policies.may_set_quota(request.user, row):
        raise Http404
    return row


def tables(request: SignedInRequest, cluster: Cluster) -> list[FlavorTable]:
    """Return every flavor's tree as far as the viewer sees it."""
    snapshot = snapshots.take(cluster=cluster, now=clock.now()).snapshot
    capacity = capacity_of(snapshot.fleet)
    trees = quota_tree(viewer=request.user, cluster=cluster, usage=own_use(snapshot))
    editable = _editable(request)
    ledger = quota_ledger(snapshot)
    return [_flavor_table(tree, capacity, editable, ledger) for tree in trees]


def _flavor_table(
    tree: QuotaTree, capacity: Counter[str], editable: set[str], ledger: QuotaLedger
) -> FlavorTable:
    return FlavorTable(
        flavor=tree.flavor,
        label=flavor_label(tree.flavor),
        rows=[
            {
                "row": row,
                "bar": _bar(row, tree.flavor),
                "may_edit": row.tenant_slug in editable,
                "above": above_quota(ledger, row.tenant_slug, tree.flavor),
            }
            for row in tree.rows
        ],
        owned=sum(row.nominal for row in tree.rows),
        capacity=capacity[tree.flavor],
    )


def _bar(row: QuotaRow, flavor: str) -> Bar:
    owned = row.nominal + row.nominal_below
    limit = None if row.borrowing_limit is None else owned + row.borrowing_limit
    return Bar(
        held=row.usage + row.usage_below,
        nominal=owned,
        limit=limit,
        label=f"{row.tenant_name}, {flavor_label(flavor)}",
    )


def capacity_of(fleet: Fleet) -> Counter[str]:
    """Return flavor -> thousandths of a device or core that a fleet has."""
    found = Counter({CPU_FLAVOR: int(fleet.node_cpu_milli.sum())})
    for index in fleet.device_flavor.tolist():
        found[fleet.flavors[index].name] += 1000
    return found


def _cluster(request: SignedInRequest) -> Cluster | None:
    slug = request.GET.get("cluster") or Shell(request).cluster
    return cluster_or_404(request, slug) if slug else None


def _form(
    request: SignedInRequest, cluster: Cluster, data: Any = None, initial: Any = None
) -> QuotaForm:
    fleet, editable = (
        snapshots.take(cluster=cluster, now=clock.now()).snapshot.fleet,
        _editable(request),
    )
    owned = quota_list(viewer=request.user, cluster=cluster).values_list("flavor", flat=True)
    flavors = sorted({*capacity_of(fleet), *owned})
    return QuotaForm(
        data,
        initial=initial,
        tenants=[
            (row.tenant.slug, row.tenant.name)
            for row in tenant_tree(viewer=request.user)
            if row.tenant.slug in editable
        ],
        flavors=[(flavor, flavor_label(flavor)) for flavor in flavors],
    )


def _set(request: SignedInRequest, cluster: Cluster, form: QuotaForm) -> None:
    asked = form.cleaned_data
    quota_set(
        actor=request.user,
        tenant=tenant_or_404(request, asked["tenant"]),
        cluster=cluster,
        flavor=asked["flavor"],
        **{name: asked[name] for name in AMOUNTS},
    )


def _as_typed(row: Quota | None) -> dict[str, str]:
    if row is None:
        return {"nominal": "0"}
    amounts = {name: getattr(row, name) for name in AMOUNTS}
    return {
        name: "" if milli is None else units.format_devices_milli(milli)
        for name, milli in amounts.items()
    }


def _table(
    request: SignedInRequest,
    cluster: Cluster,
    flavor: str,
    *,
    editing: str = "",
    form: QuotaForm | None = None,
) -> HttpResponse:
    found = next((t for t in tables(request, cluster) if t.flavor == flavor), None)
    if found is None:
        raise Http404
    context = {"cluster": cluster, "table": found, "editing": editing, "edit_form": form}
    return render(request, "pages/quotas_table.html", context)
