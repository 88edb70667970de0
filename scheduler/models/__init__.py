"""Jobs, what they hold, what was decided, and what is booked."""

import uuid
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Q, Value
from django.utils.translation import gettext_lazy as _

from scheduler.choices import (
    IntentState,
    JobKind,
    JobState,
    PlacementWish,
    TopologyLevel,
    Verb,
)
from scheduler.models.expected import ExpectedStart
from scheduler.models.pairings import Pairing
from scheduler.models.policies import PriorityClass, SchedulingPolicy
from scheduler.models.records import (
    Cycle,
    Decision,
    JobEvent,
    LedgerEntry,
    ShadowPlan,
    StrategyAlarm,
)
from scheduler.models.throughputs import LearntThroughput, Throughput
from telemetry.models import Cluster, Device, Node
from tenants.models import Tenant

if TYPE_CHECKING:
    from tenants.models import Viewer

__all__ = [
    "Cycle",
    "Decision",
    "DeviceHold",
    "ExpectedStart",
    "Intent",
    "Job",
    "JobEvent",
    "LearntThroughput",
    "LedgerEntry",
    "Pairing",
    "Placement",
    "PriorityClass",
    "ReplicaHold",
    "SchedulingPolicy",
    "ShadowPlan",
    "StrategyAlarm",
    "Throughput",
]

EVICT_GRACE_S = 10.0
"""For a checkpoint, where no policy says otherwise."""

HEAVY = ("command", "env", "image", "message", "pending")
"""Columns of a job that the cycle does not look at, and that may be large."""


class JobQuerySet(models.QuerySet["Job"]):
    """Jobs, scoped by who looks."""

    def visible_to(self, viewer: "Viewer") -> "JobQuerySet":
        """Return the jobs of the tenants that the viewer may see."""
        if getattr(viewer, "is_superuser", False) and viewer.is_active:
            return self
        return self.filter(tenant__in=Tenant.objects.visible_to(viewer))


class Job(models.Model):
    """What a user submits."""

    uid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(_("name"), max_length=200)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="jobs")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="jobs")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs"
    )
    kind = models.CharField(_("kind"), max_length=20, choices=JobKind, default=JobKind.BATCH)
    state = models.CharField(max_length=20, choices=JobState, default=JobState.QUEUED)

    command = models.TextField(_("command"), blank=True, default="")
    image = models.CharField(_("image"), max_length=500, blank=True, default="")
    env = models.JSONField(default=dict, blank=True)

    replicas_min = models.PositiveIntegerField(default=1)
    replicas_max = models.PositiveIntegerField(default=1)
    cpu_milli = models.BigIntegerField(default=1000, help_text=_("Per replica."))
    memory_mib = models.BigIntegerField(default=1024, help_text=_("Per replica."))
    devices = models.PositiveIntegerField(default=0, help_text=_("Per replica."))
    gpu_milli = models.PositiveIntegerField(
        default=1000, help_text=_("Thousandths of each device; below 1000 with one device only.")
    )
    gpu_memory_mib = models.BigIntegerField(
        default=0, help_text=_("Of a shared device; 0 = in proportion to its share.")
    )
    flavors = ArrayField(models.CharField(max_length=80), default=list, blank=True)
    tolerations = ArrayField(models.CharField(max_length=317), default=list, blank=True)
    priority_class = models.ForeignKey(PriorityClass, on_delete=models.PROTECT)
    time_limit_s = models.PositiveIntegerField(default=3600)
    min_throughput = models.FloatField(default=0.0, help_text=_("Least share of full speed, 0..1."))
    max_latency_ms = models.PositiveIntegerField(null=True, blank=True)
    required_topology = models.CharField(
        max_length=10, choices=TopologyLevel, blank=True, default=""
    )
    preferred_topology = models.CharField(
        max_length=10, choices=TopologyLevel, blank=True, default=""
    )
    placement_wish = models.CharField(max_length=20, choices=PlacementWish, blank=True, default="")
    job_class = models.CharField(
        max_length=80, blank=True, default="", help_text=_("Of equal speed; empty: its kind.")
    )
    interference = models.CharField(
        max_length=80,
        blank=True,
        default="",
        db_default="",
        help_text=_("Class by which it shares a device with others; empty: its class."),
    )
    anti_affinity = models.CharField(
        max_length=80,
        blank=True,
        default="",
        db_default="",
        help_text=_("Group of the tenant's jobs of which no two share a node; empty: none."),
    )
    checkpoint_interval_s = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text=_("How often it writes a checkpoint, in seconds; 0 = it writes none."),
    )

    attempt = models.PositiveIntegerField(default=0, help_text=_("Times that it was started."))
    not_before = models.DateTimeField(
        null=True, help_text=_("Back-off after a failed start, or when a promise came to nothing.")
    )
    promised_at = models.DateTimeField(
        null=True, help_text=_("Since when room is made for it by evicting others.")
    )
    preempted_count = models.PositiveIntegerField(
        default=0, db_default=0, help_text=_("Times that it was evicted for others.")
    )
    resized_to = models.PositiveIntegerField(
        null=True, help_text=_("Replicas that it was told to have; more are not given it ...")
    )
    resized_until = models.DateTimeField(null=True, help_text=_("... before this time."))
    submitted_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, help_text=_("Of the present attempt."))
    finished_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    exit_code = models.IntegerField(null=True)
    reason = models.CharField(max_length=60, blank=True, default="")
    message = models.TextField(blank=True, default="")
    pending = models.JSONField(
        default=dict, blank=True, help_text=_("Why it waits, as the last cycle found.")
    )
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001 - unique
    expected_duration_s = models.FloatField(
        default=0.0, help_text=_("Of invented jobs on simulated fleets; 0 elsewhere.")
    )
    resubmit_of = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="resubmits"
    )

    objects = JobQuerySet.as_manager()

    class Meta:
        ordering = ["-submitted_at", "uid"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "idempotency_key"], name="job_unique_idempotency_key"
            ),
            models.CheckConstraint(
                condition=Q(replicas_min__gte=1, replicas_max__gte=F("replicas_min")),
                name="job_replicas_min_to_max",
            ),
            models.CheckConstraint(
                condition=Q(cpu_milli__gte=1, memory_mib__gte=1, time_limit_s__gte=1),
                name="job_amounts_gte_1",
            ),
            models.CheckConstraint(
                condition=Q(gpu_milli__gte=1, gpu_milli__lte=1000)
                & (Q(gpu_milli=1000) | Q(devices=1)),
                name="job_fraction_of_one_device",
            ),
            models.CheckConstraint(
                condition=Q(required_topology="") | Q(preferred_topology=""),
                name="job_one_topology",
            ),
        ]
        indexes = [
            models.Index(fields=["cluster", "state", "submitted_at"], name="job_cluster_state"),
            models.Index(fields=["tenant", "-submitted_at"], name="job_tenant_submitted"),
            models.Index(fields=["cluster", "-submitted_at"], name="job_cluster_submitted"),
            models.Index(
                fields=["cluster", "-finished_at"],
                condition=Q(finished_at__isnull=False),
                name="job_cluster_finished",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Placement(models.Model):
    """A job's hold on nodes and devices, for one attempt."""

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="placements")
    attempt = models.PositiveIntegerField()
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="placements")
    flavor = models.CharField(max_length=80, blank=True, default="")
    score = models.FloatField(default=0.0)
    priority_parts = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    released_at = models.DateTimeField(null=True)
    checkpointed_at = models.DateTimeField(
        null=True, help_text=_("Of its newest checkpoint, as its executor saw it.")
    )

    class Meta:
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["job", "attempt"], name="placement_unique_attempt"),
            models.UniqueConstraint(
                fields=["job"],
                condition=Q(released_at__isnull=True),
                name="placement_one_open_per_job",
            ),
        ]
        indexes = [
            models.Index(
                fields=["cluster"], condition=Q(released_at__isnull=True), name="placement_open"
            ),
            models.Index(fields=["created_at", "released_at"], name="placement_window"),
        ]

    def __str__(self) -> str:
        return f"{self.job_id}#{self.attempt}"


class ReplicaHold(models.Model):
    """What one replica holds of a node. Triggers keep the node's allocated columns."""

    placement = models.ForeignKey(Placement, on_delete=models.PROTECT, related_name="replicas")
    index = models.PositiveIntegerField()
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="holds")
    cpu_milli = models.BigIntegerField()
    memory_mib = models.BigIntegerField()
    released = models.BooleanField(default=False)

    class Meta:
        ordering = ["placement_id", "index"]
        constraints = [
            models.UniqueConstraint(fields=["placement", "index"], name="replica_hold_unique")
        ]

    def __str__(self) -> str:
        return f"{self.placement_id}/{self.index}"


class DeviceHold(models.Model):
    """What one replica holds of a device. Triggers keep the device's allocated columns."""

    replica = models.ForeignKey(ReplicaHold, on_delete=models.PROTECT, related_name="device_holds")
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="holds")
    gpu_milli = models.PositiveIntegerField()
    memory_mib = models.BigIntegerField()
    exclusive = models.BooleanField()
    period = DateTimeRangeField(help_text=_("From placement to release; open while held."))

    class Meta:
        ordering = ["replica_id", "device_id"]
        constraints = [
            ExclusionConstraint(
                name="device_hold_exclusive",
                expressions=[
                    ("device", RangeOperators.EQUAL),
                    ("period", RangeOperators.OVERLAPS),
                ],
                condition=Q(exclusive=True),
            ),
            models.CheckConstraint(
                condition=Q(gpu_milli__gte=1, gpu_milli__lte=1000, memory_mib__gte=0),
                name="device_hold_amounts",
            ),
            models.CheckConstraint(
                condition=Q(exclusive=True, gpu_milli=1000)
                | Q(exclusive=False, gpu_milli__lt=1000),
                name="device_hold_exclusive_is_whole",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.device_id}: {self.gpu_milli}"


class Intent(models.Model):
    """What an executor is to do, written in the transaction that decided it."""

    placement = models.ForeignKey(Placement, on_delete=models.PROTECT, related_name="intents")
    verb = models.CharField(max_length=10, choices=Verb)
    reason = models.CharField(max_length=60, blank=True, default="")
    grace_s = models.FloatField(
        default=EVICT_GRACE_S,
        db_default=EVICT_GRACE_S,
        help_text=_("From the order to end to the end, in the cluster's seconds."),
    )
    beneficiary = models.ForeignKey(
        Job, on_delete=models.PROTECT, null=True, related_name="evictions", help_text=_("For whom.")
    )
    target = models.JSONField(
        default=list,
        db_default=Value([], models.JSONField()),
        blank=True,
        help_text=_("Replicas that a resized job is to go on with: nodes and devices."),
    )
    state = models.CharField(max_length=10, choices=IntentState, default=IntentState.PENDING)
    tries = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["placement", "verb"], name="intent_unique_verb")
        ]
        indexes = [
            models.Index(fields=["state"], condition=Q(state="pending"), name="intent_pending")
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.placement_id}"
