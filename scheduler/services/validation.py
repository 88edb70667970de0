"""The one validator of a job, behind the form, the API and resubmission.

Text is what a form gives (`16Gi`, `1.5`, `4h`), integers are what JSON gives; both are checked by
`telemetry.units` and end in the same integers. Every problem of a request is reported at once.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from scheduler.choices import JobKind, PlacementWish, TopologyLevel
from scheduler.core.topology import WITHIN_NODE
from scheduler.models import PriorityClass
from scheduler.services.amounts import amount_refusal
from scheduler.services.references import (
    LIST_LIMIT,
    checked_cluster,
    checked_flavors,
    checked_kind,
    checked_priority_class,
    checked_tenant,
    checked_tolerations,
)
from scheduler.services.texts import (
    checked_command,
    checked_env,
    checked_group,
    checked_image,
    checked_job_class,
    checked_name,
)
from telemetry import units
from telemetry.choices import ClusterKind
from telemetry.models import Cluster
from tenants.errors import InvalidValueError
from tenants.models import Tenant, Viewer
from tenants.values import shown

DEFAULT_CLUSTER = "this-machine"
LATENCY_LIMIT_MS = 3_600_000

_PLAIN_NUMBER = re.compile(r"[0-9]{1,3}(\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job as asked for, every value checked."""

    name: str
    tenant: Tenant
    cluster: Cluster
    kind: str
    command: str
    priority_class: PriorityClass
    image: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    replicas_min: int = 1
    replicas_max: int = 1
    cpu_milli: int = 1000
    memory_mib: int = 1024
    devices: int = 0
    gpu_milli: int = 1000
    gpu_memory_mib: int = 0
    flavors: tuple[str, ...] = ()
    tolerations: tuple[str, ...] = ()
    time_limit_s: int = 3600
    min_throughput: float = 0.0
    max_latency_ms: int | None = None
    required_topology: str = ""
    preferred_topology: str = ""
    placement_wish: str = ""
    job_class: str = ""
    interference: str = ""
    anti_affinity: str = ""
    checkpoint_interval_s: int = 0


class _Problems:
    """Collects what is wrong, field by field."""

    def __init__(self, *, text: bool) -> None:
        self.text = text
        self.fields: dict[str, list[str]] = {}

    def add(self, name: str, text: str) -> None:
        self.fields.setdefault(name, []).append(text)

    def check(self, name: str, parse: Callable[[], Any], default: Any = None) -> Any:
        """Return what `parse` gives, or the default after noting what it refuses."""
        try:
            return parse()
        except units.InvalidQuantityError as wrong:
            self.add(name, amount_refusal(wrong, _quantity(name), text=self.text))
        except InvalidValueError as wrong:
            for texts in wrong.fields.values():
                for text in texts:
                    self.add(name, text)
        return default


_TEXT_PARSERS: dict[str, Callable[..., int]] = {
    "cpu_milli": units.parse_cpu_milli,
    "memory_mib": units.parse_memory_mib,
    "gpu_memory_mib": units.parse_memory_mib,
    "devices": units.parse_count,
    "gpu_milli": units.parse_gpu_milli,
    "replicas": units.parse_count,
    "replicas_min": units.parse_count,
    "time_limit_s": units.parse_duration_s,
    "checkpoint_interval_s": units.parse_duration_s,
}

FIELDS = (
    "name",
    "tenant",
    "cluster",
    "kind",
    "command",
    "image",
    "env",
    "replicas",
    "replicas_min",
    "cpu_milli",
    "memory_mib",
    "devices",
    "gpu_milli",
    "gpu_memory_mib",
    "flavors",
    "tolerations",
    "priority_class",
    "time_limit_s",
    "min_throughput",
    "max_latency_ms",
    "required_topology",
    "preferred_topology",
    "placement_wish",
    "job_class",
    "interference",
    "anti_affinity",
    "checkpoint_interval_s",
)
"""All that a request may name."""


def job_request_validate(
    *, data: Mapping[str, Any], actor: "Viewer", text: bool = False
) -> JobRequest:
    """Return the request that `data` describes.

    Args:
        data: field -> value; what is missing or None takes its default.
        actor: who asks; only tenants that the actor may submit to are taken.
        text: amounts are text as people type it, not JSON integers.

    Raises:
        InvalidValueError: field -> what is wrong with which value, and what to write instead.
    """
    given = {name: value for name, value in data.items() if value is not None}
    problems = _Problems(text=text)
    for name in sorted(set(given) - set(FIELDS), key=str)[:LIST_LIMIT]:
        problems.add(shown(name), _("There is no such field; remove it."))
    values = _amounts(given, problems)
    values |= _texts(given, problems)
    values |= _lists(given, problems)
    values |= _wishes(given, problems)
    values |= _references(given, problems, actor)
    _across_fields(values, problems)
    if problems.fields:
        raise InvalidValueError(problems.fields)
    return JobRequest(**values)


def _quantity(name: str) -> units.Quantity:
    return units.QUANTITIES["replicas" if name == "replicas_min" else name]


def _amounts(given: Mapping[str, Any], problems: _Problems) -> dict[str, Any]:
    text = problems.text
    found: dict[str, Any] = {}
    for name, parse in _TEXT_PARSERS.items():
        if name not in given or (text and given[name] == ""):
            continue
        read = parse if text else units.require_integer
        found[name] = problems.check(name, partial(read, given[name], _quantity(name)))
    most = found.pop("replicas", 1)
    least = found.pop("replicas_min", most)
    found |= {"replicas_max": most, "replicas_min": least}
    found["min_throughput"] = problems.check(
        "min_throughput", lambda: _fraction(given.get("min_throughput", 0.0), text=text), 0.0
    )
    found["max_latency_ms"] = problems.check(
        "max_latency_ms", lambda: _latency(given.get("max_latency_ms"), text=text)
    )
    return found


def _fraction(value: Any, *, text: bool) -> float:
    number = value
    if text and isinstance(value, str):
        typed = value.strip() or "0"
        number = float(typed) if _PLAIN_NUMBER.fullmatch(typed) else None
    if isinstance(number, bool) or not isinstance(number, int | float):
        number = -1
    if 0 <= number <= 1:
        return float(number)
    raise InvalidValueError.of(
        "", _("%(value)s is not a number from 0 to 1.") % {"value": shown(value)}
    )


def _latency(value: Any, *, text: bool) -> int | None:
    if value is None or (text and value == ""):
        return None
    number = value
    if text and isinstance(value, str):
        number = int(value) if re.fullmatch("[0-9]{1,9}", value.strip()) else None
    if isinstance(number, bool) or not isinstance(number, int):
        number = 0
    if not 1 <= number <= LATENCY_LIMIT_MS:
        raise InvalidValueError.of(
            "",
            _("%(value)s is not a whole number of milliseconds from 1 to %(most)s.")
            % {"value": shown(value), "most": LATENCY_LIMIT_MS},
        )
    return number


def _texts(given: Mapping[str, Any], problems: _Problems) -> dict[str, Any]:
    return {
        "name": problems.check("name", lambda: checked_name(given.get("name"))),
        "command": problems.check("command", lambda: checked_command(given.get("command"))),
        "image": problems.check("image", lambda: checked_image(given.get("image", "")), ""),
        "env": problems.check("env", lambda: checked_env(given.get("env", {})), {}),
    }


def _lists(given: Mapping[str, Any], problems: _Problems) -> dict[str, Any]:
    return {
        "flavors": problems.check("flavors", lambda: checked_flavors(given.get("flavors", ())), ()),
        "tolerations": problems.check(
            "tolerations", lambda: checked_tolerations(given.get("tolerations", ())), ()
        ),
    }


def _wishes(given: Mapping[str, Any], problems: _Problems) -> dict[str, Any]:
    choices = {
        "required_topology": TopologyLevel.values,
        "preferred_topology": TopologyLevel.values,
        "placement_wish": PlacementWish.values,
    }
    found = {
        name: problems.check(name, partial(_choice, given.get(name, ""), values), "")
        for name, values in choices.items()
    }
    words = {
        "job_class": checked_job_class,
        "interference": checked_job_class,
        "anti_affinity": checked_group,
    }
    for name, check in words.items():
        found[name] = problems.check(name, partial(check, given.get(name, "")), "")
    return found


def _choice(value: Any, choices: Sequence[str]) -> str:
    if value == "" or (isinstance(value, str) and value in choices):
        return str(value)
    raise InvalidValueError.of(
        "",
        _("%(value)s is not one of %(choices)s.")
        % {"value": shown(value), "choices": ", ".join(choices)},
    )


def _references(given: Mapping[str, Any], problems: _Problems, actor: "Viewer") -> dict[str, Any]:
    return {
        "tenant": problems.check("tenant", lambda: checked_tenant(given.get("tenant"), actor)),
        "cluster": problems.check(
            "cluster", lambda: checked_cluster(given.get("cluster", DEFAULT_CLUSTER))
        ),
        "kind": problems.check("kind", lambda: checked_kind(given.get("kind", JobKind.BATCH)), ""),
        "priority_class": problems.check(
            "priority_class", lambda: checked_priority_class(given.get("priority_class", ""))
        ),
    }


def _across_fields(values: Mapping[str, Any], problems: _Problems) -> None:
    if _greater(values.get("replicas_min"), values.get("replicas_max")):
        problems.add("replicas_min", _("replicas_min is more than replicas."))
    devices = values.get("devices", 0)
    if values.get("gpu_milli", 1000) not in {None, 1000} and devices not in {None, 1}:
        problems.add(
            "gpu_milli", _("A part of a device goes with exactly one device; set devices to 1.")
        )
    if values.get("flavors") and devices == 0:
        problems.add("devices", _("Flavors are named, but no device is asked for."))
    if values["required_topology"] and values["preferred_topology"]:
        problems.add("preferred_topology", _("Require a topology or prefer one, not both."))
    for name in ("required_topology", "preferred_topology"):
        if values[name] in WITHIN_NODE and devices == 0:
            problems.add(name, _("This is about devices, but none is asked for."))
    cluster = values.get("cluster")
    if values["image"] and cluster is not None and cluster.kind == ClusterKind.LOCAL:
        problems.add(
            "image",
            _("%(cluster)s runs processes, not container images; leave image empty.")
            % {"cluster": cluster.slug},
        )


def _greater(left: int | None, right: int | None) -> bool:
    return left is not None and right is not None and left > right
