"""When jobs were told that they would start, beside when they did."""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from telemetry.models import Cluster


class ExpectedStart(models.Model):
    """What a job was told first of its first start; waits are in real seconds from then."""

    job = models.OneToOneField(
        "scheduler.Job", on_delete=models.PROTECT, primary_key=True, related_name="expected_start"
    )
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="expected_starts")
    given_at = models.DateTimeField()
    planned_p50_s = models.FloatField(help_text=_("Before past errors were taken into account."))
    planned_p90_s = models.FloatField()
    told_p50_s = models.FloatField(help_text=_("What the user was shown."))
    told_p90_s = models.FloatField()
    gang = models.BooleanField(help_text=_("It has more than one replica."))
    over_at = models.DateTimeField(null=True, help_text=_("Empty while the job waits."))
    started = models.BooleanField(
        default=False, help_text=_("It waits no more because it was started.")
    )

    class Meta:
        ordering = ["-given_at", "job_id"]
        constraints = [
            models.CheckConstraint(
                condition=Q(started=False) | Q(over_at__isnull=False),
                name="expected_start_has_begun",
            ),
            models.CheckConstraint(
                condition=Q(
                    planned_p50_s__gte=0,
                    planned_p90_s__gte=F("planned_p50_s"),
                    told_p50_s__gte=0,
                    told_p90_s__gte=F("told_p50_s"),
                ),
                name="expected_start_p50_to_p90",
            ),
        ]
        indexes = [
            models.Index(
                fields=["cluster", "-given_at"],
                condition=Q(over_at__isnull=True),
                name="expected_start_waits",
            ),
            models.Index(
                fields=["cluster", "-over_at"],
                condition=Q(over_at__isnull=False),
                name="expected_start_over",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_id}: {self.told_p50_s:.0f} s"
