"""The catalogue of accelerators and processors: what a model can do, and from where we know it.

Compute units (CU) of a device are its TFLOPS of dense FP16. A model that is not in the catalogue is
accepted under a slug of its own and shown as unknown, never as zero.
"""

from telemetry.flavors.entry import FlavorEntry
from telemetry.flavors.match import BY_SLUG, CATALOGUE, flavor_slug, lookup, normalise

__all__ = ["BY_SLUG", "CATALOGUE", "FlavorEntry", "flavor_slug", "lookup", "normalise"]
