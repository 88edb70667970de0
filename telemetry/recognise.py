"""Which flavor a device is, remembered: a fleet has thousands of devices of a few models."""

from functools import lru_cache

from telemetry import flavors
from telemetry.flavors import FlavorEntry


@lru_cache(maxsize=1024)
def recognise(vendor: str, model: str, mig_profile: str) -> tuple[str, FlavorEntry | None]:
    """Return a model's flavor slug, and what the catalogue knows of it; None = not in it."""
    entry = flavors.lookup(vendor, model, mig_profile)
    return flavors.flavor_slug(vendor, model, mig_profile), entry
