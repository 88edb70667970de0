"""How fast classes of jobs run on flavors: said and removed from the page of the clusters."""

from django.http import HttpResponse
from django.views.decorators.http import require_POST

from portal.pages import given
from portal.pages.forms.throughputs import ThroughputForm
from portal.pages.signed_in import SignedInRequest
from scheduler.selectors.throughputs import throughput_list
from scheduler.services.throughputs import throughput_delete, throughput_set


@require_POST
def throughput_save(request: SignedInRequest) -> HttpResponse:
    """Take one row, in place of what was said before."""
    return given.save(request, ThroughputForm(request.POST), throughput_set)


@require_POST
def throughput_remove(request: SignedInRequest, pk: int) -> HttpResponse:
    """Forget one row."""
    return given.remove(request, throughput_list(), pk, throughput_delete)
