"""What one job uses: processor, memory, devices, one above the other on one time axis."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
class JobSampleRow:
    """One sample of a job, all its replicas together.

    Attributes:
        at: ISO stamp in UTC.
        at_s: the same as epoch seconds.
        cpu_milli: processor used, thousandths of a core; None = no reading.
        memory_mib: memory used, MiB; None = no reading.
        device_frac: mean utilisation of its devices, 0..1; None = no reading.
    """

    at: str
    at_s: float
    cpu_milli: float | None
    memory_mib: float | None
    device_frac: float | None


@dataclass(frozen=True, slots=True)
class _Panel:
    """One measure: its key (also of its words), colour token, values and how one reads on hover."""

    key: str
    token: str
    values: Sequence[float | None]
    hover: str = "%{y:.2f}"


_GAP = 0.09


def job_metrics_figure(
    rows: Sequence[JobSampleRow],
    labels: Labels,
    meta: Meta,
    *,
    step_s: float,
    has_devices: bool,
) -> FigureDict:
    """Return the measures as small panels that share one time axis.

    Args:
        rows: samples in ascending time.
        labels: `cpu`, `memory`, `devices`, and their axes `cpu_axis` (cores), `memory_axis` (GiB),
            `devices_axis` (per cent).
        meta: the note.
        step_s: usual distance of two samples; more than 2.5 of them apart is a gap.
        has_devices: whether the job holds any; without, that panel is left out.
    """
    panels = _panels(rows, has_devices=has_devices)
    traces, axes = [], {}
    for index, panel in enumerate(panels):
        number = "" if index == 0 else str(index + 1)
        times, seconds = [row.at for row in rows], [row.at_s for row in rows]
        xs, ys = with_gaps(times, panel.values, seconds, gap_s=2.5 * step_s)
        traces.append(_line(panel, xs, ys, name=labels[panel.key], yaxis=f"y{number}"))
        axes[f"yaxis{number}"] = _axis(panel, labels[f"{panel.key}_axis"], index, len(panels))
    anchor = "y" if len(panels) == 1 else f"y{len(panels)}"
    layout = {"xaxis": time_axis(anchor=anchor), "height": 120 + 130 * len(panels)}
    return figure(traces, {**layout, **axes}, meta)


def _panels(rows: Sequence[JobSampleRow], *, has_devices: bool) -> list[_Panel]:
    devices = _Panel("devices", "utilised", [row.device_frac for row in rows], "%{y:.0%}")
    cpu = _Panel("cpu", "allocated", [_scaled(row.cpu_milli, 1000) for row in rows])
    memory = _Panel("memory", "memory", [_scaled(row.memory_mib, 1024) for row in rows])
    return [devices, cpu, memory] if has_devices else [cpu, memory]


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else value / by


def _line(
    panel: _Panel, xs: list[str], ys: list[float | None], *, name: str, yaxis: str
) -> go.Scatter:
    return go.Scatter(
        x=xs,
        y=ys,
        yaxis=yaxis,
        name=name,
        meta={"key": panel.key},
        mode="lines",
        connectgaps=False,
        line={"color": var(panel.token), "width": 2},
        hovertemplate=panel.hover,
    )


def _axis(panel: _Panel, title: str, index: int, count: int) -> dict[str, Any]:
    """Return the axis of the panel that stands `index` from the top among `count`."""
    height = (1 - _GAP * (count - 1)) / count
    top = 1 - index * (height + _GAP)
    domain = [max(0.0, round(top - height, 4)), round(top, 4)]
    percent = {"tickformat": ".0%", "range": [0, 1.02]} if panel.key == "devices" else {}
    return value_axis(title, domain=domain, nticks=4, **percent)
