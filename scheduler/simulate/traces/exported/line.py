"""One line of a trace: an object of which every value is asked for once, and none may be left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.simulate.errors import TraceError
from scheduler.simulate.traces.cells import Cell


@dataclass(slots=True)
class Line:
    """One object of the file, or an object within one.

    Attributes:
        file, number: where it stands.
        values: what was not asked for yet.
        within: names of the objects that it is within, each with a space behind it.
    """

    file: str
    number: int
    values: dict[str, Any]
    within: str = ""

    def cell(self, name: str, default: object = None) -> Cell:
        """Return a value."""
        return Cell(self.file, self.number, self.within + name, self.values.pop(name, default))

    def flag(self, name: str, *, default: bool) -> bool:
        """Return what is true or false."""
        return self.cell(name, default).flag()

    def word(self, name: str, known: Sequence[str] = ()) -> str:
        """Return a text, "" where there is none; one of those known, where some are given."""
        cell = self.cell(name, "")
        word = cell.text(empty=True)
        if word and known and word not in known:
            raise cell.error(f"is not one of {', '.join(one for one in known if one)}")
        return word

    def cells(self, name: str) -> list[Cell]:
        """Return the values of a list."""
        cell = self.cell(name, [])
        if not isinstance(cell.value, list):
            raise cell.error("is no list")
        return [cell._replace(value=one) for one in cell.value]

    def names(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(cell.text() for cell in self.cells(name))

    def integers(self, name: str, *, low: int, count: int) -> tuple[int, ...]:
        """Return a list of so many whole numbers, or ()."""
        cells = self.cells(name)
        if cells and len(cells) != count:
            raise cells[0]._replace(value=len(cells)).error(f"values are not {count}")
        return tuple(cell.integer(low=low) for cell in cells)

    def numbers(self, name: str, *, below: int) -> frozenset[int]:
        """Return a list of numbers of things of which there are so many, counted from 0."""
        return frozenset(cell.integer(high=below - 1) for cell in self.cells(name))

    def mapping(self, name: str) -> dict[str, Cell]:
        """Return the values of an object."""
        inner = self.inner(name)
        return {key: inner.cell(key) for key in list(inner.values)}

    def inner(self, name: str) -> "Line":
        """Return an object within; its values must all be asked for, too (`done`)."""
        cell = self.cell(name, {})
        if not isinstance(cell.value, dict):
            raise cell.error("is no object")
        return Line(self.file, self.number, dict(cell.value), f"{cell.column} ")

    def done(self) -> None:
        """Refuse what was not asked for."""
        if self.values:
            name = min(self.values)
            place = self.within + name
            raise TraceError(self.file, self.number, place, self.values[name], "is not known here")


def new(name: Cell, known: Mapping[str, object]) -> str:
    """Return a name that did not occur yet."""
    if name.text() in known:
        raise name.error("occurs twice")
    return name.text()


def known(name: Cell, names: Mapping[str, object], what: str) -> str:
    """Return a name that must have occurred."""
    if name.text() not in names:
        raise name.error(f"is no {what} of this file so far")
    return name.text()
