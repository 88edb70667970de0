"""How often one person may ask for what costs much; bursts of a minute are let through."""

from rest_framework.request import Request
from rest_framework.throttling import UserRateThrottle
from rest_framework.views import APIView


class DryRunThrottle(UserRateThrottle):
    """Estimates freeze the cluster and run the engine."""

    scope = "dry-run"
    rate = "300/min"


class SubmitThrottle(UserRateThrottle):
    """Each submission runs the engine and writes a row for ever."""

    scope = "submit"
    rate = "600/min"


class TokenThrottle(UserRateThrottle):
    """Nobody needs many tokens."""

    scope = "token"
    rate = "20/min"

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Return whether the request may go on; reading is free."""
        return request.method != "POST" or super().allow_request(request, view)
