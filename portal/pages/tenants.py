"""The tree of tenants."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from portal.pages.forms.tenants import Choices, TenantForm
from portal.pages.signed_in import SignedInRequest, refused
from tenants import policies
from tenants.errors import DomainError, InvalidValueError
from tenants.models import Tenant
from tenants.selectors import TenantRow, tenant_list, tenant_tree
from tenants.services import tenant_create


@require_http_methods(["GET", "HEAD", "POST"])
def tenants(request: SignedInRequest) -> HttpResponse:
    """Show the tenants that the viewer sees; make one."""
    parents = parent_choices(request)
    form = TenantForm(request.POST if request.method == "POST" else None, parents=parents)
    if request.method == "POST" and form.is_valid():
        made = _create(request, form)
        if made is not None:
            messages.success(request, _("“%(name)s” is made.") % {"name": made.name})
            return redirect("pages:admin-tenant", slug=made.slug)
    context: dict[str, Any] = {
        "rows": tenant_tree(viewer=request.user),
        "form": form,
        "may_create": bool(parents),
    }
    return render(request, "pages/tenants.html", context, status=422 if form.errors else 200)


def _create(request: SignedInRequest, form: TenantForm) -> Tenant | None:
    asked = form.cleaned_data
    parent = tenant_list(viewer=request.user).filter(slug=asked["parent"]).first()
    try:
        return tenant_create(
            actor=request.user,
            slug=asked["slug"],
            name=asked["name"],
            parent=parent,
            fair_weight=asked["fair_weight"],
        )
    except InvalidValueError as wrong:
        form.add_refusals(wrong.fields)
    except DomainError as error:
        refused(request, error)
    return None


def parent_choices(request: SignedInRequest, *, without: Tenant | None = None) -> Choices:
    """Return the tenants below which the viewer may make or hang one, indented as a tree.

    Args:
        request: of the viewer.
        without: a tenant that can't be its own parent.
    """
    rows = tenant_tree(viewer=request.user)
    if policies.is_platform_admin(request.user):
        choices = [("", _("nothing: at the top"))]
        managed = rows
    else:
        choices = []
        managed = [row for row in rows if policies.may_manage_tenant(request.user, row.tenant)]
    return choices + [(row.tenant.slug, _indented(row)) for row in managed if row.tenant != without]


def _indented(row: TenantRow) -> str:
    return "\N{NO-BREAK SPACE}" * 3 * row.depth + row.tenant.name
