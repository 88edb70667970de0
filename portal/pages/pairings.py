"""Which classes of jobs share a device well: said and removed from the page of the clusters."""

from django.http import HttpResponse
from django.views.decorators.http import require_POST

from portal.pages import given
from portal.pages.forms.pairings import PairingForm
from portal.pages.signed_in import SignedInRequest
from scheduler.selectors.pairings import pairing_list
from scheduler.services.pairings import pairing_delete, pairing_set


@require_POST
def pairing_save(request: SignedInRequest) -> HttpResponse:
    """Take one row, in place of what was said before."""
    return given.save(request, PairingForm(request.POST), pairing_set)


@require_POST
def pairing_remove(request: SignedInRequest, pk: int) -> HttpResponse:
    """Forget one row."""
    return given.remove(request, pairing_list(), pk, pairing_delete)
