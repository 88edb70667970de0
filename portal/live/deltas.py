"""What changed between two states of a page. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Rows: TypeAlias = Mapping[str, dict[str, Any]]
"""Key -> row, JSON-serialisable."""


@dataclass(frozen=True, slots=True)
class Delta:
    """What turns one state into another: whole rows by key, and keys that are gone."""

    changed: dict[str, dict[str, Any]]
    removed: list[str]

    def __bool__(self) -> bool:
        """Return whether anything is different."""
        return bool(self.changed or self.removed)


def diff(old: Rows, new: Rows) -> Delta:
    """Return what turns `old` into `new`."""
    return Delta(
        changed={key: row for key, row in new.items() if old.get(key) != row},
        removed=[key for key in old if key not in new],
    )
