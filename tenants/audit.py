"""Names the actor in audit rows.

The audit log's own middleware knows only people with a session; those who come with a token, and
commands, would leave rows without a name. Services therefore say who acts.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from auditlog.models import LogEntry
from django.contrib.auth.models import User
from django.db.models.signals import pre_save
from django.dispatch import receiver

_actor: ContextVar[User | None] = ContextVar("tenants_audit_actor", default=None)


@contextmanager
def acting(actor: User) -> Iterator[None]:
    """Name `actor` in all audit rows that are written inside."""
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)


@receiver(pre_save, sender=LogEntry, dispatch_uid="tenants.audit")
def _name_actor(sender: type[LogEntry], instance: LogEntry, **_kwargs: Any) -> None:  # noqa: ARG001
    actor = _actor.get()
    if actor is not None and instance.actor_id is None:
        instance.actor = actor
        instance.actor_email = actor.email or None
