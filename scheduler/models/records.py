"""What was said, decided and booked: rows that are written once."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from telemetry.models import Cluster
from tenants.models import Tenant


class JobEvent(models.Model):
    """A move of a job, or news of it: when, who, why. Append-only."""

    job = models.ForeignKey("scheduler.Job", on_delete=models.PROTECT, related_name="events")
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
    evict_count = models.PositiveIntegerField(default=0, db_default=0)
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
                fields=["cluster", "strategy"],
                condition=Q(cleared_at__isnull=True),
                name="strategy_alarm_one_open_per_strategy",
            )
        ]

    def __str__(self) -> str:
        return f"{self.cluster}: {self.strategy} {self.status} x {self.count}"


class Decision(models.Model):
    """What a cycle said of one job; a hold is written when its reason changes."""

    cycle = models.ForeignKey(Cycle, on_delete=models.CASCADE, related_name="decisions")
    job = models.ForeignKey("scheduler.Job", on_delete=models.PROTECT, related_name="decisions")
    verb = models.CharField(
        max_length=10,
        choices=[
            ("start", _("start")),
            ("hold", _("hold")),
            ("preempt", _("preempt")),
            ("resize", _("resize")),
        ],
        default="hold",
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

    placement = models.ForeignKey(
        "scheduler.Placement", on_delete=models.PROTECT, related_name="ledger"
    )
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
