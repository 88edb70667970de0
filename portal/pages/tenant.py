"""One tenant: its name and weight, its place in the tree, its members."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from portal.pages.forms.tenants import (
    MemberForm,
    PersonForm,
    ServiceForm,
    TenantEditForm,
    TenantMoveForm,
)
from portal.pages.signed_in import SignedInRequest, refused, tenant_or_404
from portal.pages.tenants import parent_choices
from tenants import policies
from tenants.choices import Role
from tenants.errors import DomainError, InvalidValueError
from tenants.models import Membership, Tenant
from tenants.selectors import membership_list, person_get, quota_list, tenant_list
from tenants.services import (
    membership_remove,
    membership_set,
    person_create,
    tenant_delete,
    tenant_move,
    tenant_update,
)

UNPROCESSABLE = 422


@require_safe
def tenant(request: SignedInRequest, slug: str) -> HttpResponse:
    """Show one tenant."""
    return _page(request, tenant_or_404(request, slug))


@require_POST
def update(request: SignedInRequest, slug: str) -> HttpResponse:
    """Rename, weigh or fence a tenant."""
    row = tenant_or_404(request, slug)
    form = _edit_form(request, row, request.POST)

    def change() -> str:
        tenant_update(
            actor=request.user,
            tenant=row,
            name=form.cleaned_data["name"],
            fair_weight=form.cleaned_data["fair_weight"],
            queue_priority=form.cleaned_data["queue_priority"],
            preemption_fence=form.cleaned_data["preemption_fence"],
        )
        return _("Saved.")

    return _carry_out(request, row, "edit_form", form, change)


@require_POST
def move(request: SignedInRequest, slug: str) -> HttpResponse:
    """Hang a tenant elsewhere in the tree."""
    row = tenant_or_404(request, slug)
    form = TenantMoveForm(request.POST, parents=parent_choices(request, without=row))

    def change() -> str:
        wanted = form.cleaned_data["parent"]
        parent = tenant_list(viewer=request.user).filter(slug=wanted).first()
        tenant_move(actor=request.user, tenant=row, parent=parent)
        return _("Moved.")

    return _carry_out(request, row, "move_form", form, change)


@require_POST
def delete(request: SignedInRequest, slug: str) -> HttpResponse:
    """Delete a tenant that nothing hangs on."""
    row = tenant_or_404(request, slug)
    try:
        tenant_delete(actor=request.user, tenant=row)
    except DomainError as error:
        refused(request, error)
        return redirect("pages:admin-tenant", slug=slug)
    messages.success(request, _("“%(name)s” is deleted.") % {"name": row.name})
    return redirect("pages:admin-tenants")


@require_POST
def member_set(request: SignedInRequest, slug: str) -> HttpResponse:
    """Give a person a role."""
    row = tenant_or_404(request, slug)
    form = MemberForm(request.POST)

    def change() -> str:
        person = person_get(username=form.cleaned_data["username"])
        membership_set(actor=request.user, tenant=row, user=person, role=form.cleaned_data["role"])
        return _("%(person)s is now %(role)s.") % {
            "person": person.username,
            "role": Role(form.cleaned_data["role"]).label,
        }

    return _carry_out(request, row, "member_form", form, change)


@require_POST
def member_remove(request: SignedInRequest, slug: str, username: str) -> HttpResponse:
    """Take a person's role away."""
    row = tenant_or_404(request, slug)
    member = _member_or_404(request, row, username)
    try:
        membership_remove(actor=request.user, tenant=row, user=member.user)
    except DomainError as error:
        refused(request, error)
    else:
        messages.success(request, _("%(person)s is removed.") % {"person": username})
    return redirect("pages:admin-tenant", slug=slug)


@never_cache
@require_POST
def person_new(request: SignedInRequest, slug: str) -> HttpResponse:
    """Make an account and a member at once; its password is shown this once."""
    row = tenant_or_404(request, slug)
    form = PersonForm(request.POST)
    if form.is_valid():
        try:
            with transaction.atomic():
                person, password = _person(request.user, row, form)
        except InvalidValueError as wrong:
            form.add_refusals(wrong.fields)
        except DomainError as error:
            refused(request, error)
        else:
            made = {"username": person.username, "password": password}
            return _page(request, row, new_person=made)
    return _page(request, row, person_form=form, status=UNPROCESSABLE)


def _person(actor: User, row: Tenant, form: PersonForm) -> tuple[User, str]:
    person, password = person_create(actor=actor, username=form.cleaned_data["username"])
    membership_set(actor=actor, tenant=row, user=person, role=form.cleaned_data["role"])
    return person, password


def _member_or_404(request: SignedInRequest, row: Tenant, username: str) -> Membership:
    rows = membership_list(viewer=request.user, tenant=row)
    found = rows.filter(user__username=username.replace("\x00", "")).first()
    if found is None:
        raise Http404
    return found


def _carry_out(
    request: SignedInRequest, row: Tenant, name: str, form: ServiceForm, change: Callable[[], str]
) -> HttpResponse:
    """Carry out a change that a form asks for; show the page again where it is refused."""
    if form.is_valid():
        try:
            done = change()
        except InvalidValueError as wrong:
            form.add_refusals(wrong.fields)
        except DomainError as error:
            refused(request, error)
            return redirect("pages:admin-tenant", slug=row.slug)
        else:
            messages.success(request, done)
            return redirect("pages:admin-tenant", slug=row.slug)
    return _page(request, row, status=UNPROCESSABLE, **{name: form})


def _edit_form(request: SignedInRequest, row: Tenant, data: Any = None) -> TenantEditForm:
    return TenantEditForm(
        data,
        initial={
            "name": row.name,
            "fair_weight": row.fair_weight,
            "queue_priority": row.queue_priority,
            "preemption_fence": row.preemption_fence,
        },
        may_weigh=policies.may_manage_parent(request.user, row),
    )


def _page(request: SignedInRequest, row: Tenant, *, status: int = 200, **more: Any) -> HttpResponse:
    viewer = request.user
    may_move = policies.may_manage_parent(viewer, row)
    context = {
        "tenant": row,
        "parent": tenant_list(viewer=viewer).filter(pk=row.parent_id).first(),
        "members": list(membership_list(viewer=viewer, tenant=row)),
        "quotas": list(quota_list(viewer=viewer, tenant=row)),
        "roles": Role.choices,
        "may_manage": policies.may_manage_tenant(viewer, row),
        "may_move": may_move,
        "may_members": policies.may_manage_members(viewer, row),
        "edit_form": _edit_form(request, row),
        "member_form": MemberForm(),
        "person_form": PersonForm(),
    }
    if may_move:
        context["move_form"] = TenantMoveForm(
            initial={"parent": row.parent.slug if row.parent else ""},
            parents=parent_choices(request, without=row),
        )
    return render(request, "pages/tenant.html", context | more, status=status)
