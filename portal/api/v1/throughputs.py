"""How fast classes of jobs run on flavors."""

import django_filters
from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.v1.given import GivenDetail
from portal.api.v1.permissions import AdminOrReadOnly, given, viewer
from portal.api.v1.schema import refusals
from scheduler.models import Throughput
from scheduler.selectors.throughputs import throughput_list
from scheduler.services.throughputs import throughput_delete, throughput_set

FIELDS = ("job_class", "flavor", "throughput", "note")


class ThroughputSerializer(serializers.Serializer[Throughput]):
    """How fast a class of jobs runs on a flavor."""

    id = serializers.IntegerField(read_only=True)
    job_class = serializers.CharField(
        max_length=80, help_text="A class, or a kind for jobs without a class."
    )
    flavor = serializers.CharField()
    throughput = serializers.FloatField(
        help_text="Against the flavor it is fastest on: more than 0, at most 1."
    )
    note = serializers.CharField(required=False, allow_blank=True, max_length=200)


class ThroughputFilter(django_filters.FilterSet):  # type: ignore[misc]
    """What a list of throughputs can be narrowed to."""

    job_class = django_filters.CharFilter()
    flavor = django_filters.CharFilter()


class ThroughputList(generics.ListAPIView[Throughput]):
    """What was said of classes and flavors; POST says one, which only an admin may."""

    permission_classes = [AdminOrReadOnly]
    serializer_class = ThroughputSerializer
    filterset_class = ThroughputFilter

    def get_queryset(self) -> QuerySet[Throughput]:
        return throughput_list()

    @extend_schema(
        request=ThroughputSerializer, responses={200: ThroughputSerializer, **refusals(400, 403)}
    )
    def post(self, request: Request) -> Response:
        """Say how fast a class runs on a flavor, in place of what was said before."""
        data = given(request, FIELDS)
        row = throughput_set(
            actor=viewer(request),
            job_class=data.get("job_class"),
            flavor=data.get("flavor"),
            throughput=data.get("throughput"),
            note=data.get("note", ""),
        )
        return Response(ThroughputSerializer(row).data)


@extend_schema_view(get=extend_schema(responses={200: ThroughputSerializer, **refusals(404)}))
class ThroughputDetail(GivenDetail[Throughput]):
    """One row."""

    serializer_class = ThroughputSerializer
    forget = staticmethod(throughput_delete)

    def get_queryset(self) -> QuerySet[Throughput]:
        return throughput_list()
