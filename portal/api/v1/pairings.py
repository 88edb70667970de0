"""How fast classes of jobs run beside each other on one device."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.v1.given import GivenDetail
from portal.api.v1.permissions import AdminOrReadOnly, given, viewer
from portal.api.v1.schema import refusals
from scheduler.models import Pairing
from scheduler.selectors.pairings import pairing_list
from scheduler.services.pairings import pairing_delete, pairing_set

FIELDS = ("class_a", "class_b", "throughput_a", "throughput_b", "note")


class PairingSerializer(serializers.Serializer[Pairing]):
    """How fast two classes of jobs run on one device, against alone on it."""

    id = serializers.IntegerField(read_only=True)
    class_a = serializers.CharField(max_length=80, help_text="An interference class.")
    class_b = serializers.CharField(max_length=80, help_text="Another, or the same.")
    throughput_a = serializers.FloatField(help_text="Of the first beside the second, 0 to 1.")
    throughput_b = serializers.FloatField(help_text="Of the second beside the first, 0 to 1.")
    note = serializers.CharField(required=False, allow_blank=True, max_length=200)
    shares = serializers.BooleanField(
        read_only=True, help_text="They may share a device: both keep at least one half."
    )


class PairingList(generics.ListAPIView[Pairing]):
    """What was said of pairs of classes; POST says one, which only an admin may."""

    permission_classes = [AdminOrReadOnly]
    serializer_class = PairingSerializer

    def get_queryset(self) -> QuerySet[Pairing]:
        return pairing_list()

    @extend_schema(
        request=PairingSerializer, responses={200: PairingSerializer, **refusals(400, 403)}
    )
    def post(self, request: Request) -> Response:
        """Say how fast two classes run beside each other, in place of what was said before."""
        data = given(request, FIELDS)
        row = pairing_set(
            actor=viewer(request),
            class_a=data.get("class_a"),
            class_b=data.get("class_b"),
            throughput_a=data.get("throughput_a"),
            throughput_b=data.get("throughput_b"),
            note=data.get("note", ""),
        )
        return Response(PairingSerializer(row).data)


@extend_schema_view(get=extend_schema(responses={200: PairingSerializer, **refusals(404)}))
class PairingDetail(GivenDetail[Pairing]):
    """One row."""

    serializer_class = PairingSerializer
    forget = staticmethod(pairing_delete)

    def get_queryset(self) -> QuerySet[Pairing]:
        return pairing_list()
