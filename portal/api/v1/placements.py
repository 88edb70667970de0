"""What jobs hold and held."""

from typing import Any

import django_filters
from django.db.models import QuerySet
from rest_framework import generics, serializers

from scheduler.models import Placement
from scheduler.selectors import jobs as selectors


class DeviceHoldSerializer(serializers.Serializer[Any]):
    """A hold on one device."""

    uid = serializers.CharField(source="device.uid")
    index = serializers.IntegerField(source="device.index")
    gpu_milli = serializers.IntegerField()
    memory_mib = serializers.IntegerField()


class ReplicaHoldSerializer(serializers.Serializer[Any]):
    """What one replica holds of a node."""

    index = serializers.IntegerField()
    node = serializers.CharField(source="node.name")
    cpu_milli = serializers.IntegerField()
    memory_mib = serializers.IntegerField()
    devices = DeviceHoldSerializer(source="device_holds", many=True)


class PlacementSerializer(serializers.Serializer[Placement]):
    """A job's hold on nodes and devices, for one attempt."""

    id = serializers.IntegerField()
    job = serializers.UUIDField(source="job_id")
    attempt = serializers.IntegerField()
    tenant = serializers.SlugField(source="job.tenant.slug")
    cluster = serializers.SlugField(source="cluster.slug")
    flavor = serializers.CharField()
    score = serializers.FloatField()
    priority_parts = serializers.DictField(child=serializers.FloatField())
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    released_at = serializers.DateTimeField(allow_null=True, help_text="null = held now.")
    checkpointed_at = serializers.DateTimeField(
        allow_null=True, help_text="Of its newest checkpoint; null = none was seen."
    )
    replicas = ReplicaHoldSerializer(many=True)


class PlacementFilter(django_filters.FilterSet):  # type: ignore[misc]
    """What a list of placements can be narrowed to."""

    job = django_filters.UUIDFilter(field_name="job_id")
    tenant = django_filters.CharFilter(field_name="job__tenant__slug")
    cluster = django_filters.CharFilter(field_name="cluster__slug")
    open = django_filters.BooleanFilter(field_name="released_at", lookup_expr="isnull")


class PlacementList(generics.ListAPIView[Placement]):
    """The placements of the jobs that you may see, newest first."""

    serializer_class = PlacementSerializer
    filterset_class = PlacementFilter

    def get_queryset(self) -> QuerySet[Placement]:
        return selectors.placement_list(viewer=self.request.user)
