"""What people call a flavor."""

from django.utils.translation import gettext as _

from scheduler.core.resources import CPU_FLAVOR
from telemetry.flavors import BY_SLUG


def flavor_label(flavor: str) -> str:
    """Return a flavor's name for people; its slug where the catalogue does not know it."""
    if flavor == CPU_FLAVOR:
        return _("CPU cores")
    entry = BY_SLUG.get(flavor)
    return flavor if entry is None else entry.name
