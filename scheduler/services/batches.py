"""Cuts work into pieces that one transaction takes well."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

RowT = TypeVar("RowT")


def batched(rows: Iterable[RowT], size: int) -> Iterator[list[RowT]]:
    """Yield the rows in their order, `size` at a time, the last ones fewer."""
    rest = iter(rows)
    while batch := list(islice(rest, size)):
        yield batch
