"""How fast classes of jobs run on flavors, as runs have shown."""

import django_filters
from django.db.models import QuerySet
from rest_framework import generics, serializers

from portal.api.v1.permissions import viewer
from scheduler.models import LearntThroughput
from scheduler.selectors.throughputs import learnt_list


class LearntThroughputSerializer(serializers.Serializer[LearntThroughput]):
    """How fast a tenant's class of jobs runs on a flavor, learnt from its own runs."""

    tenant = serializers.SlugField(source="tenant.slug")
    job_class = serializers.CharField()
    flavor = serializers.CharField()
    throughput = serializers.FloatField(
        help_text="Against the fastest flavor that was compared: more than 0, at most 1."
    )
    work_count = serializers.IntegerField(
        help_text="Different works that ran there and on another flavor."
    )
    run_count = serializers.IntegerField(help_text="Runs of them there.")
    last_run_at = serializers.DateTimeField(help_text="When the newest run there ended.")
    overruled = serializers.BooleanField(
        help_text="An admin said something of the class (throughputs), which counts instead."
    )


class LearntThroughputFilter(django_filters.FilterSet):  # type: ignore[misc]
    """What a list of learnt throughputs can be narrowed to."""

    tenant = django_filters.CharFilter(field_name="tenant__slug")
    job_class = django_filters.CharFilter()
    flavor = django_filters.CharFilter()


class LearntThroughputList(generics.ListAPIView[LearntThroughput]):
    """What runs of the tenants that you may see have shown."""

    serializer_class = LearntThroughputSerializer
    filterset_class = LearntThroughputFilter

    def get_queryset(self) -> QuerySet[LearntThroughput]:
        return learnt_list(viewer=viewer(self.request))
