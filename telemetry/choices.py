"""States of what exists, with their labels in one place."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class ClusterKind(TextChoices):
    """What runs a cluster's work and reads its hardware: keys of EXECUTORS and COLLECTORS."""

    LOCAL = "local", _("this machine")
    SIMULATED = "simulated", _("simulated")


class NodeState(TextChoices):
    """What is known of a node."""

    READY = "ready", _("ready")
    UNKNOWN = "unknown", _("unknown")


class Scheduling(TextChoices):
    """What an admin lets a node take."""

    OPEN = "open", _("open")
    CORDONED = "cordoned", _("cordoned")
    DRAINING = "draining", _("draining")


class DeviceHealth(TextChoices):
    """What the driver says of a device."""

    HEALTHY = "healthy", _("healthy")
    UNHEALTHY = "unhealthy", _("unhealthy")
    LOST = "lost", _("lost")
    UNKNOWN = "unknown", _("unknown")
