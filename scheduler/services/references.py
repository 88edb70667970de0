"""Checks what a request names: tenant, cluster, kind, priority class, flavors, taints."""

import re
from typing import Any

from django.utils.translation import gettext as _

from scheduler.choices import JobKind
from scheduler.core.resources import is_flavor
from scheduler.models import PriorityClass
from telemetry.flavors import BY_SLUG
from telemetry.models import Cluster, Device
from tenants import policies
from tenants.errors import InvalidValueError
from tenants.models import Tenant, Viewer
from tenants.values import shown

LIST_LIMIT = 32
_LABEL_KEY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?")


def checked_tenant(value: Any, actor: "Viewer") -> Tenant:
    """Return the tenant that the actor names and may submit to; a refusal is of field ""."""
    if value is None or value == "":
        raise InvalidValueError.of("", _("Name the tenant that the job is charged to."))
    tenant: Tenant | None = _by_slug(Tenant.objects.visible_to(actor), value)
    if tenant is None or not policies.may_submit(actor, tenant):
        raise InvalidValueError.of(
            "",
            _("You may not submit to a tenant %(value)s; choose one in which you may.")
            % {"value": shown(value)},
        )
    return tenant


def checked_cluster(value: Any) -> Cluster:
    """Return the enabled cluster of that name; a refusal is of field ""."""
    cluster: Cluster | None = _by_slug(Cluster.objects.filter(enabled=True), value)
    if cluster is None:
        raise InvalidValueError.of(
            "",
            _("There is no cluster %(value)s; choose one that is in use.")
            % {"value": shown(value)},
        )
    return cluster


def checked_kind(value: Any) -> str:
    """Return a kind of job; a refusal is of field ""."""
    if value not in JobKind.values:
        raise InvalidValueError.of(
            "",
            _("%(value)s is not a kind of job; choose one of %(kinds)s.")
            % {"value": shown(value), "kinds": ", ".join(JobKind.values)},
        )
    return str(value)


def checked_priority_class(value: Any) -> PriorityClass:
    """Return the priority class of that name, the default for ""; a refusal is of field ""."""
    classes = {c.slug: c for c in PriorityClass.objects.all()}
    default = next((c for c in classes.values() if c.is_default), None)
    if value == "" and default is not None:
        return default
    if not isinstance(value, str) or value not in classes:
        raise InvalidValueError.of(
            "",
            _("There is no priority class %(value)s; choose one of %(classes)s.")
            % {"value": shown(value), "classes": ", ".join(classes)},
        )
    return classes[value]


def _by_slug(rows: Any, value: Any) -> Any:
    if not isinstance(value, str) or "\x00" in value:
        return None
    return rows.filter(slug=value).first()


def checked_flavors(value: Any) -> tuple[str, ...]:
    """Return flavors that exist, each once; a refusal is of field ""."""
    names = _words(value)
    known = set(BY_SLUG)
    strange = [name for name in names if name not in known]
    if strange:
        known |= set(Device.objects.values_list("flavor", flat=True).distinct())
    for name in strange:
        if not any(is_flavor(flavor, name) for flavor in known):  # a MIG profile names several
            raise InvalidValueError.of(
                "",
                _("There is no flavor %(value)s; choose one of the fleet or of the catalogue.")
                % {"value": shown(name)},
            )
    return names


def checked_tolerations(value: Any) -> tuple[str, ...]:
    """Return keys of taints, each once; a refusal is of field ""."""
    names = _words(value)
    for name in names:
        if not _LABEL_KEY.fullmatch(name):
            raise InvalidValueError.of(
                "", _("%(value)s is not the key of a taint.") % {"value": shown(name)}
            )
    return names


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
        raise InvalidValueError.of("", _("Expected a list of names."))
    if len(value) > LIST_LIMIT:
        raise InvalidValueError.of(
            "", _("The list has more than %(most)s names.") % {"most": LIST_LIMIT}
        )
    return tuple(dict.fromkeys(value))
