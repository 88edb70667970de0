"""Parts of the OpenAPI description that several resources share, and the pages that serve it."""

from typing import Any

from csp.constants import UNSAFE_INLINE
from csp.decorators import csp_update
from django.utils.decorators import method_decorator
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import serializers
from rest_framework.permissions import AllowAny

from portal.api.v1.auth import SessionAuthentication, TokenAuthentication


class ErrorSerializer(serializers.Serializer[Any]):
    """The one shape of every refusal."""

    code = serializers.CharField()
    message = serializers.CharField()
    fields = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        help_text="Field -> what is wrong with it.",
    )


IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="1 to 200 printable characters; a repeated request answers the first one's job.",
)

_WHY = {
    400: "A value can't be taken.",
    403: "You may see it but may not do this.",
    404: "There is no such object, or you may not see it.",
    409: "It is no longer in a state that allows this.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    429: "Too often; Retry-After says when again.",
    503: "What is behind it does not answer.",
}


def refusals(*statuses: int) -> dict[int, OpenApiResponse]:
    """Return the descriptions of refusals; 401 goes with every view."""
    return {s: OpenApiResponse(ErrorSerializer, description=_WHY[s]) for s in statuses}


class SchemaView(SpectacularAPIView):
    """The OpenAPI description; nobody's data is in it, so it is open to all."""

    permission_classes = [AllowAny]
    authentication_classes = []


@method_decorator(csp_update({"style-src": [UNSAFE_INLINE]}), name="dispatch")
class DocsView(SpectacularSwaggerSplitView):
    """Swagger, without inline scripts; its page brings a style sheet of its own."""

    permission_classes = [AllowAny]
    authentication_classes = [TokenAuthentication, SessionAuthentication]
    url_name = "api:schema"
