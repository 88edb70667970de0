"""Entitled, fair and allocated share per tenant."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1.schema import refusals
from scheduler.selectors.fairness import fairness_get
from telemetry.selectors import cluster_get
from tenants.errors import InvalidValueError


class ShareSerializer(serializers.Serializer[Any]):
    """One tenant's shares of one flavor, in thousandths of a device or core."""

    tenant = serializers.SlugField(allow_null=True, help_text="null = all that you may not see.")
    flavor = serializers.CharField()
    entitled = serializers.IntegerField(help_text="Its nominal quota.")
    fair = serializers.IntegerField(help_text="Its fair share now.")
    allocated = serializers.IntegerField(help_text="What it holds.")
    requested = serializers.IntegerField(help_text="What it holds and waits for.")
    part = serializers.IntegerField(
        default=0, help_text="Its fair share if everybody asked for everything."
    )
    past_frac = serializers.FloatField(
        default=0.0, help_text="Decayed past use as a fraction of the cluster."
    )


class FairnessSerializer(serializers.Serializer[Any]):
    """The shares of one cluster as the last cycle found them."""

    cluster = serializers.SlugField()
    at = serializers.DateTimeField(allow_null=True, help_text="null = no cycle yet.")
    count = serializers.IntegerField()
    results = ShareSerializer(many=True)


class FairnessView(APIView):
    """The shares of a cluster."""

    @extend_schema(
        parameters=[OpenApiParameter("cluster", str, required=True, description="Slug.")],
        responses={200: FairnessSerializer, **refusals(400, 404)},
    )
    def get(self, request: Request) -> Response:
        """Return entitled, fair, allocated and requested per tenant and flavor."""
        slug = request.query_params.get("cluster", "")
        if not slug:
            raise InvalidValueError.of("cluster", _("Name a cluster, such as this-machine."))
        cluster = cluster_get(slug=slug)
        found = fairness_get(viewer=request.user, cluster=cluster)
        body = {
            "cluster": cluster.slug,
            "at": found.at,
            "count": len(found.rows),
            "results": found.rows,
        }
        return Response(FairnessSerializer(body).data)
