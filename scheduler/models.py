"""Jobs, what they hold, what was decided, and what is booked."""

import uuid
from typing import TYPE_CHECKING

from auditlog.registry import auditlog
from django.conf import settings
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from scheduler.choices import (
    IntentState,
    JobKind,
    JobState,
    PlacementScore,
    PlacementWish,
    TopologyLevel,
    Verb,
)
from telemetry.models import Cluster, Device, Node
from tenants.models import Tenant

if TYPE_CHECKING:
    from tenants.models import Viewer

HEAVY = ("command", "env", "image", "message", "pending")
"""Columns of a job that the cycle does not look at, and that may be large."""


class PriorityClass(models.Model):
    """A named priority, as in Kubernetes: higher values go first."""

    slug = models.SlugField(unique=True, max_length=63)
    value = models.IntegerField(help_text=_("Higher goes first."))
    preemptible = models.BooleanField(default=True)
    is_default = models.BooleanField(default=False)

    class Meta:
        ordering = ["-value", "slug"]
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=Q(is_default=True), name="priority_one_default"
            )
        ]

    def __str__(self) -> str:
        return self.slug


class SchedulingPolicy(models.Model):
    """How decisions are made on one cluster; see `scheduler.core.policy.Policy`."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="policy")
    strategy = models.CharField(max_length=40, default="optimising")
    budget_s = models.FloatField(default=1.0, help_text=_("Seconds that a decision may take."))
    placement = models.CharField(
        max_length=20,
        default=PlacementScore.PACK,
        choices=PlacementScore,
        help_text=_(
            "pack fills nodes one by one, spread evens them out, learnt prices keep room for the "
            "jobs that usually come."
        ),
    )
    weights = models.JSONField(
        default=dict, blank=True, help_text=_("Weights that differ from the defaults.")
    )
    kinds = models.JSONField(
        default=dict,
        blank=True,
        help_text=_("Job kind -> strategy, of the kinds that another strategy decides."),
    )
    shadow = models.CharField(
        max_length=40,
        blank=True,
        default="",
        help_text=_("Strategy that decides beside, for comparison only."),
    )
    solver = models.CharField(
        max_length=20, default="highs", choices=[("highs", "HiGHS"), ("cbc", "CBC")]
    )
    power_cap_w = models.FloatField(
        null=True,
        blank=True,
        help_text=_("Watts of board power that may be allocated; empty: no cap."),
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(budget_s__gt=0, budget_s__lte=60), name="policy_budget_in_0_60"
            ),
            models.CheckConstraint(
                condition=Q(power_cap_w=None) | Q(power_cap_w__gte=0, power_cap_w__lte=1e9),
                name="policy_power_cap_in_0_1e9",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster}: {self.strategy}"


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

    attempt = models.PositiveIntegerField(default=0, help_text=_("Times that it was started."))
    not_before = models.DateTimeField(null=True, help_text=_("Back-off after a failed start."))
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


class JobEvent(models.Model):
    """A move of a job, or news of it: when, who, why. Append-only."""

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=40)
    from_state = models.CharField(max_length=20, blank=True, default="")
    to_state = models.CharField(max_length=20, blank=True, default="")
    actor = models.CharField(max_length=200, help_text=_("A user's name, or a part of Kilter."))
    reason = models.CharField(max_length=60, blank=True, default="")
    message = models.TextField(blank=True, default="")
    data = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["at", "pk"]
        indexes = [models.Index(fields=["job", "at"], name="job_event_job_at")]

    def __str__(self) -> str:
        return f"{self.job_id} {self.kind}"


class Cycle(models.Model):
    """One run of snapshot, decide, commit and dispatch."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="cycles")
    at = models.DateTimeField()
    strategy = models.CharField(max_length=40)
    asked = models.CharField(max_length=40)
    status = models.CharField(max_length=40)
    note = models.TextField(blank=True, default="")
    objective = models.FloatField(null=True)
    objective_rules = models.FloatField(null=True)
    gap_frac = models.FloatField(null=True)
    pending_count = models.PositiveIntegerField()
    start_count = models.PositiveIntegerField()
    wall_ms = models.PositiveIntegerField()
    timings = models.JSONField(default=dict, blank=True, help_text=_("Step -> milliseconds."))
    fair_shares = models.JSONField(default=list, blank=True)
    clashes = models.JSONField(
        default=list, blank=True, help_text=_("Constraints that nothing can meet together.")
    )

    class Meta:
        ordering = ["-pk"]  # not by time: a clock that steps back must not hide the newest
        indexes = [models.Index(fields=["cluster", "-id"], name="cycle_cluster_newest")]

    def __str__(self) -> str:
        return f"{self.cluster} {self.at}"


class ShadowPlan(models.Model):
    """What another strategy decided on the snapshot of a cycle; it was not carried out."""

    cycle = models.OneToOneField(Cycle, on_delete=models.CASCADE, related_name="shadow")
    strategy = models.CharField(max_length=40, help_text=_("That was asked."))
    answered_by = models.CharField(max_length=40)
    status = models.CharField(max_length=40)
    note = models.TextField(blank=True, default="")
    objective = models.FloatField(null=True, help_text=_("Of the shadow's plan."))
    objective_carried = models.FloatField(null=True, help_text=_("Of the plan carried out."))
    start_count = models.PositiveIntegerField()
    wall_ms = models.PositiveIntegerField()
    differences = models.JSONField(
        default=dict, help_text=_("only_carried, only_shadow, moved: count and the first jobs.")
    )

    class Meta:
        ordering = ["-cycle_id"]

    def __str__(self) -> str:
        return f"{self.cycle_id}: {self.strategy}"


class StrategyAlarm(models.Model):
    """The rules answer for a cluster's strategy, because it fails."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="strategy_alarms")
    strategy = models.CharField(max_length=40, help_text=_("That was asked."))
    status = models.CharField(max_length=40, help_text=_("How it failed last."))
    note = models.TextField(blank=True, default="")
    count = models.PositiveIntegerField(help_text=_("Cycles in which it failed."))
    good_count = models.PositiveIntegerField(
        default=0, help_text=_("Cycles in a row since in which nothing failed.")
    )
    since = models.DateTimeField()
    last_at = models.DateTimeField(help_text=_("When it failed last."))
    cleared_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster"],
                condition=Q(cleared_at__isnull=True),
                name="strategy_alarm_one_open_per_cluster",
            )
        ]

    def __str__(self) -> str:
        return f"{self.cluster}: {self.strategy} {self.status} x {self.count}"


class Decision(models.Model):
    """What a cycle said of one job; a hold is written when its reason changes."""

    cycle = models.ForeignKey(Cycle, on_delete=models.CASCADE, related_name="decisions")
    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="decisions")
    verb = models.CharField(
        max_length=10, choices=[("start", _("start")), ("hold", _("hold"))], default="hold"
    )
    code = models.CharField(max_length=40, blank=True, default="")
    evidence = models.JSONField(default=dict, blank=True)
    score = models.FloatField(null=True)
    priority_parts = models.JSONField(default=dict, blank=True)
    expected_start_p50 = models.DateTimeField(null=True)
    expected_start_p90 = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-cycle_id", "pk"]
        indexes = [models.Index(fields=["job", "-cycle"], name="decision_job_cycle")]

    def __str__(self) -> str:
        return f"{self.verb} {self.job_id}"


class LedgerEntry(models.Model):
    """What one placement held of one flavor, booked at release. Append-only, exact integers."""

    placement = models.ForeignKey(Placement, on_delete=models.PROTECT, related_name="ledger")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="ledger")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="ledger")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="ledger"
    )
    flavor = models.CharField(max_length=80)
    milli = models.BigIntegerField(help_text=_("Held, in thousandths of a device or core."))
    compute_units = models.FloatField(null=True, help_text=_("CU of all that was held."))
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField()
    allocated_milli_us = models.DecimalField(
        max_digits=30, decimal_places=0, help_text=_("milli times microseconds held.")
    )
    utilised_milli_us = models.DecimalField(
        max_digits=30,
        decimal_places=0,
        null=True,
        help_text=_("Part of it that samples saw busy; empty where there were none."),
    )

    class Meta:
        ordering = ["closed_at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["placement", "flavor"], name="ledger_unique_flavor"),
            models.CheckConstraint(
                condition=Q(closed_at__gte=F("opened_at")), name="ledger_closed_after_opened"
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "opened_at"], name="ledger_tenant_opened"),
            models.Index(fields=["cluster", "closed_at"], name="ledger_cluster_closed"),
        ]

    def __str__(self) -> str:
        return f"{self.placement_id} {self.flavor}"


for _model in (SchedulingPolicy, PriorityClass):
    auditlog.register(_model)
