"""Held against busy over time: the two lines whose distance is the waste."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from portal.pages.charts.frame import (
    FigureDict,
    Labels,
    Meta,
    figure,
    time_axis,
    value_axis,
    with_gaps,
)
from portal.pages.colours import var


@dataclass(frozen=True, slots=True)
class UtilisationRow:
    """One sample of a fleet.

    Attributes:
        at: ISO stamp in UTC.
        at_s: the same as epoch seconds.
        allocated_frac: part of the device capacity that is held, 0..1; None = no reading.
        utilised_frac: part that is busy, 0..1; None = no reading.
    """

    at: str
    at_s: float
    allocated_frac: float | None
    utilised_frac: float | None


def utilisation_figure(
    rows: Sequence[UtilisationRow], labels: Labels, meta: Meta, *, step_s: float
) -> FigureDict:
    """Return allocated and utilised share over time, broken where there is no data.

    Args:
        rows: samples in ascending time.
        labels: `allocated`, `utilised`, `axis` (with its unit).
        meta: the note.
        step_s: usual distance of two samples; more than 2.5 of them apart is a gap.
    """
    traces = [
        _line(rows, [row.allocated_frac for row in rows], "allocated", labels, step_s),
        _line(rows, [row.utilised_frac for row in rows], "utilised", labels, step_s),
    ]
    axis = value_axis(labels["axis"], range=[0, 1.02], tickformat=".0%", nticks=6)
    return figure(traces, {"xaxis": time_axis(), "yaxis": axis}, meta)


def _line(
    rows: Sequence[UtilisationRow],
    values: Sequence[float | None],
    key: str,
    labels: Labels,
    step_s: float,
) -> go.Scatter:
    xs, ys = with_gaps(
        [row.at for row in rows], values, [row.at_s for row in rows], gap_s=2.5 * step_s
    )
    held = key == "allocated"
    return go.Scatter(
        x=xs,
        y=ys,
        name=labels[key],
        meta={"key": f"{key}_frac"},
        mode="lines",
        connectgaps=False,
        line={"color": var(key), "width": 2, "shape": "hv" if held else "linear"},
        fill="none" if held else "tozeroy",
        hovertemplate="%{y:.0%}",
    )
