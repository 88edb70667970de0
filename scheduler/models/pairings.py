"""How fast classes of jobs run that share a device, as admins say."""

from auditlog.registry import auditlog
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from scheduler.core.interference import LEAST_SHARED

PAIRED_CLASSES_MOST = 16
"""So many classes may be paired: a decision counts each of them on every device."""


class Pairing(models.Model):
    """How fast two classes of jobs run beside each other on one device, against alone on it."""

    class_a = models.CharField(max_length=80, help_text=_("Interference class."))
    class_b = models.CharField(max_length=80, help_text=_("The other, or the same."))
    throughput_a = models.FloatField(help_text=_("Of the first beside the second, 0 to 1."))
    throughput_b = models.FloatField(help_text=_("Of the second beside the first, 0 to 1."))
    note = models.CharField(
        max_length=200, blank=True, default="", help_text=_("Where the number comes from.")
    )

    class Meta:
        ordering = ["class_a", "class_b"]
        constraints = [
            models.UniqueConstraint(fields=["class_a", "class_b"], name="pairing_unique_classes"),
            models.CheckConstraint(
                condition=Q(
                    throughput_a__gte=0,
                    throughput_a__lte=1,
                    throughput_b__gte=0,
                    throughput_b__lte=1,
                ),
                name="pairing_in_0_1",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.class_a} {self.class_b}"

    @property
    def shares(self) -> bool:
        """Return whether the two may share a device: neither is better off taking turns."""
        return min(self.throughput_a, self.throughput_b) >= LEAST_SHARED


auditlog.register(Pairing)
