"""What all figures share: colours by token, and a note that says what, whence and when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import plotly.graph_objects as go

from portal.pages.colours import var

FigureDict: TypeAlias = dict[str, Any]
Labels: TypeAlias = Mapping[str, str]
"""Words of one figure in the reader's language; each module lists its keys."""

_CLOCK = [
    {"dtickrange": [None, 60_000], "value": "%H:%M:%S"},
    {"dtickrange": [60_000, 86_400_000], "value": "%H:%M\n%Y-%m-%d"},
    {"dtickrange": [86_400_000, None], "value": "%m-%d\n%Y"},
]


@dataclass(frozen=True, slots=True)
class Meta:
    """The note under a figure.

    Attributes:
        what: what the numbers are, one sentence.
        source: where they come from.
        at: ISO stamp of the newest one, "" where there is none; the browser shows its age.
    """

    what: str
    source: str
    at: str = ""


def figure(traces: Sequence[Any], layout: Mapping[str, Any], meta: Meta) -> FigureDict:
    """Return traces and layout as a JSON-ready figure in the look of the portal.

    Args:
        traces: plotly traces, colours as tokens.
        layout: what differs from the common frame; a key given here replaces the common one.
        meta: the note.
    """
    frame = {
        **_frame(),
        **layout,
        "meta": {"what": meta.what, "source": meta.source, "at": meta.at},
    }
    drawn: FigureDict = go.Figure(data=list(traces), layout=frame).to_plotly_json()
    drawn["layout"].pop("template", None)  # plotly's own theme would outweigh the page's
    return drawn


def value_axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis of amounts from zero up; the title carries the unit."""
    axis = {"title": {"text": title, "standoff": 8}, "rangemode": "tozero", "zeroline": False}
    return {**axis, "gridcolor": var("figure-grid"), "fixedrange": True, "automargin": True, **more}


def time_axis(**more: Any) -> dict[str, Any]:
    """Return an axis of time without words, so that it reads the same in every language."""
    axis = {"type": "date", "tickformatstops": _CLOCK, "gridcolor": var("figure-grid")}
    return {**axis, "showgrid": False, "zeroline": False, "nticks": 7, **more}


def name_axis(**more: Any) -> dict[str, Any]:
    """Return an axis of names, first one on top."""
    axis = {"type": "category", "autorange": "reversed", "automargin": True, "fixedrange": True}
    return {**axis, "showgrid": False, **more}


def plain(name: str) -> str:
    """Return a name that plotly shows as it is; it would read `<` as its own markup."""
    return name.replace("&", "&amp;").replace("<", "&lt;")


def rows_height(count: int, *, row_px: int = 36, least_px: int = 190) -> int:
    """Return the height in pixels of a figure with one row per name."""
    return max(least_px, 124 + row_px * count)


def with_gaps(
    times: Sequence[str], values: Sequence[float | None], seconds: Sequence[float], gap_s: float
) -> tuple[list[str], list[float | None]]:
    """Return the series with a break wherever two samples are further apart than `gap_s`.

    Args:
        times: ISO stamps, ascending.
        values: one per time, None where there was no reading.
        seconds: the same times as epoch seconds.
        gap_s: the longest distance that still counts as connected, seconds.

    Raises:
        ValueError: the three are of different length.
    """
    xs: list[str] = []
    ys: list[float | None] = []
    last: float | None = None
    for time, value, second in zip(times, values, seconds, strict=True):
        if last is not None and second - last > gap_s:
            xs.append(time)
            ys.append(None)
        xs.append(time)
        ys.append(value)
        last = second
    return xs, ys


def _frame() -> dict[str, Any]:
    return {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": var("figure-text"), "size": 12},
        "margin": {"l": 48, "r": 16, "t": 34, "b": 40, "pad": 2},
        "hovermode": "x unified",
        "hoverlabel": {"bgcolor": var("figure-paper"), "font": {"color": var("entitled")}},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "traceorder": "normal",
        },
        "barcornerradius": 3,
    }
