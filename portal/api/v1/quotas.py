"""What tenants own."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1.permissions import given, viewer
from portal.api.v1.schema import refusals
from portal.api.v1.tenants import visible_tenant
from telemetry.models import Cluster
from telemetry.selectors import cluster_list
from tenants import selectors, services
from tenants.errors import InvalidValueError
from tenants.models import Quota

AMOUNTS = ("nominal", "borrowing_limit", "lending_limit")


class QuotaSerializer(serializers.Serializer[Quota]):
    """What a tenant owns of a flavor in a cluster, in thousandths of a device or core."""

    id = serializers.IntegerField(read_only=True)
    tenant = serializers.SlugField(source="tenant.slug")
    cluster = serializers.SlugField(source="cluster.slug")
    flavor = serializers.CharField()
    nominal = serializers.IntegerField(min_value=0)
    borrowing_limit = serializers.IntegerField(
        min_value=0, allow_null=True, required=False, help_text="null = no limit."
    )
    lending_limit = serializers.IntegerField(
        min_value=0, allow_null=True, required=False, help_text="null = all of it."
    )


class QuotaChangeSerializer(serializers.Serializer[Any]):
    """Amounts that are to change; null = no limit."""

    nominal = serializers.IntegerField(min_value=0, required=False)
    borrowing_limit = serializers.IntegerField(min_value=0, allow_null=True, required=False)
    lending_limit = serializers.IntegerField(min_value=0, allow_null=True, required=False)


class QuotaFilter(django_filters.FilterSet):  # type: ignore[misc]
    """What a list of quotas can be narrowed to."""

    tenant = django_filters.CharFilter(field_name="tenant__slug")
    cluster = django_filters.CharFilter(field_name="cluster__slug")
    flavor = django_filters.CharFilter()


class QuotaList(generics.ListAPIView[Quota]):
    """The quotas of the tenants that you may see; POST sets one."""

    serializer_class = QuotaSerializer
    filterset_class = QuotaFilter

    def get_queryset(self) -> QuerySet[Quota]:
        return selectors.quota_list(viewer=self.request.user)

    @extend_schema(
        request=QuotaSerializer,
        responses={200: QuotaSerializer, **refusals(400, 403)},
    )
    def post(self, request: Request) -> Response:
        """Say what a tenant owns of a flavor, in place of what was said before."""
        data = given(request, ("tenant", "cluster", "flavor", *AMOUNTS))
        row = services.quota_set(
            actor=viewer(request),
            tenant=visible_tenant(request, data.get("tenant")),
            cluster=_cluster(data.get("cluster")),
            flavor=data.get("flavor", ""),
            nominal=data.get("nominal"),  # type: ignore[arg-type]  # None is refused there
            borrowing_limit=data.get("borrowing_limit"),
            lending_limit=data.get("lending_limit"),
        )
        return Response(QuotaSerializer(row).data)


class QuotaDetail(APIView):
    """One quota."""

    @extend_schema(responses={200: QuotaSerializer, **refusals(404)})
    def get(self, request: Request, pk: int) -> Response:
        """Return the quota."""
        return Response(QuotaSerializer(selectors.quota_list(viewer=request.user).get(pk=pk)).data)

    @extend_schema(
        request=QuotaChangeSerializer, responses={200: QuotaSerializer, **refusals(400, 403, 404)}
    )
    def patch(self, request: Request, pk: int) -> Response:
        """Change the amounts that are named."""
        data = given(request, AMOUNTS)
        quota = selectors.quota_list(viewer=request.user).get(pk=pk)
        amounts = {name: data.get(name, getattr(quota, name)) for name in AMOUNTS}
        row = services.quota_set(
            actor=viewer(request),
            tenant=quota.tenant,
            cluster=quota.cluster,
            flavor=quota.flavor,
            **amounts,
        )
        return Response(QuotaSerializer(row).data)

    @extend_schema(responses={204: None, **refusals(403, 404)})
    def delete(self, request: Request, pk: int) -> Response:
        """Take from the tenant what it owns of the flavor; it may still borrow."""
        quota = selectors.quota_list(viewer=request.user).get(pk=pk)
        services.quota_delete(actor=viewer(request), quota=quota)
        return Response(status=204)


def _cluster(slug: object) -> Cluster:
    found = cluster_list().filter(slug=slug).first() if isinstance(slug, str) else None
    if found is None:
        raise InvalidValueError.of(
            "cluster", _("There is no such cluster; GET /api/v1/clusters/ lists them.")
        )
    return found
