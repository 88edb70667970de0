"""How jobs are read and asked for over REST."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from portal import reasons
from scheduler.choices import (
    FINAL_STATES,
    WAITING_STATES,
    JobKind,
    JobState,
    PlacementWish,
    TopologyLevel,
)
from scheduler.decide.standing import QuotaStanding
from scheduler.estimates import Estimate
from scheduler.models import Job, JobEvent
from scheduler.services.validation import DEFAULT_CLUSTER, JobRequest

_DEFAULTS: dict[str, Any] = {
    name: field.default for name, field in JobRequest.__dataclass_fields__.items()
}


class RemedySerializer(serializers.Serializer[Any]):
    """One change that would help."""

    code = serializers.CharField()
    message = serializers.CharField()
    params = serializers.DictField()


class PendingSerializer(serializers.Serializer[Any]):
    """Why a job waits, and what would help."""

    code = serializers.CharField()
    message = serializers.CharField()
    evidence = serializers.DictField(help_text="The numbers behind the message.")
    remedies = RemedySerializer(many=True)
    expected_start_p50 = serializers.DateTimeField(allow_null=True)
    expected_start_p90 = serializers.DateTimeField(allow_null=True)
    position = serializers.IntegerField(help_text="Place in the queue; 0 = not yet known.")


class JobSerializer(serializers.Serializer[Job]):
    """A job with all its fields."""

    uid = serializers.UUIDField()
    name = serializers.CharField()
    tenant = serializers.SlugField(source="tenant.slug")
    cluster = serializers.SlugField(source="cluster.slug")
    owner = serializers.CharField(source="owner.username")
    kind = serializers.ChoiceField(choices=JobKind.choices)
    state = serializers.ChoiceField(choices=JobState.choices)
    command = serializers.CharField()
    image = serializers.CharField()
    env = serializers.DictField(child=serializers.CharField())
    replicas = serializers.IntegerField(source="replicas_max")
    replicas_min = serializers.IntegerField()
    cpu_milli = serializers.IntegerField(help_text="Per replica.")
    memory_mib = serializers.IntegerField(help_text="Per replica.")
    devices = serializers.IntegerField(help_text="Per replica.")
    gpu_milli = serializers.IntegerField(help_text="Thousandths of each device.")
    gpu_memory_mib = serializers.IntegerField()
    flavors = serializers.ListField(child=serializers.CharField())
    tolerations = serializers.ListField(child=serializers.CharField())
    priority_class = serializers.SlugField(source="priority_class.slug")
    time_limit_s = serializers.IntegerField()
    min_throughput = serializers.FloatField()
    max_latency_ms = serializers.IntegerField(allow_null=True)
    required_topology = serializers.CharField(help_text="Level of the one domain of all replicas.")
    preferred_topology = serializers.CharField()
    placement_wish = serializers.CharField()
    job_class = serializers.CharField(help_text="Of equal speed; empty = the kind.")
    interference = serializers.CharField(
        help_text="Class by which it shares a device; empty = job_class."
    )
    anti_affinity = serializers.CharField(
        help_text="Group of the tenant's jobs of which no two share a node; empty = none."
    )
    checkpoint_interval_s = serializers.IntegerField(help_text="0 = it writes no checkpoints.")
    attempt = serializers.IntegerField(help_text="Times that it was started.")
    preempted_count = serializers.IntegerField(help_text="Times that it was evicted for others.")
    promised_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when room is made for it by evicting others."
    )
    submitted_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)
    cancel_requested_at = serializers.DateTimeField(allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField(help_text="How it ended, as a word.")
    reason_message = serializers.SerializerMethodField(help_text="The same as a sentence.")
    message = serializers.CharField(help_text="What the executor said of the end.")
    resubmit_of = serializers.UUIDField(source="resubmit_of_id", allow_null=True)
    pending = serializers.SerializerMethodField()

    def get_reason_message(self, job: Job) -> str:
        """Return how it ended."""
        return reasons.end_sentence(job.reason) if job.state in FINAL_STATES else ""

    @extend_schema_field(PendingSerializer(allow_null=True))
    def get_pending(self, job: Job) -> dict[str, Any] | None:
        """Return why it waits, None where it does not."""
        return reasons.pending_view(job.pending) if job.state in WAITING_STATES else None


class JobEventSerializer(serializers.Serializer[JobEvent]):
    """A move of a job, or news of it."""

    at = serializers.DateTimeField()
    kind = serializers.CharField()
    from_state = serializers.CharField()
    to_state = serializers.CharField()
    actor = serializers.CharField()
    reason = serializers.CharField()
    reason_message = serializers.SerializerMethodField()
    message = serializers.CharField()
    data = serializers.DictField()  # type: ignore[assignment]

    def get_reason_message(self, event: JobEvent) -> str:
        """Return the reason as a sentence."""
        return reasons.event_sentence(event.kind, event.reason, event.data)


class JobRequestSerializer(serializers.Serializer[Any]):
    """What can be asked for; `scheduler.services.validation` alone checks it."""

    name = serializers.CharField(max_length=200)
    tenant = serializers.SlugField()
    command = serializers.CharField(help_text="Run by /bin/sh -c; 64 KiB at most.")
    cluster = serializers.SlugField(required=False, default=DEFAULT_CLUSTER)
    kind = serializers.ChoiceField(choices=JobKind.choices, required=False, default=JobKind.BATCH)
    image = serializers.CharField(required=False, default="", allow_blank=True)
    env = serializers.DictField(child=serializers.CharField(), required=False)
    replicas = serializers.IntegerField(required=False, default=1, min_value=1, max_value=4096)
    replicas_min = serializers.IntegerField(
        required=False, min_value=1, max_value=4096, help_text="As replicas where missing."
    )
    cpu_milli = serializers.IntegerField(
        required=False, default=_DEFAULTS["cpu_milli"], min_value=1, max_value=10_000_000
    )
    memory_mib = serializers.IntegerField(
        required=False, default=_DEFAULTS["memory_mib"], min_value=1, max_value=67_108_864
    )
    devices = serializers.IntegerField(required=False, default=0, min_value=0, max_value=1024)
    gpu_milli = serializers.IntegerField(required=False, default=1000, min_value=1, max_value=1000)
    gpu_memory_mib = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=1_048_576
    )
    flavors = serializers.ListField(child=serializers.CharField(), required=False)
    tolerations = serializers.ListField(child=serializers.CharField(), required=False)
    priority_class = serializers.SlugField(required=False)
    time_limit_s = serializers.IntegerField(
        required=False, default=_DEFAULTS["time_limit_s"], min_value=1, max_value=31_536_000
    )
    min_throughput = serializers.FloatField(required=False, min_value=0, max_value=1)
    max_latency_ms = serializers.IntegerField(required=False, min_value=1, max_value=3_600_000)
    required_topology = serializers.ChoiceField(
        choices=TopologyLevel.choices, required=False, allow_blank=True
    )
    preferred_topology = serializers.ChoiceField(
        choices=TopologyLevel.choices, required=False, allow_blank=True
    )
    placement_wish = serializers.ChoiceField(
        choices=PlacementWish.choices, required=False, allow_blank=True
    )
    job_class = serializers.CharField(required=False, allow_blank=True, max_length=80)
    interference = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=80,
        help_text="Class by which it shares a device, see pairings; job_class where missing.",
    )
    anti_affinity = serializers.CharField(
        required=False,
        allow_blank=True,
        max_length=80,
        help_text="No two of the tenant's jobs that name the same group share a node.",
    )
    checkpoint_interval_s = serializers.IntegerField(
        required=False,
        default=0,
        min_value=0,
        max_value=31_536_000,
        help_text="How often it writes a checkpoint; who is to be evicted is chosen by that.",
    )


class PlannedReplicaSerializer(serializers.Serializer[Any]):
    """Where one replica would go."""

    node = serializers.CharField()
    devices = serializers.ListField(child=serializers.IntegerField())
    flavor = serializers.CharField()
    gpu_milli = serializers.IntegerField()


class StandingSerializer(serializers.Serializer[Any]):
    """What the tenant has of a flavor, in thousandths; null = no limit."""

    tenant = serializers.SlugField()
    flavor = serializers.CharField()
    limited = serializers.BooleanField()
    nominal = serializers.IntegerField()
    used = serializers.IntegerField()
    borrowed = serializers.IntegerField()
    available = serializers.IntegerField(allow_null=True)
    potential = serializers.IntegerField(allow_null=True)
    asked = serializers.IntegerField()


class DryRunSerializer(serializers.Serializer[Any]):
    """What would become of a request."""

    verdict = serializers.ChoiceField(
        choices=[("now", "now"), ("wait", "wait"), ("never", "never")]
    )
    pending = PendingSerializer(allow_null=True)
    placement = PlannedReplicaSerializer(many=True)
    quota = StandingSerializer(many=True)
    compute_units = serializers.FloatField(allow_null=True, help_text="null = unknown model.")
    cu_hours = serializers.FloatField(allow_null=True)


def dry_run_view(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as it is answered."""
    return {
        "verdict": estimate.verdict,
        "pending": reasons.pending_view(estimate.pending),
        "placement": list(estimate.placement),
        "quota": [_standing(line) for line in estimate.quota],
        "compute_units": estimate.compute_units,
        "cu_hours": estimate.cu_hours,
    }


def _standing(line: QuotaStanding) -> dict[str, Any]:
    found = asdict(line)
    if not line.limited:
        found |= {"available": None, "potential": None}
    return found
