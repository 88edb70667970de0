"""The form with which people ask for compute.

It only shapes what was typed; `scheduler.submission` checks it, for the API too. What can't be
taken comes back beside its field, with everything that was typed still there.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduler.choices import JobKind, PlacementWish, TopologyLevel
from scheduler.models import Job
from scheduler.services.texts import COMMAND_LIMIT_BYTES, IMAGE_LIMIT
from scheduler.services.validation import DEFAULT_CLUSTER
from telemetry import units

Choices = Iterable[tuple[str, Any]]

AMOUNT = {"autocomplete": "off", "spellcheck": "false"}


class OpenChoiceField(forms.ChoiceField):
    """Offers choices; the service says what it takes, so that form and API answer alike."""

    def valid_value(self, value: Any) -> bool:  # noqa: ARG002
        """Return True."""
        return True


class OpenMultipleChoiceField(forms.MultipleChoiceField):
    """Offers several choices; the service says what it takes."""

    def valid_value(self, value: Any) -> bool:  # noqa: ARG002
        """Return True."""
        return True


def _amount(label: Any, initial: str, help_text: Any, **attrs: str) -> forms.CharField:
    return forms.CharField(
        label=label,
        initial=initial,
        required=False,
        help_text=help_text,
        widget=forms.TextInput(attrs={**AMOUNT, **attrs}),
    )


def _wish(label: Any, choices: Choices, help_text: Any = "") -> OpenChoiceField:
    return OpenChoiceField(
        label=label,
        required=False,
        choices=[("", gettext_lazy("no wish")), *choices],
        help_text=help_text,
    )


WISHES = (
    "replicas_min",
    "gpu_memory_mib",
    "required_topology",
    "preferred_topology",
    "placement_wish",
    "anti_affinity",
    "tolerations",
    "job_class",
    "interference",
    "min_throughput",
    "max_latency_ms",
    "checkpoint_interval_s",
)
"""Fields that few people fill in: folded in the form, and in this order on a job's page."""


class JobRequestForm(forms.Form):
    """What a person types to ask for compute; amounts are text, such as 16GiB or 4h."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        required=False,
        widget=forms.TextInput(attrs={"maxlength": 200, "autofocus": True, "autocomplete": "off"}),
    )
    tenant = OpenChoiceField(label=gettext_lazy("Tenant"), required=False)
    cluster = OpenChoiceField(
        label=gettext_lazy("Cluster"), required=False, initial=DEFAULT_CLUSTER
    )
    kind = OpenChoiceField(
        label=gettext_lazy("Kind"),
        required=False,
        choices=JobKind.choices,
        initial=JobKind.BATCH,
    )
    command = forms.CharField(
        label=gettext_lazy("Command"),
        required=False,
        strip=False,
        help_text=gettext_lazy("Run by /bin/sh -c, in a folder of its own."),
        widget=forms.Textarea(
            attrs={
                "rows": 4,
                "maxlength": COMMAND_LIMIT_BYTES,
                "spellcheck": "false",
                "class": "font-monospace",
                "placeholder": "python train.py",
            }
        ),
    )
    image = forms.CharField(
        label=gettext_lazy("Container image"),
        required=False,
        widget=forms.TextInput(
            attrs={**AMOUNT, "maxlength": IMAGE_LIMIT, "placeholder": "registry/name:tag"}
        ),
    )
    replicas = _amount(
        gettext_lazy("Replicas"),
        "1",
        gettext_lazy("Equal parts that start together or not at all."),
        inputmode="numeric",
    )
    cpu_milli = _amount(
        gettext_lazy("CPU cores"), "1", gettext_lazy("Per replica: 2, 1.5 or 1500m."), list="cores"
    )
    memory_mib = _amount(
        gettext_lazy("Memory"), "1GiB", gettext_lazy("Per replica: 16GiB, 512MiB."), list="memories"
    )
    devices = _amount(
        gettext_lazy("Devices"),
        "0",
        gettext_lazy("Accelerators per replica; 0 for CPU only."),
        inputmode="numeric",
    )
    gpu_milli = _amount(
        gettext_lazy("Share of the device"),
        "1",
        gettext_lazy("A part of one device, such as 0.5; 1 for whole devices."),
        inputmode="decimal",
    )
    gpu_memory_mib = _amount(
        gettext_lazy("Memory of the shared device"),
        "",
        gettext_lazy("Empty: in proportion to the share."),
    )
    flavors = OpenMultipleChoiceField(
        label=gettext_lazy("Accelerator models"),
        required=False,
        help_text=gettext_lazy("None chosen: any will do."),
        widget=forms.CheckboxSelectMultiple,
    )
    priority_class = OpenChoiceField(label=gettext_lazy("Priority class"), required=False)
    time_limit_s = _amount(
        gettext_lazy("Time limit"),
        "1h",
        gettext_lazy(
            "30m, 4h, 1h30m, 2d. A shorter one starts sooner; at its end the job is stopped."
        ),
        list="limits",
    )
    env = forms.CharField(
        label=gettext_lazy("Environment variables"),
        required=False,
        strip=False,
        help_text=gettext_lazy("One NAME=value a line. Those who may see the job may see them."),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "font-monospace"}),
    )
    replicas_min = _amount(
        gettext_lazy("Fewest replicas"),
        "",
        gettext_lazy("Start with fewer where all do not fit; empty: all or nothing."),
        inputmode="numeric",
    )
    tolerations = forms.CharField(
        label=gettext_lazy("Tolerated taints"),
        required=False,
        help_text=gettext_lazy("Keys of taints, separated by commas."),
        widget=forms.TextInput(attrs=AMOUNT),
    )
    min_throughput = _amount(
        gettext_lazy("Least throughput"),
        "",
        gettext_lazy("QoS: least part of full speed that will do, 0 to 1."),
        inputmode="decimal",
    )
    max_latency_ms = _amount(
        gettext_lazy("Most latency, ms"),
        "",
        gettext_lazy("QoS of inference: whole milliseconds."),
        inputmode="numeric",
    )

    required_topology = _wish(
        gettext_lazy("All replicas in"),
        TopologyLevel.choices,
        gettext_lazy("Waits until one such place holds the whole job."),
    )
    preferred_topology = _wish(
        gettext_lazy("Preferably in"),
        TopologyLevel.choices,
        gettext_lazy("As near as there is room for; never waits for it."),
    )
    placement_wish = _wish(gettext_lazy("Placement"), PlacementWish.choices)
    job_class = _amount(
        gettext_lazy("Class"),
        "",
        gettext_lazy("Jobs of one class run equally fast on equal devices; empty: the kind."),
        maxlength="80",
    )
    interference = _amount(
        gettext_lazy("Interference class"),
        "",
        gettext_lazy("By it admins say which parts of devices go well together; empty: the class."),
        maxlength="80",
    )
    anti_affinity = _amount(
        gettext_lazy("Never on a node with"),
        "",
        gettext_lazy("Name of a group: no two of the tenant's jobs that name it share a node."),
        maxlength="80",
    )
    checkpoint_interval_s = _amount(
        gettext_lazy("Checkpoint every"),
        "",
        gettext_lazy("10m, 1h; how often it saves its work, for when it must make room. Empty: 0."),
    )

    def __init__(
        self,
        *args: Any,
        tenants: Choices = (),
        clusters: Choices = (),
        flavors: Choices = (),
        priority_classes: Choices = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        for name, choices in (
            ("tenant", tenants),
            ("cluster", clusters),
            ("flavors", flavors),
            ("priority_class", priority_classes),
        ):
            field = self.fields[name]
            if isinstance(field, forms.ChoiceField):
                field.choices = list(choices)

    def clean_env(self) -> dict[str, str]:
        """Return name -> value of each line that is not blank."""
        return parsed_env(self.cleaned_data["env"])

    def clean_tolerations(self) -> list[str]:
        """Return the keys, in their order."""
        return [key for key in self.cleaned_data["tolerations"].replace(",", " ").split() if key]

    @property
    def wish_is_refused(self) -> bool:
        """Return whether one of the folded fields has an error to show."""
        return any(name in self.errors for name in WISHES)

    def asked(self) -> dict[str, Any]:
        """Return the fields as `scheduler.submission` takes them; the form was cleaned before."""
        return {name: value for name, value in self.cleaned_data.items() if name in self.fields}

    def add_refusals(self, fields: Mapping[str, list[str]]) -> None:
        """Show what the service refused beside its field; a strange field's above the form."""
        for name, texts in fields.items():
            for text in texts:
                self.add_error(name if name in self.fields else None, text)


def parsed_env(text: str) -> dict[str, str]:
    """Return name -> value from NAME=value lines.

    Raises:
        ValidationError: a line without `=`, or a name that comes twice, with the line's number.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        name = name.strip().removeprefix("export ").strip()
        if not equals:
            raise ValidationError(
                _("Line %(number)d has no “=”; write NAME=value.") % {"number": number}
            )
        if name in found:
            raise ValidationError(
                _("Line %(number)d gives %(name)s a second value; keep one.")
                % {"number": number, "name": name[:60]}
            )
        found[name] = value
    return found


def as_typed(job: Job) -> dict[str, Any]:
    """Return a job as what a person would type to ask for the same again."""
    return {
        "name": job.name,
        "tenant": job.tenant.slug,
        "cluster": job.cluster.slug,
        "kind": job.kind,
        "command": job.command,
        "image": job.image,
        "replicas": str(job.replicas_max),
        "replicas_min": "" if job.replicas_min == job.replicas_max else str(job.replicas_min),
        "cpu_milli": units.format_cpu(job.cpu_milli),
        "memory_mib": memory_as_typed(job.memory_mib),
        "devices": str(job.devices),
        "gpu_milli": units.format_devices_milli(job.gpu_milli),
        "gpu_memory_mib": memory_as_typed(job.gpu_memory_mib) if job.gpu_memory_mib else "",
        "flavors": list(job.flavors),
        "tolerations": ", ".join(job.tolerations),
        "priority_class": job.priority_class.slug,
        "time_limit_s": duration_as_typed(job.time_limit_s),
        "env": "\n".join(f"{name}={value}" for name, value in job.env.items()),
        "min_throughput": f"{job.min_throughput:g}" if job.min_throughput else "",
        "checkpoint_interval_s": duration_as_typed(job.checkpoint_interval_s)
        if job.checkpoint_interval_s
        else "",
        "max_latency_ms": "" if job.max_latency_ms is None else str(job.max_latency_ms),
        "required_topology": job.required_topology,
        "preferred_topology": job.preferred_topology,
        "placement_wish": job.placement_wish,
        "job_class": job.job_class,
        "interference": job.interference,
        "anti_affinity": job.anti_affinity,
    }


def wishes(job: Job) -> list[tuple[str, str]]:
    """Return (label, value) of the wishes that a job has, in the words of the form."""
    typed, fields = as_typed(job), JobRequestForm.base_fields
    said = typed | {
        "required_topology": job.get_required_topology_display(),
        "preferred_topology": job.get_preferred_topology_display(),
        "placement_wish": job.get_placement_wish_display(),
    }
    return [(str(fields[name].label), said[name]) for name in WISHES if said[name]]


def memory_as_typed(mib: int) -> str:
    """Return `16GiB` where that is exact, else `1500MiB`."""
    gib, rest = divmod(mib, 1024)
    return f"{gib}GiB" if gib and not rest else f"{mib}MiB"


def duration_as_typed(seconds: float) -> str:
    """Return a duration exactly, such as `1h30m`."""
    rest, parts = int(seconds), []
    for symbol, unit in units.SECONDS_PER.items():
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count}{symbol}")
    return "".join(parts) or "0s"
