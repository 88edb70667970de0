"""How fast classes of jobs run on flavors, as admins say and as runs show."""

from auditlog.registry import auditlog
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from tenants.models import Tenant

THROUGHPUT_MOST = 2000
"""So many rows there may be: every decision reads them all."""


class Throughput(models.Model):
    """How fast a class of jobs runs on a flavor, against the flavor it is fastest on."""

    job_class = models.CharField(
        max_length=80, help_text=_("Class of jobs, or a kind for jobs without a class.")
    )
    flavor = models.CharField(max_length=80)
    throughput = models.FloatField(
        help_text=_("Against the flavor it is fastest on: more than 0, at most 1.")
    )
    note = models.CharField(
        max_length=200, blank=True, default="", help_text=_("Where the number comes from.")
    )

    class Meta:
        ordering = ["job_class", "flavor"]
        constraints = [
            models.UniqueConstraint(
                fields=["job_class", "flavor"], name="throughput_unique_class_flavor"
            ),
            models.CheckConstraint(
                condition=Q(throughput__gt=0, throughput__lte=1), name="throughput_in_0_1"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_class} {self.flavor}"


class LearntThroughput(models.Model):
    """How fast a tenant's class of jobs runs on a flavor, as its own runs of the same work show."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="learnt_throughputs")
    job_class = models.CharField(max_length=80)
    flavor = models.CharField(max_length=80)
    throughput = models.FloatField(
        help_text=_("Against the fastest flavor that was compared: more than 0, at most 1.")
    )
    work_count = models.PositiveIntegerField(
        help_text=_("Different works that ran there and on another flavor.")
    )
    run_count = models.PositiveIntegerField(help_text=_("Runs of them there."))
    last_run_at = models.DateTimeField(help_text=_("When the newest run of the class there ended."))

    class Meta:
        ordering = ["tenant_id", "job_class", "flavor"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "job_class", "flavor"], name="learnt_unique_class_flavor"
            ),
            models.CheckConstraint(
                condition=Q(throughput__gt=0, throughput__lte=1), name="learnt_in_0_1"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.job_class} {self.flavor}"


auditlog.register(Throughput)
