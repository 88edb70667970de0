"""Accelerators."""

import django_filters
from django.db.models import QuerySet
from rest_framework import generics, serializers

from telemetry import selectors
from telemetry.choices import DeviceHealth
from telemetry.models import Device


class DeviceSerializer(serializers.Serializer[Device]):
    """One accelerator of a node."""

    id = serializers.IntegerField()
    uid = serializers.CharField()
    cluster = serializers.SlugField(source="node.cluster.slug")
    node = serializers.CharField(source="node.name")
    index = serializers.IntegerField()
    vendor = serializers.CharField()
    model = serializers.CharField()
    flavor = serializers.CharField()
    memory_mib = serializers.IntegerField(help_text="0 = unknown.")
    compute_units = serializers.FloatField(
        allow_null=True, help_text="TFLOPS of dense FP16; null = unknown model."
    )
    power_limit_w = serializers.FloatField(allow_null=True)
    health = serializers.ChoiceField(choices=DeviceHealth.choices)
    health_note = serializers.CharField()
    throttled = serializers.BooleanField(help_text="Its hardware slows it down for heat.")
    numa_node = serializers.IntegerField(help_text="-1 = unknown.")
    nic = serializers.CharField(help_text="Nearest network card; empty = unknown.")
    mig_profile = serializers.CharField()
    allocated_milli = serializers.IntegerField(help_text="Held, of 1000.")
    allocated_memory_mib = serializers.IntegerField()
    utilised_frac = serializers.FloatField(allow_null=True)
    memory_used_mib = serializers.IntegerField(allow_null=True)
    power_w = serializers.FloatField(allow_null=True)
    temperature_c = serializers.FloatField(allow_null=True)
    seen_at = serializers.DateTimeField(allow_null=True)


class DeviceFilter(django_filters.FilterSet):  # type: ignore[misc]
    """What a list of devices can be narrowed to."""

    cluster = django_filters.CharFilter(field_name="node__cluster__slug")
    node = django_filters.CharFilter(field_name="node__name")
    flavor = django_filters.CharFilter()
    vendor = django_filters.CharFilter()
    health = django_filters.ChoiceFilter(choices=DeviceHealth.choices)


class DeviceList(generics.ListAPIView[Device]):
    """The devices; everybody who is signed in may see them."""

    serializer_class = DeviceSerializer
    filterset_class = DeviceFilter

    def get_queryset(self) -> QuerySet[Device]:
        return selectors.device_list()
