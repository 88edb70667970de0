"""The world of tests that walk the whole portal."""

from tests.portal.world import world

__all__ = ["world"]
