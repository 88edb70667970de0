"""Who may watch what: asked on connecting and again every few seconds while a page is open."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any
from uuid import UUID

from channels.auth import get_user
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User

from portal.live.tokens import user_of_token
from scheduler.models import Job
from scheduler.selectors.jobs import job_get
from telemetry.models import Cluster
from telemetry.selectors import cluster_get
from tenants.policies import is_platform_admin
from tenants.selectors import tenant_ids_visible


@dataclass(frozen=True, slots=True)
class Sight:
    """What a viewer may see at one time.

    Attributes:
        user: as in the database now.
        tenant_ids: of the tenants that they may see; None = all.
    """

    user: User
    tenant_ids: frozenset[int] | None


async def sight_of(scope: dict[str, Any]) -> Sight | None:
    """Return what the owner of a session or token may see now; None where it is nobody any more.

    Reads session, token and person anew: a session that was ended, a token that was revoked, a
    password that was changed and a person who was deactivated see nothing more.
    """
    if "token" in scope:
        owner = await database_sync_to_async(user_of_token)(scope["token"])
        return None if owner is None else await database_sync_to_async(_sight)(owner)
    session = scope.get("session")
    key = getattr(session, "session_key", None)
    if not key:
        return None
    store = import_module(settings.SESSION_ENGINE).SessionStore(key)
    user = await get_user({"session": store})
    if isinstance(user, AnonymousUser) or not user.is_active:
        return None
    found: Sight = await database_sync_to_async(_sight)(user)
    return found


def _sight(user: User) -> Sight:
    return Sight(user, None if is_platform_admin(user) else tenant_ids_visible(viewer=user))


def cluster_for(user: User, slug: str) -> Cluster | None:  # noqa: ARG001
    """Return the cluster; everybody who is signed in may see fleets."""
    try:
        return cluster_get(slug=slug)
    except Cluster.DoesNotExist:
        return None


def job_for(user: User, uid: UUID) -> Job | None:
    """Return the job if the person may see it."""
    try:
        return job_get(viewer=user, uid=str(uid))
    except Job.DoesNotExist:
        return None
