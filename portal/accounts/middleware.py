"""Nothing is shown to anonymous visitors but the sign-in page and the probes."""

from collections.abc import Callable

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.cache import patch_cache_control

OPEN_PREFIXES = ("/accounts/", "/static/", "/i18n/", "/api/", "/healthz", "/readyz")
"""Paths that check for themselves: the API answers 401, not a page."""


class SignInRequiredMiddleware:
    """Sends anonymous visitors to the sign-in page and back."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.user.is_authenticated or request.path_info.startswith(OPEN_PREFIXES):
            response = self.get_response(request)
            if request.user.is_authenticated and not response.has_header("Cache-Control"):
                patch_cache_control(response, private=True, no_cache=True)
            return response
        if getattr(request, "htmx", False):
            response = HttpResponse(status=401)
            response["HX-Redirect"] = reverse("account_login")
            return response
        return redirect_to_login(request.get_full_path(), reverse("account_login"))
