"""Nodes; who runs the portal cordons, drains and opens them."""

from collections.abc import Callable

import django_filters
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1 import clock
from portal.api.v1.permissions import given, viewer
from portal.api.v1.schema import refusals
from telemetry import selectors, services
from telemetry.choices import NodeState, Scheduling
from telemetry.models import Node
from tenants import policies
from tenants.audit import acting
from tenants.errors import InvalidValueError, NotAllowedError

ACTIONS: dict[str, Callable[..., Node]] = {
    "cordon": services.node_cordon,
    "drain": services.node_drain,
    "uncordon": services.node_uncordon,
}


class NodeSerializer(serializers.Serializer[Node]):
    """One machine of a cluster."""

    id = serializers.IntegerField()
    cluster = serializers.SlugField(source="cluster.slug")
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=NodeState.choices)
    scheduling = serializers.ChoiceField(choices=Scheduling.choices)
    scheduling_reason = serializers.CharField()
    cpu_milli = serializers.IntegerField()
    memory_mib = serializers.IntegerField()
    allocated_cpu_milli = serializers.IntegerField()
    allocated_memory_mib = serializers.IntegerField()
    cpu_utilised_frac = serializers.FloatField(allow_null=True)
    memory_used_mib = serializers.IntegerField(allow_null=True)
    labels = serializers.DictField(child=serializers.CharField())
    taints = serializers.ListField(child=serializers.CharField())
    notes = serializers.DictField(child=serializers.CharField())
    device_count = serializers.SerializerMethodField()
    seen_at = serializers.DateTimeField(allow_null=True)

    def get_device_count(self, node: Node) -> int:
        """Return how many devices it has."""
        return len(node.devices.all())


class NodeActionSerializer(serializers.Serializer[Node]):
    """Why; people read it beside the node."""

    reason = serializers.CharField(required=False, max_length=500)


class NodeFilter(django_filters.FilterSet):  # type: ignore[misc]
    """What a list of nodes can be narrowed to."""

    cluster = django_filters.CharFilter(field_name="cluster__slug")
    name = django_filters.CharFilter(lookup_expr="icontains")
    state = django_filters.ChoiceFilter(choices=NodeState.choices)
    scheduling = django_filters.ChoiceFilter(choices=Scheduling.choices)


class NodeList(generics.ListAPIView[Node]):
    """The nodes; everybody who is signed in may see them."""

    serializer_class = NodeSerializer
    filterset_class = NodeFilter

    def get_queryset(self) -> QuerySet[Node]:
        return selectors.node_list()


class NodeDetail(APIView):
    """One node."""

    @extend_schema(responses={200: NodeSerializer, **refusals(404)})
    def get(self, request: Request, pk: int) -> Response:  # noqa: ARG002
        """Return the node."""
        return Response(NodeSerializer(selectors.node_list().get(pk=pk)).data)


class NodeAction(APIView):
    """Says what a node may take."""

    action = "cordon"

    @extend_schema(
        request=NodeActionSerializer, responses={200: NodeSerializer, **refusals(400, 403, 404)}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Cordon: nothing new. Drain: nothing new, and what runs moves. Uncordon: jobs again."""
        reason = given(request, ("reason",)).get("reason", "")
        if not isinstance(reason, str):
            raise InvalidValueError.of("reason", _("Write a text."))
        node = selectors.node_list().get(pk=pk)
        if not policies.may_operate_nodes(request.user):
            raise NotAllowedError(_("Only who runs the portal may operate nodes."))
        actor = viewer(request)
        with acting(actor):
            ACTIONS[self.action](
                actor_name=actor.get_username(), node=node, reason=reason, now=clock.now()
            )
        return Response(NodeSerializer(selectors.node_list().get(pk=pk)).data)
