"""Clusters, and how decisions are made on each."""

import django_filters
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1.permissions import AdminOrReadOnly, given, viewer
from portal.api.v1.schema import refusals
from scheduler.choices import STRATEGY_NAMES, PlacementScore, Solver
from scheduler.models import SchedulingPolicy
from scheduler.selectors.policies import policy_get
from scheduler.services.policy import PREEMPTION_FLAGS, PREEMPTION_MOST, policy_update
from scheduler.weights import GROUPS, Values, in_force
from telemetry import selectors
from telemetry.choices import ClusterKind
from telemetry.models import Cluster

POLICY_FIELDS = ("strategy", "budget_s", "placement", *PREEMPTION_FLAGS, *PREEMPTION_MOST)


class ClusterSerializer(serializers.Serializer[Cluster]):
    """A fleet with one scheduler."""

    slug = serializers.SlugField()
    name = serializers.CharField()
    kind = serializers.CharField(help_text="local or simulated.")
    enabled = serializers.BooleanField()
    simulated = serializers.BooleanField(
        source="is_simulated", help_text="What it shows is invented."
    )
    clock_scale = serializers.FloatField(help_text="Simulated seconds per real second.")
    sampled_at = serializers.DateTimeField(allow_null=True)
    sense_error = serializers.CharField(help_text="Why sensing failed last time.")


def _group(name: str, what: str) -> serializers.DictField:
    defaults = ", ".join(f"{key} {bound.default:g}" for key, bound in GROUPS[name].items())
    return serializers.DictField(
        child=serializers.FloatField(allow_null=True, min_value=0),
        required=False,
        allow_null=True,
        help_text=f"{what} Defaults: {defaults}. Null brings a default back.",
    )


class WeightsSerializer(serializers.Serializer[Values]):
    """The numbers that tune a cluster's decisions, those in force."""

    order = _group("order", "Weights of the queue order; age_max_s in seconds.")
    objective = _group("objective", "Weights of the optimising strategy.")
    qos = _group("qos", "Quality of service in 0..1 by job kind.")
    queue = _group("queue", "How far down the queue is planned; patience_s in seconds.")

    def to_representation(self, instance: object) -> Values:
        """Return every number, where only those that differ from the defaults are stored."""
        return in_force(instance)


class PolicySerializer(serializers.Serializer[SchedulingPolicy]):
    """How decisions are made on a cluster."""

    strategy = serializers.ChoiceField(choices=STRATEGY_NAMES, required=False)
    budget_s = serializers.FloatField(
        required=False, help_text="Seconds that a decision may take, up to 60."
    )
    placement = serializers.ChoiceField(choices=PlacementScore.values, required=False)
    kinds = serializers.DictField(
        child=serializers.ChoiceField(choices=STRATEGY_NAMES),
        required=False,
        help_text="Job kind -> strategy, of the kinds that another strategy decides.",
    )
    shadow = serializers.ChoiceField(
        choices=STRATEGY_NAMES,
        required=False,
        allow_blank=True,
        help_text="Strategy that decides beside, for comparison only; empty: none.",
    )
    solver = serializers.ChoiceField(choices=Solver.values, required=False)
    power_cap_w = serializers.FloatField(
        required=False,
        allow_null=True,
        help_text="Watts of board power that may be allocated; null: no cap.",
    )
    weights = WeightsSerializer(
        required=False, allow_null=True, help_text="What is not named stays; null: all defaults."
    )
    preempt_by_reclaim = serializers.BooleanField(
        required=False, help_text="Tenants may claim their quota back."
    )
    preempt_by_fair_share = serializers.BooleanField(
        required=False,
        help_text="A tenant that borrows may take from one that borrows more for its weight.",
    )
    preempt_by_priority = serializers.BooleanField(
        required=False, help_text="Higher priority may evict lower."
    )
    preempt_delay_s = serializers.FloatField(
        required=False, min_value=0, help_text="Wait before anybody is evicted for a job."
    )
    preempt_min_runtime_s = serializers.FloatField(
        required=False, min_value=0, help_text="Nobody is evicted who ran for less."
    )
    preempt_grace_s = serializers.FloatField(
        required=False, min_value=0, help_text="From the order to end to the end."
    )
    preempt_most_evictions = serializers.IntegerField(
        required=False, min_value=0, help_text="Who was evicted so often is left alone."
    )


class ClusterFilter(django_filters.FilterSet):  # type: ignore[misc]
    """What a list of clusters can be narrowed to."""

    enabled = django_filters.BooleanFilter()
    kind = django_filters.ChoiceFilter(choices=ClusterKind.choices)


class ClusterList(generics.ListAPIView[Cluster]):
    """The clusters; everybody who is signed in may see them."""

    serializer_class = ClusterSerializer
    filterset_class = ClusterFilter
    queryset = selectors.cluster_list()


class ClusterDetail(APIView):
    """One cluster."""

    @extend_schema(responses={200: ClusterSerializer, **refusals(404)})
    def get(self, request: Request, slug: str) -> Response:  # noqa: ARG002
        """Return the cluster."""
        return Response(ClusterSerializer(selectors.cluster_get(slug=slug)).data)


class ClusterPolicy(APIView):
    """How decisions are made on a cluster; who runs the portal may change it."""

    permission_classes = [AdminOrReadOnly]

    @extend_schema(responses={200: PolicySerializer, **refusals(404)})
    def get(self, request: Request, slug: str) -> Response:  # noqa: ARG002
        """Return the policy."""
        cluster = selectors.cluster_get(slug=slug)
        return Response(PolicySerializer(policy_get(cluster=cluster)).data)

    @extend_schema(
        request=PolicySerializer, responses={200: PolicySerializer, **refusals(400, 403, 404)}
    )
    def patch(self, request: Request, slug: str) -> Response:
        """Change what is named; the next cycle obeys."""
        wanted = given(request, tuple(PolicySerializer().fields))
        cluster = selectors.cluster_get(slug=slug)
        row = policy_update(actor=viewer(request), cluster=cluster, **wanted)
        return Response(PolicySerializer(row).data)
