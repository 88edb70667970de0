"""Quota of one or more flavors: own, borrowed, and what this request would add."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from portal.pages.charts.frame import (
    FigureDict,
    Labels,
    Meta,
    figure,
    name_axis,
    plain,
    rows_height,
    value_axis,
)
from portal.pages.colours import var


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One line of a quota, in devices (or cores for the flavor `cpu`).

    Attributes:
        name: flavor or tenant, as shown.
        held: allocated now, what is borrowed included.
        nominal: what the tenant owns.
        limit: the most it may hold; None = no limit.
        asked: what this request would add; 0 = none.
    """

    name: str
    held: float
    nominal: float
    limit: float | None = None
    asked: float = 0.0


def quota_figure(rows: Sequence[QuotaRow], labels: Labels, meta: Meta) -> FigureDict:
    """Return one stacked bar per row, with a marker at nominal and one at the limit.

    Args:
        rows: in the order to be shown.
        labels: `own`, `borrowed`, `asked`, `nominal`, `limit`, `axis` (with its unit).
        meta: the note.
    """
    traces = [
        _part(rows, [min(row.held, row.nominal) for row in rows], "allocated", labels["own"]),
        _part(
            rows, [max(0.0, row.held - row.nominal) for row in rows], "borrowed", labels["borrowed"]
        ),
    ]
    if any(row.asked > 0 for row in rows):
        traces.append(_asked(rows, labels["asked"]))
    traces.append(_mark(rows, [row.nominal for row in rows], "entitled", labels["nominal"]))
    if any(row.limit is not None for row in rows):
        traces.append(_mark(rows, [row.limit for row in rows], "pressure-over", labels["limit"]))
    layout = {
        "barmode": "stack",
        "xaxis": value_axis(labels["axis"]),
        "yaxis": name_axis(),
        "hovermode": "y unified",
        "height": rows_height(len(rows)),
    }
    return figure(traces, layout, meta)


def is_over(row: QuotaRow) -> bool:
    """Return whether the request would pass the limit."""
    return row.limit is not None and row.held + row.asked > row.limit


def _part(rows: Sequence[QuotaRow], widths: list[float], token: str, label: str) -> go.Bar:
    return go.Bar(
        x=widths,
        y=[plain(row.name) for row in rows],
        orientation="h",
        name=label,
        width=0.55,
        marker={"color": var(token)},
        hovertemplate="%{x:.4~g}",
    )


def _asked(rows: Sequence[QuotaRow], label: str) -> go.Bar:
    """Return the striped piece; red where it would pass the limit."""
    part = _part(rows, [row.asked for row in rows], "allocated", label)
    colours = [var("pressure-over" if is_over(row) else "allocated") for row in rows]
    part.marker = {
        "color": var("track"),
        "pattern": {"shape": "/", "fgcolor": colours, "bgcolor": var("track"), "solidity": 0.45},
        "line": {"color": colours, "width": 1},
    }
    return part


def _mark(
    rows: Sequence[QuotaRow], places: Sequence[float | None], token: str, label: str
) -> go.Scatter:
    line = {"color": var(token), "width": 3}
    return go.Scatter(
        x=list(places),
        y=[plain(row.name) for row in rows],
        name=label,
        mode="markers",
        marker={"symbol": "line-ns", "size": 22, "color": var(token), "line": line},
        hovertemplate="%{x:.4~g}",
    )
