"""What templates say of jobs."""

from collections.abc import Mapping
from typing import Any

from django import template

from portal import reasons
from portal.pages.tables.jobs import asks
from scheduler.models import Job

register = template.Library()


@register.simple_tag
def waiting_sentence(pending: Mapping[str, Any]) -> str:
    """Return why a job waits, in one sentence."""
    return reasons.sentence(pending)


@register.filter
def asks_for(job: Job) -> str:
    """Return what a job asks for, in one short line."""
    return asks(job)
