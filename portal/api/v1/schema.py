"""Parts of the OpenAPI description that several resources share, and the pages that serve it."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import serializers
from rest_framework.permissions import IsAuthenticated

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
    """The OpenAPI description."""

    permission_classes = [IsAuthenticated]
    authentication_classes = [TokenAuthentication, SessionAuthentication]


class DocsView(SpectacularSwaggerSplitView):
    """Swagger, without inline scripts."""

    permission_classes = [IsAuthenticated]
    authentication_classes = [TokenAuthentication, SessionAuthentication]
    url_name = "api:schema"
