"""One shape for every refusal: {code, message, fields}."""

import logging
import uuid
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import (
    ObjectDoesNotExist,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.db import OperationalError
from django.http import Http404, UnreadablePostError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from redis.exceptions import RedisError
from rest_framework import exceptions
from rest_framework.response import Response

from portal import reasons
from portal.api.v1.auth import BodyTooLargeError
from scheduler.execute.base import ExecutorUnavailableError
from scheduler.submission import JobRefusedError
from tenants.errors import ConflictError, DomainError, InvalidValueError, NotAllowedError

logger = logging.getLogger(__name__)

UNAVAILABLE_RETRY_S = 5


def handle(exc: Exception, context: Mapping[str, Any]) -> Response:
    """Return the answer to any exception of a view; nothing of the inside shows."""
    if isinstance(exc, DomainError):
        return _domain(exc)
    exc = _as_api_error(exc)
    if isinstance(exc, exceptions.APIException):
        return _api(exc)
    if isinstance(exc, (OperationalError, RedisError)):
        logger.error("database or broker away", exc_info=exc)
        return _api(AwayError())
    request_id = uuid.uuid4().hex
    view = type(context.get("view")).__name__
    logger.error("request failed request_id=%s view=%s", request_id, view, exc_info=exc)
    body = _body("internal_error", _("Something went wrong here; it was noted."))
    return Response({**body, "request_id": request_id}, status=500)


def _as_api_error(exc: Exception) -> Exception:
    if isinstance(exc, (Http404, ObjectDoesNotExist)):
        return exceptions.NotFound(_("There is no such object, or you may not see it."))
    if isinstance(exc, PermissionDenied):
        return exceptions.PermissionDenied()
    if isinstance(exc, RequestDataTooBig):
        return BodyTooLargeError()
    if isinstance(exc, (SuspiciousOperation, UnreadablePostError)):
        return exceptions.ParseError(_("The request can't be read."))
    return exc


def _domain(exc: DomainError) -> Response:
    if isinstance(exc, JobRefusedError):
        return _refused(exc)
    if isinstance(exc, InvalidValueError):
        first = next((texts[0] for texts in exc.fields.values() if texts), _("Invalid value."))
        message = first if len(exc.fields) == 1 else _("Several values can't be taken; see fields.")
        return Response(_body(exc.code, message, exc.fields), status=400)
    status = {NotAllowedError: 403, ConflictError: 409}.get(type(exc), 400)
    return Response(_body(exc.code, str(exc)), status=status)


def _refused(exc: JobRefusedError) -> Response:
    message = reasons.sentence(exc.pending)
    fields = {name: [message] for name in reasons.fields_at_fault(exc.pending)}
    body = _body(exc.code, message, fields)
    return Response({**body, "pending": reasons.pending_view(exc.pending)}, status=400)


def _api(exc: exceptions.APIException) -> Response:
    headers: dict[str, str] = {}
    auth_header, wait_s = getattr(exc, "auth_header", None), getattr(exc, "wait", None)
    if auth_header:
        headers["WWW-Authenticate"] = auth_header
    if wait_s is not None:
        headers["Retry-After"] = str(int(wait_s) + 1)
    if isinstance(exc.detail, (list, dict)):
        fields = _fields(exc.detail)
        first = next((texts[0] for texts in fields.values() if texts), _("Invalid value."))
        return Response(_body("invalid", first, fields), exc.status_code, headers=headers)
    code = str(getattr(exc.detail, "code", exc.default_code))
    return Response(_body(code, str(exc.detail)), exc.status_code, headers=headers)


def _fields(detail: Any) -> dict[str, list[str]]:
    if isinstance(detail, dict):
        return {
            str(name): [str(text) for text in texts] if isinstance(texts, list) else [str(texts)]
            for name, texts in detail.items()
        }
    return {"": [str(text) for text in detail]}


def _body(code: str, message: str, fields: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"code": code, "message": message, "fields": fields or {}}


class AwayError(exceptions.APIException):
    """The database or the broker does not answer now."""

    status_code = 503
    default_code = "unavailable"
    default_detail = gettext_lazy(
        "Kilter can't reach its database or broker; try again in a moment."
    )
    wait = UNAVAILABLE_RETRY_S


class ExecutorAwayError(exceptions.APIException):
    """What runs the job does not answer now."""

    status_code = 503
    default_code = "executor_unavailable"

    def __init__(self, why: ExecutorUnavailableError) -> None:
        super().__init__(_("The executor does not answer: %(why)s") % {"why": why})
        self.wait = UNAVAILABLE_RETRY_S
