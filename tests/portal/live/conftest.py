"""The world of the live pages' tests."""

from tests.portal.world import cycle, run_first, world

__all__ = ["cycle", "run_first", "world"]
