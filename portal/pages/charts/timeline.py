"""A job's life as one bar: how long it was in each state."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import plotly.graph_objects as go

from portal.pages.charts.frame import FigureDict, Labels, Meta, figure, name_axis, time_axis
from portal.pages.colours import state_var


@dataclass(frozen=True, slots=True)
class StateSpan:
    """A stretch of time in one state.

    Attributes:
        state: code of the job state.
        label: the state in the reader's language.
        attempt: number of the start that it belongs to, from 1; 0 before the first.
        start_s, end_s: epoch seconds, start_s <= end_s; an open one ends now.
        text: how long that is, in words.
    """

    state: str
    label: str
    attempt: int
    start_s: float
    end_s: float
    text: str


def timeline_figure(spans: Sequence[StateSpan], labels: Labels, meta: Meta) -> FigureDict:
    """Return one bar per attempt, cut into its states.

    Args:
        spans: in ascending time.
        labels: `attempt`, with `{n}` for its number.
        meta: the note.
    """
    traces, shown = [], set[str]()
    for span in spans:
        traces.append(_piece(span, labels, is_first=span.state not in shown))
        shown.add(span.state)
    rows = len({max(1, span.attempt) for span in spans})
    layout = {
        "barmode": "overlay",
        "xaxis": time_axis(showgrid=True),
        "yaxis": name_axis(),
        "hovermode": "closest",
        "height": 126 + 38 * max(1, rows),
    }
    return figure(traces, layout, meta)


def _piece(span: StateSpan, labels: Labels, *, is_first: bool) -> go.Bar:
    return go.Bar(
        x=[max(0.0, span.end_s - span.start_s) * 1000],
        base=[_stamp(span.start_s)],
        y=[labels["attempt"].format(n=max(1, span.attempt))],
        orientation="h",
        width=0.55,
        name=span.label,
        legendgroup=span.state,
        showlegend=is_first,
        marker={"color": state_var(span.state)},
        hovertemplate=f"%{{fullData.name}}: {span.text}<extra></extra>",
    )


def _stamp(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="milliseconds")
