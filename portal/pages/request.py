"""Ask for compute: the form, and beside it what would become of the request."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from portal.flavor_names import flavor_label
from portal.pages import clock
from portal.pages.cluster_titles import cluster_title
from portal.pages.forms.request import JobRequestForm, as_typed
from portal.pages.quota_bars import quota_line
from portal.pages.signed_in import SignedInRequest, job_or_404, refused
from portal.pages.waiting import waiting
from scheduler.estimates import Estimate
from scheduler.selectors.jobs import job_list, priority_class_list
from scheduler.submission import JobRefusedError, job_ask, job_dry_run
from telemetry.choices import ClusterKind, DeviceHealth, NodeState, Scheduling
from telemetry.selectors import fleet
from tenants import selectors as tenancy
from tenants.errors import DomainError, InvalidValueError

UNPROCESSABLE = 422
PLACES_SHOWN = 8


@require_http_methods(["GET", "HEAD", "POST"])
def job_new(request: SignedInRequest) -> HttpResponse:
    """Show the form; queue what it asks for."""
    if request.method != "POST":
        return _page(request, _form(request, initial=_initial(request)))
    form = _form(request, request.POST)
    refusal: Estimate | None = None
    if form.is_valid():
        now = clock.now()
        try:
            job, _new = job_ask(actor=request.user, data=form.asked(), now=now, text=True)
        except InvalidValueError as wrong:
            form.add_refusals(wrong.fields)
        except JobRefusedError as never:
            refusal = never.estimate
        except DomainError as error:
            refused(request, error)
        else:
            messages.success(request, _("“%(name)s” is queued.") % {"name": job.name})
            return redirect("pages:job-detail", uid=job.pk)
    return _page(request, form, refusal=refusal, status=UNPROCESSABLE)


@require_POST
def job_estimate(request: SignedInRequest) -> HttpResponse:
    """Answer what would become of the form as it stands; nothing is written."""
    form = _form(request, request.POST)
    if form.is_valid():
        now = clock.now()
        try:
            _request, estimate = job_dry_run(
                actor=request.user, data=_guessed(form.asked()), now=now, text=True
            )
        except InvalidValueError as wrong:
            form.add_refusals(wrong.fields)
        else:
            return render(request, "pages/request_estimate.html", _panel(estimate))
    return render(request, "pages/request_estimate.html", {"problems": _problems(form)})


def _guessed(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the request with a name and a command where none is typed yet."""
    return asked | {
        "name": asked["name"].strip() or "estimate",
        "command": (asked["command"].strip() and asked["command"]) or "true",
    }


def _problems(form: JobRequestForm) -> list[tuple[str, str]]:
    """Return (label, sentence) of everything that can't be taken."""
    return [
        (str(form.fields[name].label) if name in form.fields else "", str(text))
        for name, texts in form.errors.items()
        for text in texts
    ]


def _panel(estimate: Estimate) -> dict[str, Any]:
    return {
        "estimate": estimate,
        "places": estimate.placement[:PLACES_SHOWN],
        "more_places": max(0, len(estimate.placement) - PLACES_SHOWN),
        "waiting": waiting(estimate.pending),
        "lines": [quota_line(row) for row in estimate.quota],
    }


def _page(
    request: SignedInRequest,
    form: JobRequestForm,
    *,
    refusal: Estimate | None = None,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, Any] = {"form": form, "processes_only": _processes_only()}
    if refusal is not None:
        context |= _panel(refusal)
    return render(request, "pages/request.html", context, status=status)


def _initial(request: SignedInRequest) -> dict[str, Any]:
    """Return what a job named in the address asked for; else the viewer's last tenant."""
    copied = request.GET.get("from", "")
    try:
        uid = UUID(copied)
    except ValueError:
        last = job_list(viewer=request.user).filter(owner_id=request.user.pk).first()
        return {} if last is None else {"tenant": last.tenant.slug}
    return as_typed(job_or_404(request, uid))


def _form(
    request: SignedInRequest,
    data: Mapping[str, Any] | None = None,
    *,
    initial: Mapping[str, Any] | None = None,
) -> JobRequestForm:
    tenants = list(tenancy.tenants_submittable(viewer=request.user).order_by("slug"))
    classes = list(priority_class_list())
    defaults = {"priority_class": next((c.slug for c in classes if c.is_default), "")}
    return JobRequestForm(
        data,
        initial=defaults | dict(initial or {}),
        tenants=[(t.slug, t.name) for t in tenants],
        clusters=[(c.slug, _cluster_label(c.name, c.is_simulated)) for c in _clusters()],
        flavors=_flavors(),
        priority_classes=[(c.slug, f"{c.slug} ({c.value})") for c in classes],
    )


def _clusters() -> list[Any]:
    return list(fleet.cluster_list(enabled=True))


def _cluster_label(name: str, simulated: bool) -> str:
    title = cluster_title(name)
    return _("%(name)s · invented") % {"name": title} if simulated else title


def _processes_only() -> list[str]:
    """Return the clusters that run processes, where an image means nothing."""
    return [c.slug for c in _clusters() if c.kind == ClusterKind.LOCAL]


def _flavors() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return, by cluster, each accelerator model with how many of its devices are free."""
    usable = Q(
        health=DeviceHealth.HEALTHY,
        node__state=NodeState.READY,
        node__scheduling=Scheduling.OPEN,
        allocated_milli=0,
    )
    rows = (
        fleet.device_list()
        .filter(node__cluster__enabled=True)
        .order_by("node__cluster__slug", "flavor")
        .values_list("node__cluster__slug", "flavor")
        .annotate(total=Count("pk"), free=Count("pk", filter=usable))
    )
    found: dict[str, list[tuple[str, str]]] = {}
    for cluster, flavor, total, free in rows:
        text = _("%(name)s: %(free)d of %(total)d free") % {
            "name": flavor_label(flavor),
            "free": free,
            "total": total,
        }
        found.setdefault(cluster, []).append((flavor, text))
    return list(found.items())
