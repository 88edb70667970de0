"""Rows that who runs the portal gives, said and removed from the page of the clusters."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from portal.pages.forms.tenants import ServiceForm
from portal.pages.signed_in import SignedInRequest, refused, require_platform_admin
from tenants.errors import DomainError, InvalidValueError


def save(request: SignedInRequest, form: ServiceForm, say: Callable[..., object]) -> HttpResponse:
    """Take one row, in place of what was said before; `say` is the service."""
    require_platform_admin(request)
    try:
        if not form.is_valid():
            raise InvalidValueError(
                {name: [*map(str, texts)] for name, texts in form.errors.items()}
            )
        say(actor=request.user, **form.cleaned_data)
    except DomainError as error:
        refused(request, error)
    else:
        messages.success(request, _("Saved; the next cycle obeys."))
    return redirect("pages:admin-clusters")


def remove(
    request: SignedInRequest, rows: QuerySet[Any], pk: int, forget: Callable[..., None]
) -> HttpResponse:
    """Forget one row; `forget` is the service."""
    require_platform_admin(request)
    forget(actor=request.user, row=rows.get(pk=pk))
    messages.success(request, _("Removed."))
    return redirect("pages:admin-clusters")
