"""The world of the API's tests."""

from tests.portal.world import (
    ada,
    anonymous,
    cycle,
    eve,
    lead,
    root,
    run_first,
    viewer,
    world,
)

__all__ = ["ada", "anonymous", "cycle", "eve", "lead", "root", "run_first", "viewer", "world"]
