"""The quota bar as plain geometry: what is held, borrowed and asked for, against the quota.

Drawn as SVG with percentages as attributes: the content security policy allows no style attribute.
"""

from dataclasses import dataclass

from portal.pages.colours import pressure_token


@dataclass(frozen=True, slots=True)
class Bar:
    """One tenant's standing for one flavor, all in the flavor's milli-units.

    Attributes:
        held: allocated now, borrowed included.
        nominal: what the tenant owns.
        limit: the most it may hold, borrowing included; None = no limit.
        asked: what this request would add; 0 = none.
        label: what a screen reader says.
    """

    held: int
    nominal: int
    limit: int | None = None
    asked: int = 0
    label: str = ""

    @property
    def scale(self) -> int:
        """Return the amount at the right end, never 0."""
        return max(self.limit or 0, self.nominal, self.held + self.asked, 1)

    @property
    def nominal_pct(self) -> float:
        """Return where the nominal marker stands, 0..100."""
        return _pct(self.nominal, self.scale)

    @property
    def is_over(self) -> bool:
        """Return whether the request would pass the limit."""
        return self.limit is not None and self.held + self.asked > self.limit


@dataclass(frozen=True, slots=True)
class BarSegment:
    """One piece of the bar: its CSS class, where it starts and how wide it is, in per cent."""

    kind: str
    start_pct: float
    width_pct: float


def bar_segments(bar: Bar) -> tuple[BarSegment, ...]:
    """Return the visible pieces from left to right: own, borrowed, asked."""
    own = min(bar.held, bar.nominal)
    tight = pressure_token(bar.held / bar.limit) if bar.limit else "pressure-calm"
    asked = "asked-over" if bar.is_over else "asked"
    pieces = ((tight, own), ("borrowed", bar.held - own), (asked, bar.asked))
    segments, start = [], 0
    for kind, amount in pieces:
        if amount > 0:
            segments.append(BarSegment(kind, _pct(start, bar.scale), _pct(amount, bar.scale)))
            start += amount
    return tuple(segments)


def _pct(amount: int, scale: int) -> float:
    return round(100 * amount / scale, 2)
