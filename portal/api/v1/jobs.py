"""Jobs: submit, look at, cancel, submit again; their log and events."""

import re
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import django_filters
from django.db.models import QuerySet
from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import generics
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from portal.api.v1 import clock
from portal.api.v1.errors import ExecutorAwayError
from portal.api.v1.job_shapes import (
    DryRunSerializer,
    JobEventSerializer,
    JobRequestSerializer,
    JobSerializer,
    dry_run_view,
)
from portal.api.v1.permissions import body, viewer
from portal.api.v1.schema import IDEMPOTENCY_KEY, refusals
from portal.api.v1.throttles import DryRunThrottle, SubmitThrottle
from scheduler.choices import JobKind, JobState
from scheduler.execute.base import ExecutorUnavailableError
from scheduler.models import Job, JobEvent
from scheduler.selectors import jobs as selectors
from scheduler.services.jobs import job_cancel
from scheduler.submission import job_as_data, job_ask, job_dry_run
from tenants import policies
from tenants.errors import InvalidValueError, NotAllowedError

LOG_LIMIT_BYTES = 1024 * 1024
YES, NO = frozenset({"true", "1", "yes"}), frozenset({"", "false", "0", "no"})


class JobFilter(django_filters.FilterSet):  # type: ignore[misc]
    """What a list of jobs can be narrowed to."""

    state = django_filters.MultipleChoiceFilter(choices=JobState.choices)
    kind = django_filters.MultipleChoiceFilter(choices=JobKind.choices)
    tenant = django_filters.CharFilter(field_name="tenant__slug")
    cluster = django_filters.CharFilter(field_name="cluster__slug")
    owner = django_filters.CharFilter(field_name="owner__username")
    name = django_filters.CharFilter(lookup_expr="icontains")
    submitted_after = django_filters.IsoDateTimeFilter(field_name="submitted_at", lookup_expr="gte")
    submitted_before = django_filters.IsoDateTimeFilter(field_name="submitted_at", lookup_expr="lt")
    ordering = django_filters.OrderingFilter(
        fields=["submitted_at", "started_at", "finished_at", "name", "state"]
    )

    class Meta:
        model = Job
        fields: Sequence[str] = ()


class JobList(generics.ListAPIView[Job]):
    """The jobs that you may see; POST asks for one more."""

    serializer_class = JobSerializer
    filterset_class = JobFilter

    def get_queryset(self) -> QuerySet[Job]:
        return selectors.job_list(viewer=self.request.user)

    def get_throttles(self) -> list[BaseThrottle]:
        if self.request.method != "POST":
            return []
        dry = self.request.query_params.get("dry_run", "").lower() not in NO
        return [DryRunThrottle() if dry else SubmitThrottle()]

    @extend_schema(
        request=JobRequestSerializer,
        parameters=[
            IDEMPOTENCY_KEY,
            OpenApiParameter(
                "dry_run", bool, description="Say what would become of it; change nothing."
            ),
        ],
        responses={
            201: JobSerializer,
            200: OpenApiResponse(
                DryRunSerializer,
                description="With dry_run the estimate; the first job where the key repeats.",
            ),
            **refusals(400, 413, 415, 429),
        },
    )
    def post(self, request: Request) -> Response:
        """Queue a job, or say what would become of it."""
        if _flag(request, "dry_run"):
            _asked, estimate = job_dry_run(
                actor=viewer(request), data=body(request), now=clock.now()
            )
            return Response(dry_run_view(estimate))
        job, is_new = job_ask(
            actor=viewer(request),
            data=body(request),
            now=clock.now(),
            idempotency_key=request.headers.get("Idempotency-Key"),
        )
        return submitted(request, job, is_new)


def submitted(request: Request, job: Job, is_new: bool) -> Response:
    """Return the answer to a submission: 201, or 200 where the key repeats."""
    body = JobSerializer(job, context={"request": request}).data
    place = reverse("api:job", kwargs={"uid": job.pk}, request=request)
    return Response(body, status=201 if is_new else 200, headers={"Location": place})


class JobDetail(APIView):
    """One job."""

    @extend_schema(responses={200: JobSerializer, **refusals(404)})
    def get(self, request: Request, uid: UUID) -> Response:
        """Return the job with all its fields, and why it waits while it does."""
        return Response(JobSerializer(selectors.job_get(viewer=request.user, uid=str(uid))).data)


class JobCancel(APIView):
    """Cancels a job."""

    @extend_schema(request=None, responses={200: JobSerializer, **refusals(403, 404, 409)})
    def post(self, request: Request, uid: UUID) -> Response:
        """Cancel the job: at once while it waits, by stopping it while it runs."""
        job = selectors.job_get(viewer=request.user, uid=str(uid))
        job_cancel(actor=viewer(request), job=job, now=clock.now())
        return Response(JobSerializer(selectors.job_get(viewer=request.user, uid=str(uid))).data)


class JobResubmit(APIView):
    """Asks for the same again."""

    throttle_classes = [SubmitThrottle]

    @extend_schema(
        request=None,
        parameters=[IDEMPOTENCY_KEY],
        responses={201: JobSerializer, 200: JobSerializer, **refusals(400, 403, 404, 429)},
    )
    def post(self, request: Request, uid: UUID) -> Response:
        """Queue a new job that asks for what this one asked for, in your own name."""
        old = selectors.job_get(viewer=request.user, uid=str(uid))
        if not policies.may_submit(request.user, old.tenant):
            raise NotAllowedError(
                _("You may not submit jobs to %(tenant)s.") % {"tenant": old.tenant.slug}
            )
        job, is_new = job_ask(
            actor=viewer(request),
            data=job_as_data(old),
            now=clock.now(),
            idempotency_key=request.headers.get("Idempotency-Key"),
            resubmit_of=old,
        )
        return submitted(request, job, is_new)


class JobEvents(generics.ListAPIView[JobEvent]):
    """What happened to a job, oldest first."""

    serializer_class = JobEventSerializer
    filter_backends: Sequence[Any] = ()

    def get_queryset(self) -> QuerySet[JobEvent]:
        job = selectors.job_get(viewer=self.request.user, uid=str(self.kwargs["uid"]))
        return selectors.job_events(viewer=self.request.user, job=job)


class JsonForErrors(BaseContentNegotiation):
    """Takes any Accept: a log is text whatever is asked for, a refusal JSON."""

    def select_parser(
        self,
        request: Request,  # noqa: ARG002
        parsers: Iterable[BaseParser],
    ) -> BaseParser | None:
        """Return the first parser."""
        return next(iter(parsers), None)

    def select_renderer(
        self,
        request: Request,  # noqa: ARG002
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,  # noqa: ARG002
    ) -> tuple[BaseRenderer, str]:
        """Return the first renderer, the one of JSON."""
        first = next(iter(renderers))
        return first, str(first.media_type)


class JobLog(APIView):
    """What a job wrote to standard output and error."""

    content_negotiation_class = JsonForErrors

    @extend_schema(
        parameters=[
            OpenApiParameter("since", int, description="First byte wanted; 0 = from the start.")
        ],
        responses={(200, "text/plain"): OpenApiTypes.STR, **refusals(400, 404, 503)},
    )
    def get(self, request: Request, uid: UUID) -> HttpResponse:
        """Return at most 1 MiB from byte `since` on, of the present or last attempt.

        X-Log-Size says how many bytes there are, X-Log-Next where to go on, X-Log-Attempt whose
        output it is: each attempt's begins at byte 0.
        """
        since = _since(request)
        job = selectors.job_get(viewer=request.user, uid=str(uid))
        try:
            chunk = selectors.job_log(job=job, since=since, limit=LOG_LIMIT_BYTES)
        except ExecutorUnavailableError as away:
            raise ExecutorAwayError(away) from away
        response = HttpResponse(chunk.data, content_type="text/plain; charset=utf-8")
        response["X-Log-Size"] = str(chunk.size)
        response["X-Log-Next"] = str(chunk.since + len(chunk.data))
        response["X-Log-Attempt"] = str(job.attempt)
        response["X-Log-Truncated"] = "true" if chunk.truncated else "false"
        response["X-Content-Type-Options"] = "nosniff"
        response["Cache-Control"] = "no-store"
        return response


def _flag(request: Request, name: str) -> bool:
    value = request.query_params.get(name, "").lower()
    if value in YES or value in NO:
        return value in YES
    raise InvalidValueError.of(name, _("Write true or false."))


def _since(request: Request) -> int:
    text = request.query_params.get("since", "0")
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise InvalidValueError.of("since", _("Write the number of a byte, such as 0 or 4096."))
    return int(text)
