"""Which classes of jobs share a device well: said and removed from the page of the clusters."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from portal.pages.forms.pairings import PairingForm
from portal.pages.signed_in import SignedInRequest, refused, require_platform_admin
from scheduler.selectors.pairings import pairing_list
from scheduler.services.pairings import pairing_delete, pairing_set
from tenants.errors import DomainError, InvalidValueError


@require_POST
def pairing_save(request: SignedInRequest) -> HttpResponse:
    """Take one row, in place of what was said before."""
    require_platform_admin(request)
    form = PairingForm(request.POST)
    try:
        if not form.is_valid():
            raise InvalidValueError(
                {name: [*map(str, texts)] for name, texts in form.errors.items()}
            )
        pairing_set(actor=request.user, **form.cleaned_data)
    except DomainError as error:
        refused(request, error)
    else:
        messages.success(request, _("Saved; the next cycle obeys."))
    return redirect("pages:admin-clusters")


@require_POST
def pairing_remove(request: SignedInRequest, pk: int) -> HttpResponse:
    """Forget one row."""
    require_platform_admin(request)
    row = pairing_list().filter(pk=pk).first()
    if row is None:
        raise Http404
    pairing_delete(actor=request.user, row=row)
    messages.success(request, _("Removed."))
    return redirect("pages:admin-clusters")
