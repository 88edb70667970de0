"""Who asks; `tenants.policies` says what they may do, the same for pages and API."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from tenants import policies
from tenants.errors import InvalidValueError


class AdminOrReadOnly(BasePermission):
    """Everybody who is signed in reads; who runs the whole portal writes."""

    def has_permission(self, request: Request, view: APIView) -> bool:  # noqa: ARG002
        """Return whether the request may go on."""
        if request.method in SAFE_METHODS:
            return bool(request.user.is_authenticated)
        return policies.is_platform_admin(request.user)


def viewer(request: Request) -> User:
    """Return who asks; every view but the probes and the 404 needs somebody."""
    return cast("User", request.user)


def body(request: Request) -> dict[str, Any]:
    """Return the object that was sent; empty where nothing was."""
    return dict(request.data.items()) if isinstance(request.data, Mapping) else {}


def given(request: Request, allowed: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a body.

    Raises:
        InvalidValueError: there is one that is not among `allowed`.
    """
    data = body(request)
    strange = sorted(str(name)[:60] for name in set(data) - set(allowed))
    if strange:
        raise InvalidValueError(
            {name: [_("There is no such field; remove it.")] for name in strange}
        )
    return data
