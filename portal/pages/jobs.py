"""The list of jobs."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django_tables2 import RequestConfig

from portal.pages.cluster_titles import cluster_title
from portal.pages.forms.jobs import JobFilter
from portal.pages.signed_in import SignedInRequest
from portal.pages.tables.jobs import JobTable
from scheduler.selectors.jobs import job_list
from telemetry.selectors import cluster_list
from tenants.selectors import tenant_list

PAGE_SIZES = (25, 50, 100)


@require_safe
def jobs(request: SignedInRequest) -> HttpResponse:
    """Show the jobs that the viewer may see, narrowed by the address."""
    everything = job_list(viewer=request.user)
    narrowed = JobFilter(
        request.GET or None,
        queryset=everything,
        request=request,
        tenants=[(t.slug, t.name) for t in tenant_list(viewer=request.user)],
        clusters=[(c.slug, cluster_title(c.name)) for c in cluster_list(enabled=True)],
    )
    size = page_size(request)
    table = JobTable(narrowed.qs)
    RequestConfig(request, paginate={"per_page": size}).configure(table)
    context = {
        "filter": narrowed,
        "table": table,
        "sizes": PAGE_SIZES,
        "size": size,
        "narrowed": any(request.GET.get(name) for name in narrowed.filters),
        "chosen_states": request.GET.getlist("state"),
    }
    return render(request, "pages/jobs.html", context)


def page_size(request: SignedInRequest) -> int:
    """Return the rows a page that the address asks for, if it is one of those offered."""
    asked = request.GET.get("per_page", "")
    return next((size for size in PAGE_SIZES if asked == str(size)), PAGE_SIZES[0])
