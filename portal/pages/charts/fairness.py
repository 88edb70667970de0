"""Who is owed what, who gets what: one line per tenant."""

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
class FairnessRow:
    """One tenant's standing for one flavor, in devices (thousandths are fractions here).

    Attributes:
        tenant: name as the viewer may see it.
        entitled: what its quota owns.
        fair: its fair share now.
        allocated: what it holds.
        requested: what it holds and waits for.
    """

    tenant: str
    entitled: float
    fair: float
    allocated: float
    requested: float


_MARKS = (("entitled", "circle-open"), ("fair", "diamond"), ("allocated", "square"))


def fairness_figure(rows: Sequence[FairnessRow], labels: Labels, meta: Meta) -> FigureDict:
    """Return a dumbbell per tenant: entitled, fair and allocated, over a bar of what it asks for.

    Args:
        rows: one per tenant, in the order to be shown.
        labels: `requested`, `entitled`, `fair`, `allocated`, `axis` (with its unit).
        meta: the note.
    """
    names = [plain(row.tenant) for row in rows]
    asked = go.Bar(
        x=[row.requested for row in rows],
        y=names,
        orientation="h",
        name=labels["requested"],
        meta={"key": "requested"},
        width=0.5,
        marker={"color": var("requested"), "opacity": 0.45},
        hovertemplate="%{x:.4~g}",
    )
    marks = [_marks(rows, names, key, symbol, labels[key]) for key, symbol in _MARKS]
    layout = {
        "xaxis": value_axis(labels["axis"]),
        "yaxis": name_axis(),
        "hovermode": "y unified",
        "height": rows_height(len(rows)),
    }
    return figure([asked, _stems(rows), *marks], layout, meta)


def _stems(rows: Sequence[FairnessRow]) -> go.Scatter:
    """Return one thin line per tenant from its fair share to what it holds."""
    xs: list[float | None] = []
    ys: list[str | None] = []
    for row in rows:
        xs += [row.fair, row.allocated, None]
        ys += [plain(row.tenant), plain(row.tenant), None]
    line = {"color": var("figure-text"), "width": 2}
    return go.Scatter(x=xs, y=ys, mode="lines", line=line, showlegend=False, hoverinfo="skip")


def _marks(
    rows: Sequence[FairnessRow], names: list[str], key: str, symbol: str, label: str
) -> go.Scatter:
    size = 13 if key == "entitled" else 11
    return go.Scatter(
        x=[getattr(row, key) for row in rows],
        y=names,
        name=label,
        meta={"key": key},
        mode="markers",
        marker={
            "symbol": symbol,
            "size": size,
            "color": var(key),
            "line": {"color": var(key if key == "entitled" else "figure-paper"), "width": 1.5},
        },
        hovertemplate="%{x:.4~g}",
    )
