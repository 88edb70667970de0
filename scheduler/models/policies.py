"""What admins set: how decisions are made on a cluster, and which priorities there are."""

from auditlog.registry import auditlog
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from scheduler.choices import PlacementScore, Solver
from telemetry.models import Cluster


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
    solver = models.CharField(max_length=20, default=Solver.HIGHS, choices=Solver)
    power_cap_w = models.FloatField(
        null=True,
        blank=True,
        help_text=_("Watts of board power that may be allocated; empty: no cap."),
    )
    preempt_by_priority = models.BooleanField(
        default=False, db_default=False, help_text=_("A job may evict jobs of lower priority.")
    )
    preempt_by_reclaim = models.BooleanField(
        default=True,
        db_default=True,
        help_text=_("A tenant below its quota may claim it back from those above theirs."),
    )
    preempt_by_fair_share = models.BooleanField(
        default=True,
        db_default=True,
        help_text=_("A tenant that borrows may take from one that borrows more for its weight."),
    )
    preempt_delay_s = models.FloatField(
        default=60.0, db_default=60.0, help_text=_("A job waits so long before it evicts anybody.")
    )
    preempt_min_runtime_s = models.FloatField(
        default=600.0, db_default=600.0, help_text=_("Nobody is evicted before they ran so long.")
    )
    preempt_most_evictions = models.PositiveIntegerField(
        default=3, db_default=3, help_text=_("Who was evicted so often is left alone.")
    )
    preempt_grace_s = models.FloatField(
        default=30.0, db_default=30.0, help_text=_("From the order to end to the end, in seconds.")
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
            models.CheckConstraint(
                condition=Q(
                    preempt_delay_s__gte=0, preempt_min_runtime_s__gte=0, preempt_grace_s__gte=0
                ),
                name="policy_preempt_gte_0",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster}: {self.strategy}"


for _model in (SchedulingPolicy, PriorityClass):
    auditlog.register(_model)
