"""What was held and what was busy, exact, over a window."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api.v1 import clock
from portal.api.v1.schema import refusals
from scheduler.selectors.usage import MILLI_US_PER_DEVICE_HOUR, UsageRow, usage_list
from telemetry.selectors import cluster_get
from tenants.errors import InvalidValueError

DEFAULT_DAYS = 30
YEARS = (1970, 9998)
"""Python, PostgreSQL and zones do not agree on times much outside."""


class UsageRowSerializer(serializers.Serializer[UsageRow]):
    """One tenant's use of one flavor; allocated = utilised + idle + unmeasured."""

    tenant = serializers.SlugField()
    flavor = serializers.CharField()
    allocated_h = serializers.FloatField(help_text="Device-hours, core-hours for cpu.")
    utilised_h = serializers.FloatField()
    idle_h = serializers.FloatField()
    unmeasured_h = serializers.FloatField()
    allocated_milli_us = serializers.IntegerField(help_text="Exact: thousandths x microseconds.")
    utilised_milli_us = serializers.IntegerField()
    idle_milli_us = serializers.IntegerField()
    unmeasured_milli_us = serializers.IntegerField()
    cu_hours = serializers.FloatField(help_text="Of known models only.")
    unknown_cu = serializers.BooleanField(help_text="Some of it is of an unknown model.")


class UsageSerializer(serializers.Serializer[Any]):
    """Use per tenant and flavor in [since, until)."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    count = serializers.IntegerField()
    results = UsageRowSerializer(many=True)


class UsageView(APIView):
    """What the tenants that you may see used."""

    @extend_schema(
        parameters=[
            OpenApiParameter("since", datetime, description="ISO 8601; 30 days ago if missing."),
            OpenApiParameter("until", datetime, description="ISO 8601; now if missing."),
            OpenApiParameter("cluster", str, description="Slug; all if missing."),
        ],
        responses={200: UsageSerializer, **refusals(400, 404)},
    )
    def get(self, request: Request) -> Response:
        """Return use per tenant and flavor."""
        now = clock.now()
        until = min(_moment(request, "until") or now, now)  # nobody holds anything in the future
        since = _moment(request, "since") or until - timedelta(days=DEFAULT_DAYS)
        if since >= until:
            raise InvalidValueError.of("since", _("It is not before until."))
        slug = request.query_params.get("cluster")
        cluster = cluster_get(slug=slug).slug if slug else None
        rows = usage_list(viewer=request.user, since=since, until=until, cluster=cluster)
        body = {
            "since": since,
            "until": until,
            "count": len(rows),
            "results": [_row(row) for row in rows],
        }
        return Response(UsageSerializer(body).data)


def _row(row: UsageRow) -> dict[str, Any]:
    exact = {
        name: getattr(row, f"{name}_milli_us")
        for name in ("allocated", "utilised", "idle", "unmeasured")
    }
    return {
        "tenant": row.tenant,
        "flavor": row.flavor,
        **{f"{name}_milli_us": amount for name, amount in exact.items()},
        **{f"{name}_h": amount / MILLI_US_PER_DEVICE_HOUR for name, amount in exact.items()},
        "cu_hours": row.cu_hours,
        "unknown_cu": row.unknown_cu,
    }


def _moment(request: Request, name: str) -> datetime | None:
    text = request.query_params.get(name, "")
    if not text:
        return None
    try:
        found = parse_datetime(text) if text.isascii() else None
    except ValueError:
        found = None
    if found is None or not YEARS[0] <= found.year <= YEARS[1]:
        raise InvalidValueError.of(
            name, _("Write a time in ISO 8601, such as 2026-01-31T08:00:00Z.")
        )
    return found if found.tzinfo else found.replace(tzinfo=UTC)
