"""What every view starts from: a person who signed in, and things that they may see.

The middleware of `portal.accounts` lets nobody else through. What one may not see and what does
not exist answer alike: 404.
"""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest

from scheduler.models import Job
from scheduler.selectors.jobs import job_get
from telemetry.models import Cluster
from telemetry.selectors import fleet as telemetry
from tenants import policies
from tenants import selectors as tenancy
from tenants.errors import DomainError, InvalidValueError
from tenants.models import Tenant


class SignedInRequest(HttpRequest):
    """A request of somebody who signed in."""

    user: User
    cluster_on_page: Cluster | None
    """The cluster that the page is about, for the frame around it."""


def job_or_404(request: SignedInRequest, uid: UUID) -> Job:
    """Return a job that the viewer may see."""
    try:
        return job_get(viewer=request.user, uid=str(uid))
    except Job.DoesNotExist as exc:
        raise Http404 from exc


def tenant_or_404(request: SignedInRequest, slug: str) -> Tenant:
    """Return a tenant that the viewer may see."""
    try:
        return tenancy.tenant_get(viewer=request.user, slug=slug)
    except Tenant.DoesNotExist as exc:
        raise Http404 from exc


def cluster_or_404(request: SignedInRequest, slug: str) -> Cluster:
    """Return a cluster by name, and tell the frame of the page."""
    try:
        cluster = telemetry.cluster_get(slug=slug)
    except Cluster.DoesNotExist as exc:
        raise Http404 from exc
    request.cluster_on_page = cluster
    return cluster


def require_platform_admin(request: SignedInRequest) -> None:
    """Refuse everybody but those who run the whole portal.

    Raises:
        PermissionDenied: the page says so; that such a page exists is no secret.
    """
    if not policies.is_platform_admin(request.user):
        raise PermissionDenied


def refused(request: SignedInRequest, error: DomainError) -> None:
    """Show what a service refused, on the page that comes next."""
    if isinstance(error, InvalidValueError):
        for texts in error.fields.values():
            for text in texts:
                messages.error(request, text)
    else:
        messages.error(request, str(error))
