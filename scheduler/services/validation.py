"""The one validator of a job, behind the form, the API and resubmission.

Text is what a form gives (`16Gi`, `1.5`, `4h`), integers are what JSON gives; both are checked by
`telemetry.units` and end in the same integers. Every problem of a request is reported at once.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from scheduler.choices import JobKind
from scheduler.models import PriorityClass
from telemetry import units
from telemetry.choices import ClusterKind
from telemetry.flavors import BY_SLUG
from telemetry.models import Cluster, Device
from tenants import policies
from tenants.errors import InvalidValueError
from tenants.models import Tenant, Viewer

DEFAULT_CLUSTER = "this-machine"
NAME_LIMIT = 200
COMMAND_LIMIT_BYTES = 64 * 1024
IMAGE_LIMIT = 500
ENV_LIMIT_COUNT = 200
ENV_LIMIT_BYTES = 64 * 1024
LIST_LIMIT = 32
LATENCY_LIMIT_MS = 3_600_000

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")
_LABEL_KEY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?")
_RESERVED_ENV = re.compile(r"KILTER_.*|.*_VISIBLE_DEVICES")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


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


class _Problems:
    """Collects what is wrong, field by field."""

    def __init__(self) -> None:
        self.fields: dict[str, list[str]] = {}

    def add(self, name: str, text: str) -> None:
        self.fields.setdefault(name, []).append(text)

    def check(self, name: str, parse: Callable[[], Any], default: Any = None) -> Any:
        """Return what `parse` gives, or the default after noting what it refuses."""
        try:
            return parse()
        except units.InvalidQuantityError as wrong:
            self.add(
                name,
                _("%(value)s is not %(expected)s; %(remedy)s.")
                % {"value": wrong.value, "expected": wrong.expected, "remedy": wrong.remedy},
            )
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
    problems = _Problems()
    for name in sorted(set(given) - set(FIELDS)):
        problems.add(_shown(name), _("There is no such field; remove it."))
    values = _amounts(given, problems, text=text)
    values |= _texts(given, problems)
    values |= _lists(given, problems)
    values |= _references(given, problems, actor)
    _across_fields(values, problems)
    if problems.fields:
        raise InvalidValueError(problems.fields)
    return JobRequest(**values)


def _amounts(given: Mapping[str, Any], problems: _Problems, *, text: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, parse in _TEXT_PARSERS.items():
        if name not in given or (text and given[name] == ""):
            continue
        quantity = units.QUANTITIES["replicas" if name == "replicas_min" else name]
        value = given[name]
        found[name] = problems.check(
            name,
            (lambda p=parse, v=value, q=quantity: p(v, q))
            if text
            else (lambda v=value, q=quantity: units.require_integer(v, q)),
        )
    most = found.pop("replicas", 1)
    least = found.pop("replicas_min", most)
    found |= {"replicas_max": most, "replicas_min": least}
    found["min_throughput"] = problems.check(
        "min_throughput", lambda: _fraction(given.get("min_throughput", 0.0)), 0.0
    )
    found["max_latency_ms"] = problems.check(
        "max_latency_ms", lambda: _latency(given.get("max_latency_ms"))
    )
    return found


def _fraction(value: Any) -> float:
    if isinstance(value, str) and value.strip() == "":
        return 0.0
    try:
        number = float(value) if not isinstance(value, bool) else -1.0
    except (TypeError, ValueError):
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise InvalidValueError.of(
            "", _("%(value)s is not a number from 0 to 1.") % {"value": _shown(value)}
        )
    return number


def _latency(value: Any) -> int | None:
    if value in (None, ""):
        return None
    number = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value) else value
    if isinstance(number, bool) or not isinstance(number, int):
        number = 0
    if not 1 <= number <= LATENCY_LIMIT_MS:
        raise InvalidValueError.of(
            "",
            _("%(value)s is not a whole number of milliseconds from 1 to %(most)s.")
            % {"value": _shown(value), "most": LATENCY_LIMIT_MS},
        )
    return number


def _texts(given: Mapping[str, Any], problems: _Problems) -> dict[str, Any]:
    return {
        "name": problems.check("name", lambda: _name(given.get("name"))),
        "command": problems.check("command", lambda: _command(given.get("command"))),
        "image": problems.check("image", lambda: _image(given.get("image", "")), ""),
        "env": problems.check("env", lambda: _env(given.get("env", {})), {}),
    }


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidValueError.of("", _("A job needs a name."))
    name = value.strip()
    if len(name) > NAME_LIMIT:
        raise InvalidValueError.of(
            "",
            _("The name has %(length)s characters; %(most)s are the most.")
            % {"length": len(name), "most": NAME_LIMIT},
        )
    for character in name:
        if unicodedata.category(character) in _HIDDEN_CATEGORIES:
            raise InvalidValueError.of(
                "",
                _("The name holds the invisible character U+%(code)s; remove it.")
                % {"code": f"{ord(character):04X}"},
            )
    return name


def _command(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidValueError.of("", _("A job needs a command."))
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > COMMAND_LIMIT_BYTES:
        raise InvalidValueError.of(
            "",
            _(
                "The command has %(size)s bytes; %(most)s are the most. "
                "Put it into a file and call that."
            )
            % {"size": size, "most": COMMAND_LIMIT_BYTES},
        )
    text = value.replace("\r\n", "\n")
    _refuse_controls(text, _("The command"))
    return text


def _refuse_controls(text: str, what: str) -> None:
    for character in text:
        if unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t":
            raise InvalidValueError.of(
                "",
                _("%(what)s holds the control character U+%(code)s; remove it.")
                % {"what": what, "code": f"{ord(character):04X}"},
            )


def _image(value: Any) -> str:
    if value == "":
        return ""
    if not isinstance(value, str) or len(value) > IMAGE_LIMIT or not _IMAGE.fullmatch(value):
        raise InvalidValueError.of(
            "",
            _("%(value)s is not the name of a container image; write registry/name:tag.")
            % {"value": _shown(value)},
        )
    return value


def _env(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidValueError.of(
            "", _("Environment variables are pairs of a name and a text value.")
        )
    if len(value) > ENV_LIMIT_COUNT:
        raise InvalidValueError.of(
            "",
            _("There are %(count)s environment variables; %(most)s are the most.")
            % {"count": len(value), "most": ENV_LIMIT_COUNT},
        )
    found = {name: _env_value(name, text) for name, text in value.items()}
    if sum(len(n) + len(v.encode()) for n, v in found.items()) > ENV_LIMIT_BYTES:
        raise InvalidValueError.of(
            "",
            _("The environment variables have more than %(most)s bytes; put them into a file.")
            % {"most": ENV_LIMIT_BYTES},
        )
    return found


def _env_value(name: Any, text: Any) -> str:
    if not isinstance(name, str) or not _ENV_NAME.fullmatch(name):
        raise InvalidValueError.of(
            "",
            _("%(name)s is not a name of an environment variable: letters, digits and _.")
            % {"name": _shown(name)},
        )
    if _RESERVED_ENV.fullmatch(name):
        raise InvalidValueError.of(
            "", _("%(name)s is set by Kilter; choose another name.") % {"name": name}
        )
    if not isinstance(text, str):
        raise InvalidValueError.of(
            "", _("The value of %(name)s is not text; put it in quotes.") % {"name": name}
        )
    _refuse_controls(text, _("The value of %(name)s") % {"name": name})
    return text


def _lists(given: Mapping[str, Any], problems: _Problems) -> dict[str, Any]:
    return {
        "flavors": problems.check("flavors", lambda: _flavors(given.get("flavors", ())), ()),
        "tolerations": problems.check(
            "tolerations", lambda: _tolerations(given.get("tolerations", ())), ()
        ),
    }


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
        raise InvalidValueError.of("", _("Expected a list of names."))
    if len(value) > LIST_LIMIT:
        raise InvalidValueError.of(
            "", _("The list has more than %(most)s names.") % {"most": LIST_LIMIT}
        )
    return tuple(dict.fromkeys(value))


def _flavors(value: Any) -> tuple[str, ...]:
    names = _words(value)
    known = set(BY_SLUG)
    strange = [name for name in names if name not in known]
    if strange:
        known |= set(Device.objects.values_list("flavor", flat=True).distinct())
    for name in strange:
        if name not in known:
            raise InvalidValueError.of(
                "",
                _("There is no flavor %(value)s; GET /api/v1/devices/ lists those that exist.")
                % {"value": _shown(name)},
            )
    return names


def _tolerations(value: Any) -> tuple[str, ...]:
    names = _words(value)
    for name in names:
        if not _LABEL_KEY.fullmatch(name):
            raise InvalidValueError.of(
                "", _("%(value)s is not the key of a taint.") % {"value": _shown(name)}
            )
    return names


def _references(given: Mapping[str, Any], problems: _Problems, actor: "Viewer") -> dict[str, Any]:
    return {
        "tenant": problems.check("tenant", lambda: _tenant(given.get("tenant"), actor)),
        "cluster": problems.check(
            "cluster", lambda: _cluster(given.get("cluster", DEFAULT_CLUSTER))
        ),
        "kind": problems.check("kind", lambda: _kind(given.get("kind", JobKind.BATCH)), ""),
        "priority_class": problems.check(
            "priority_class", lambda: _priority_class(given.get("priority_class", ""))
        ),
    }


def _tenant(value: Any, actor: "Viewer") -> Tenant:
    tenant = _by_slug(Tenant.objects.visible_to(actor), value)
    if tenant is None or not policies.may_submit(actor, tenant):
        raise InvalidValueError.of(
            "",
            _("You may not submit to a tenant %(value)s; GET /api/v1/tenants/ lists yours.")
            % {"value": _shown(value)},
        )
    return tenant


def _cluster(value: Any) -> Cluster:
    cluster = _by_slug(Cluster.objects.filter(enabled=True), value)
    if cluster is None:
        raise InvalidValueError.of(
            "",
            _("There is no cluster %(value)s; GET /api/v1/clusters/ lists them.")
            % {"value": _shown(value)},
        )
    return cluster


def _kind(value: Any) -> str:
    if value not in JobKind.values:
        raise InvalidValueError.of(
            "",
            _("%(value)s is not a kind of job; choose one of %(kinds)s.")
            % {"value": _shown(value), "kinds": ", ".join(JobKind.values)},
        )
    return str(value)


def _priority_class(value: Any) -> PriorityClass:
    classes = {c.slug: c for c in PriorityClass.objects.all()}
    if value == "":
        return next(c for c in classes.values() if c.is_default)
    if not isinstance(value, str) or value not in classes:
        raise InvalidValueError.of(
            "",
            _("There is no priority class %(value)s; choose one of %(classes)s.")
            % {"value": _shown(value), "classes": ", ".join(classes)},
        )
    return classes[value]


def _by_slug(rows: Any, value: Any) -> Any:
    if not isinstance(value, str) or "\x00" in value:
        return None
    return rows.filter(slug=value).first()


def _across_fields(values: Mapping[str, Any], problems: _Problems) -> None:
    if _greater(values.get("replicas_min"), values.get("replicas_max")):
        problems.add("replicas_min", _("replicas_min is more than replicas."))
    if values.get("gpu_milli", 1000) not in (None, 1000) and values.get("devices", 0) != 1:
        problems.add(
            "gpu_milli", _("A part of a device goes with exactly one device; set devices to 1.")
        )
    if values.get("flavors") and not values.get("devices", 0) and "devices" not in problems.fields:
        problems.add("devices", _("Flavors are named, but no device is asked for."))
    cluster = values.get("cluster")
    if values["image"] and cluster is not None and cluster.kind == ClusterKind.LOCAL:
        problems.add(
            "image",
            _("%(cluster)s runs processes, not container images; leave image empty.")
            % {"cluster": cluster.slug},
        )


def _greater(left: int | None, right: int | None) -> bool:
    return left is not None and right is not None and left > right


def _shown(value: object) -> str:
    """Return a value fit for a message: printable, short, quoted."""
    text = value if isinstance(value, str) else repr(value)
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return f"“{printable[:60]}…”" if len(printable) > 60 else f"“{printable}”"  # noqa: PLR2004
