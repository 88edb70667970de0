"""What was held, and how much of it was busy: the stack whose upper part is waste."""

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
class UsageRow:
    """One tenant's usage in the window.

    Attributes:
        tenant: name as the viewer may see it.
        allocated: what it held, CU-hours or device-hours.
        utilised: how much of that was busy, same unit, <= allocated; None = not measured.
    """

    tenant: str
    allocated: float
    utilised: float | None


def usage_figure(rows: Sequence[UsageRow], labels: Labels, meta: Meta) -> FigureDict:
    """Return a bar per tenant as long as what it held: utilised, idle, not measured.

    Args:
        rows: in the order to be shown.
        labels: `utilised`, `idle`, `unmeasured`, `axis` (with its unit).
        meta: the note.
    """
    known = [row.utilised is not None for row in rows]
    busy = [row.utilised or 0.0 for row in rows]
    rest = [max(0.0, row.allocated - used) for row, used in zip(rows, busy, strict=True)]
    idle = [left if is_known else 0.0 for left, is_known in zip(rest, known, strict=True)]
    traces = [_part(rows, busy, "utilised", labels["utilised"])]
    traces.append(_idle(rows, idle, labels["idle"]))
    if not all(known):
        dark = [0.0 if is_known else left for left, is_known in zip(rest, known, strict=True)]
        traces.append(_part(rows, dark, "track", labels["unmeasured"]))
    layout = {
        "barmode": "stack",
        "xaxis": value_axis(labels["axis"]),
        "yaxis": name_axis(),
        "hovermode": "y unified",
        "height": rows_height(len(rows)),
    }
    return figure(traces, layout, meta)


def _part(rows: Sequence[UsageRow], widths: list[float], token: str, label: str) -> go.Bar:
    return go.Bar(
        x=widths,
        y=[plain(row.tenant) for row in rows],
        orientation="h",
        name=label,
        width=0.6,
        marker={"color": var(token)},
        hovertemplate="%{x:,.1f}",
    )


def _idle(rows: Sequence[UsageRow], widths: list[float], label: str) -> go.Bar:
    """Return the idle part, hatched as idle devices are in the grid."""
    part = _part(rows, widths, "idle", label)
    pattern = {"shape": "/", "fgcolor": var("idle"), "bgcolor": var("track"), "solidity": 0.4}
    part.marker = {"color": var("track"), "pattern": pattern}
    return part
