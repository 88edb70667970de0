"""What the cycles said of jobs."""

import django_filters
from django.db.models import QuerySet
from rest_framework import generics, serializers

from portal import reasons
from scheduler.core.reasons import WaitReason
from scheduler.models import Decision
from scheduler.selectors import jobs as selectors

VERBS = [(verb, verb) for verb in ("start", "hold", "preempt", "resize")]


class DecisionSerializer(serializers.Serializer[Decision]):
    """What one cycle said of one job."""

    id = serializers.IntegerField()
    cycle = serializers.IntegerField(source="cycle_id")
    at = serializers.DateTimeField(source="cycle.at")
    cluster = serializers.SlugField(source="cycle.cluster.slug")
    strategy = serializers.CharField(source="cycle.strategy")
    job = serializers.UUIDField(source="job_id")
    job_name = serializers.CharField(source="job.name")
    tenant = serializers.SlugField(source="job.tenant.slug")
    verb = serializers.ChoiceField(choices=VERBS)
    code = serializers.CharField(help_text="Why it waits or is evicted; empty for a start.")
    message = serializers.SerializerMethodField()
    evidence = serializers.DictField()
    score = serializers.FloatField(allow_null=True)
    priority_parts = serializers.DictField(child=serializers.FloatField())
    expected_start_p50 = serializers.DateTimeField(allow_null=True)
    expected_start_p90 = serializers.DateTimeField(allow_null=True)

    def get_message(self, decision: Decision) -> str:
        """Return the decision as a sentence."""
        if decision.verb == "start":
            return reasons.end_sentence("placed")
        if decision.verb != "hold":
            return reasons.eviction_sentence(decision.code)
        return reasons.sentence({"code": decision.code, "evidence": decision.evidence})


class DecisionFilter(django_filters.FilterSet):  # type: ignore[misc]
    """What a list of decisions can be narrowed to."""

    job = django_filters.UUIDFilter(field_name="job_id")
    tenant = django_filters.CharFilter(field_name="job__tenant__slug")
    cluster = django_filters.CharFilter(field_name="cycle__cluster__slug")
    verb = django_filters.ChoiceFilter(choices=VERBS)
    code = django_filters.ChoiceFilter(choices=[(str(c), str(c)) for c in WaitReason])


class DecisionList(generics.ListAPIView[Decision]):
    """The decisions on the jobs that you may see, newest first."""

    serializer_class = DecisionSerializer
    filterset_class = DecisionFilter

    def get_queryset(self) -> QuerySet[Decision]:
        return selectors.decision_list(viewer=self.request.user)
