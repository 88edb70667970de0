"""What exists: clusters, nodes, devices; and how busy they were: samples and rollups."""

from auditlog.registry import auditlog
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from telemetry.choices import ClusterKind, DeviceHealth, NodeState, Scheduling


class Cluster(models.Model):
    """A fleet with one scheduler."""

    slug = models.SlugField(_("slug"), unique=True, max_length=63)
    name = models.CharField(_("name"), max_length=200)
    kind = models.CharField(_("kind"), max_length=20, choices=ClusterKind)
    enabled = models.BooleanField(_("enabled"), default=True)
    clock_scale = models.FloatField(
        default=1.0, help_text=_("Simulated seconds per real second; 1 on real clusters.")
    )
    options = models.JSONField(default=dict, blank=True)
    sampled_at = models.DateTimeField(null=True, help_text=_("Last time that sensing succeeded."))
    sense_error = models.TextField(
        blank=True, default="", help_text=_("Why sensing failed last time.")
    )

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(condition=Q(clock_scale__gt=0), name="cluster_clock_scale_gt_0")
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def is_simulated(self) -> bool:
        """Return whether what it shows is invented."""
        return self.kind == ClusterKind.SIMULATED


class Node(models.Model):
    """One machine of a cluster. The allocated columns are kept by database triggers on holds."""

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="nodes")
    name = models.CharField(max_length=253)
    cpu_milli = models.BigIntegerField(help_text=_("Thousandths of a core that jobs may use."))
    memory_mib = models.BigIntegerField(help_text=_("Memory in MiB that jobs may use."))
    allocated_cpu_milli = models.BigIntegerField(default=0)
    allocated_memory_mib = models.BigIntegerField(default=0)
    state = models.CharField(max_length=20, choices=NodeState, default=NodeState.READY)
    scheduling = models.CharField(max_length=20, choices=Scheduling, default=Scheduling.OPEN)
    scheduling_reason = models.CharField(max_length=500, blank=True, default="")
    labels = models.JSONField(default=dict, blank=True)
    taints = ArrayField(models.CharField(max_length=317), default=list, blank=True)
    notes = models.JSONField(default=dict, blank=True)
    seen_at = models.DateTimeField(null=True)
    cpu_utilised_frac = models.FloatField(null=True)
    memory_used_mib = models.BigIntegerField(null=True)

    class Meta:
        ordering = ["cluster_id", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="node_unique_name"),
            models.CheckConstraint(
                condition=Q(cpu_milli__gte=0, memory_mib__gte=0), name="node_capacity_gte_0"
            ),
            models.CheckConstraint(
                condition=Q(allocated_cpu_milli__gte=0, allocated_memory_mib__gte=0),
                name="node_allocated_gte_0",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Device(models.Model):
    """One accelerator of a node. The allocated columns are kept by database triggers on holds."""

    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="devices")
    uid = models.CharField(max_length=200)
    index = models.PositiveIntegerField(help_text=_("As the vendor's tool counts on the node."))
    vendor = models.CharField(max_length=40)
    model = models.CharField(max_length=200, help_text=_("As the driver names it."))
    flavor = models.CharField(max_length=80, help_text=_("Slug of the accelerator model."))
    memory_mib = models.BigIntegerField(help_text=_("Device memory in MiB; 0 where unknown."))
    compute_units = models.FloatField(
        null=True, help_text=_("TFLOPS of dense FP16; empty where the model is unknown.")
    )
    power_limit_w = models.FloatField(null=True)
    health = models.CharField(max_length=20, choices=DeviceHealth, default=DeviceHealth.HEALTHY)
    health_note = models.CharField(max_length=500, blank=True, default="")
    link_group = models.IntegerField(default=-1)
    numa_node = models.IntegerField(
        default=-1, db_default=-1, help_text=_("Of the node that it is in; -1 where unknown.")
    )
    nic = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text=_("Nearest network card, as the system names it; empty where unknown."),
    )
    throttled = models.BooleanField(
        default=False, db_default=False, help_text=_("Its hardware slows it down for heat.")
    )
    mig_profile = models.CharField(max_length=40, blank=True, default="")
    parent_uid = models.CharField(max_length=200, blank=True, default="")
    allocated_milli = models.IntegerField(default=0)
    allocated_memory_mib = models.BigIntegerField(default=0)
    seen_at = models.DateTimeField(null=True)
    utilised_frac = models.FloatField(null=True)
    memory_used_mib = models.BigIntegerField(null=True)
    power_w = models.FloatField(null=True)
    temperature_c = models.FloatField(null=True)

    class Meta:
        ordering = ["node_id", "index"]
        constraints = [
            models.UniqueConstraint(fields=["node", "uid"], name="device_unique_uid"),
            models.CheckConstraint(
                condition=Q(allocated_milli__gte=0, allocated_milli__lte=1000),
                name="device_allocated_milli_0_to_1000",
            ),
            models.CheckConstraint(
                condition=Q(allocated_memory_mib__gte=0)
                & (Q(memory_mib=0) | Q(allocated_memory_mib__lte=F("memory_mib"))),
                name="device_allocated_memory_fits",
            ),
            models.CheckConstraint(
                condition=Q(compute_units__isnull=True) | Q(compute_units__gt=0),
                name="device_compute_units_unknown_or_gt_0",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.flavor}#{self.index}"


class Sample(models.Model):
    """One reading of a node, a device or a job; rows go in by COPY, partitions are days.

    `device_id` empty and `job_uid` empty: the node itself, `utilised_frac` of its cores.
    """

    id = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    cluster_id = models.BigIntegerField()
    node_id = models.BigIntegerField(null=True)
    device_id = models.BigIntegerField(null=True)
    job_uid = models.UUIDField(null=True)
    utilised_frac = models.FloatField(null=True)
    allocated_frac = models.FloatField(null=True)
    memory_used_mib = models.BigIntegerField(null=True)
    power_w = models.FloatField(null=True)
    temperature_c = models.FloatField(null=True)

    class Meta:
        managed = False
        db_table = "telemetry_sample"
        ordering = ["at"]

    def __str__(self) -> str:
        return f"{self.at}"


class Rollup(models.Model):
    """Means and maxima of samples over a period of 60 s or 3600 s, same subjects as samples."""

    period_s = models.PositiveIntegerField()
    at = models.DateTimeField(help_text=_("Start of the period."))
    cluster_id = models.BigIntegerField()
    node_id = models.BigIntegerField(null=True)
    device_id = models.BigIntegerField(null=True)
    job_uid = models.UUIDField(null=True)
    utilised_mean_frac = models.FloatField(null=True)
    utilised_max_frac = models.FloatField(null=True)
    allocated_mean_frac = models.FloatField(null=True)
    memory_max_mib = models.BigIntegerField(null=True)
    power_mean_w = models.FloatField(null=True)
    temperature_max_c = models.FloatField(null=True)
    sample_count = models.PositiveIntegerField()

    class Meta:
        ordering = ["period_s", "at"]
        constraints = [
            models.UniqueConstraint(
                fields=["period_s", "at", "cluster_id", "node_id", "device_id", "job_uid"],
                name="rollup_unique_subject",
                nulls_distinct=False,
            )
        ]
        indexes = [
            models.Index(fields=["period_s", "device_id", "at"], name="rollup_device_at"),
            models.Index(fields=["period_s", "job_uid", "at"], name="rollup_job_at"),
        ]

    def __str__(self) -> str:
        return f"{self.period_s} s from {self.at}"


# Only what people say of a node; what is measured of it would drown that.
auditlog.register(Node, include_fields=["scheduling", "scheduling_reason"])
