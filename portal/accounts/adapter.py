"""How accounts are handled: only admins make them."""

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class ClosedSignupAdapter(DefaultAccountAdapter):
    """Keeps sign-up closed."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002
        """Return False: an admin creates accounts."""
        return False
