"""Who asks, and their API tokens."""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1.permissions import given, viewer
from portal.api.v1.schema import refusals
from portal.api.v1.throttles import TokenThrottle
from tenants.errors import InvalidValueError, NotAllowedError
from tenants.selectors import token_list
from tenants.services import LONGEST_DAYS, token_create, token_revoke

KEY_LENGTH = 15


class MeSerializer(serializers.Serializer[User]):
    """Who asks."""

    username = serializers.CharField()
    is_platform_admin = serializers.BooleanField(source="is_superuser")


class TokenSerializer(serializers.Serializer[Any]):
    """A token; all but its first characters are kept as a hash only."""

    key = serializers.CharField(source="token_key", help_text="Its first characters.")
    created = serializers.DateTimeField()
    expiry = serializers.DateTimeField(allow_null=True)


class NewTokenSerializer(TokenSerializer):
    """A token just made, shown this once."""

    token = serializers.CharField()


class TokenInputSerializer(serializers.Serializer[Any]):
    """How long it is to live."""

    days = serializers.IntegerField(required=False, min_value=1, max_value=LONGEST_DAYS)


class Me(APIView):
    """Who asks."""

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        """Return the name under which requests arrive."""
        return Response(MeSerializer(viewer(request)).data)


class TokenList(generics.ListAPIView[Any]):
    """Your own tokens; POST makes one."""

    serializer_class = TokenSerializer
    filter_backends = ()
    throttle_classes = [TokenThrottle]

    def get_queryset(self) -> QuerySet[Any]:
        return token_list(user=viewer(self.request))

    @extend_schema(
        request=TokenInputSerializer,
        responses={201: NewTokenSerializer, **refusals(400, 403, 429)},
    )
    def post(self, request: Request) -> Response:
        """Make a token, from a signed-in browser only: a stolen token can't renew itself."""
        if request.auth is not None:
            raise NotAllowedError(_("Sign in with a browser to make tokens."))
        days = given(request, ("days",)).get("days", settings.TOKEN_DAYS)
        if type(days) is not int:
            raise InvalidValueError.of(
                "days", _("Write a whole number from 1 to %(most)s.") % {"most": LONGEST_DAYS}
            )
        kept, token = token_create(user=viewer(request), days=days)
        return Response({**TokenSerializer(kept).data, "token": token}, status=201)


class TokenDetail(APIView):
    """One of your own tokens."""

    @extend_schema(responses={204: None, **refusals(404)})
    def delete(self, request: Request, key: str) -> Response:
        """Revoke it; requests with it are refused from now on."""
        if not token_revoke(user=viewer(request), key=key):
            raise Http404
        return Response(status=204)
