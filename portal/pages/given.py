"""Rows that who runs the portal gives, forgotten from the page of the clusters."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from portal.pages.signed_in import SignedInRequest, require_platform_admin
from scheduler.selectors.pairings import pairing_list
from scheduler.selectors.throughputs import throughput_list
from scheduler.services.pairings import pairing_delete
from scheduler.services.throughputs import throughput_delete


@require_POST
def throughput_remove(request: SignedInRequest, pk: int) -> HttpResponse:
    """Forget how fast a class runs on a flavor."""
    return _remove(request, throughput_list(), pk, throughput_delete)


@require_POST
def pairing_remove(request: SignedInRequest, pk: int) -> HttpResponse:
    """Forget how two classes share a device."""
    return _remove(request, pairing_list(), pk, pairing_delete)


def _remove(
    request: SignedInRequest, rows: QuerySet[Any], pk: int, forget: Callable[..., None]
) -> HttpResponse:
    require_platform_admin(request)
    forget(actor=request.user, row=rows.get(pk=pk))
    messages.success(request, _("Removed."))
    shown = urlencode({"cluster": request.GET.get("cluster", "")})
    return redirect(f"{reverse('pages:admin-clusters')}?{shown}")
