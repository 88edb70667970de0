"""A person's API tokens."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.pages import clock
from portal.pages.forms.tokens import TokenForm
from portal.pages.signed_in import SignedInRequest
from tenants.selectors import token_list
from tenants.services import token_create, token_revoke


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: SignedInRequest) -> HttpResponse:
    """List the viewer's tokens; make one, and show it this once."""
    form = TokenForm(request.POST if request.method == "POST" else None)
    made = ""
    if request.method == "POST" and form.is_valid():
        _kept, made = token_create(user=request.user, days=form.cleaned_data["days"])
        form = TokenForm()
    context = {
        "form": form,
        "made": made,
        "tokens": list(token_list(user=request.user)),
        "now": clock.now(),
    }
    return render(request, "pages/tokens.html", context, status=422 if form.errors else 200)


@require_POST
def revoke(request: SignedInRequest, key: str) -> HttpResponse:
    """Take one of the viewer's tokens away."""
    if not token_revoke(user=request.user, key=key):
        raise Http404
    messages.success(request, _("The token is revoked."))
    return redirect("pages:tokens")
