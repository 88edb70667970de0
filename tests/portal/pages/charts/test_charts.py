"""Figures say what they show, break where there is no data, and name colours by token."""

import json
import re
from pathlib import Path

import pytest

from portal.pages import chart_labels
from portal.pages.charts.fairness import FairnessRow, fairness_figure
from portal.pages.charts.frame import Meta, with_gaps
from portal.pages.charts.job import JobSampleRow, job_metrics_figure
from portal.pages.charts.quota import QuotaRow, quota_figure
from portal.pages.charts.timeline import StateSpan, timeline_figure
from portal.pages.charts.usage import UsageRow, usage_figure
from portal.pages.charts.utilisation import UtilisationRow, utilisation_figure

META = Meta("Share of devices.", "NVML samples.", "2026-12-02T08:00:00Z")
TOKENS_CSS = (Path(__file__).parents[4] / "static" / "pages" / "tokens.css").read_text()


def trace(figure, name):
    return next(item for item in figure["data"] if item.get("name") == name)


def utilisation(seconds, allocated=0.5, utilised=0.25):
    rows = [UtilisationRow(f"t{second}", second, allocated, utilised) for second in seconds]
    words = chart_labels.spoken(chart_labels.UTILISATION)
    return utilisation_figure(rows, words, META, step_s=5)


def fairness(*rows):
    return fairness_figure(rows, chart_labels.spoken(chart_labels.FAIRNESS), META)


def quota(*rows):
    return quota_figure(rows, chart_labels.spoken(chart_labels.QUOTA), META)


def usage(*rows):
    return usage_figure(rows, chart_labels.spoken(chart_labels.USAGE), META)


def job(*rows, has_devices=True):
    words = chart_labels.spoken(chart_labels.JOB_METRICS)
    return job_metrics_figure(rows, words, META, step_s=5, has_devices=has_devices)


def timeline(*spans):
    return timeline_figure(spans, chart_labels.spoken(chart_labels.TIMELINE), META)


def every_figure():
    return {
        "utilisation": utilisation([0, 5]),
        "fairness": fairness(FairnessRow("a", 4, 5, 6, 8)),
        "quota": quota(QuotaRow("h200", 18, 16, 20, 4)),
        "usage": usage(UsageRow("a", 10, 4), UsageRow("b", 3, None)),
        "job": job(JobSampleRow("t0", 0, 1500, 2048, 0.5)),
        "timeline": timeline(StateSpan("running", "running", 1, 0, 60, "1 min")),
        "nothing yet": utilisation([]),
        "no tenants": fairness(),
    }


@pytest.mark.parametrize("name", sorted(every_figure()))
def test_a_figure_is_json_with_a_note_and_without_a_theme(name):
    figure = every_figure()[name]
    json.dumps(figure, allow_nan=False)
    assert figure["layout"]["meta"] == {
        "what": "Share of devices.",
        "source": "NVML samples.",
        "at": "2026-12-02T08:00:00Z",
    }
    assert "template" not in figure["layout"]


@pytest.mark.parametrize("name", sorted(every_figure()))
def test_every_colour_is_a_token_that_the_style_sheet_has(name):
    text = json.dumps(every_figure()[name])
    assert re.findall(r"#[0-9a-fA-F]{6}", text) == []
    for token in set(re.findall(r"var\((--k-[\w-]+)\)", text)):
        assert f"  {token}: #" in TOKENS_CSS


def test_a_pause_longer_than_the_gap_breaks_the_line():
    xs, ys = with_gaps(["a", "b", "c"], [1.0, 2.0, 3.0], [0, 5, 30], gap_s=12.5)
    assert xs == ["a", "b", "c", "c"]
    assert ys == [1.0, 2.0, None, 3.0]


def test_a_missing_reading_stays_missing():
    assert with_gaps(["a", "b"], [1.0, None], [0, 5], gap_s=12.5) == (["a", "b"], [1.0, None])


def test_series_of_different_length_are_refused():
    with pytest.raises(ValueError, match="zip"):
        with_gaps(["a"], [1.0, 2.0], [0, 5], gap_s=1)


def test_utilisation_has_both_lines_and_a_unit():
    figure = utilisation([0, 5])
    assert trace(figure, "Allocated")["y"] == [0.5, 0.5]
    assert trace(figure, "Utilised")["y"] == [0.25, 0.25]
    assert trace(figure, "Utilised")["meta"] == {"key": "utilised_frac"}
    assert figure["layout"]["yaxis"]["title"]["text"] == "Share of devices (%)"


def test_utilisation_breaks_after_two_and_a_half_steps():
    assert trace(utilisation([0, 12.5]), "Allocated")["y"] == [0.5, 0.5]
    assert trace(utilisation([0, 12.6]), "Allocated")["y"] == [0.5, None, 0.5]


def test_fairness_marks_each_tenant_three_times_over_its_request():
    figure = fairness(FairnessRow("vision", 16, 20, 22, 28))
    assert trace(figure, "Requested")["x"] == [28]
    assert trace(figure, "Entitled")["x"] == [16]
    assert trace(figure, "Fair share")["x"] == [20]
    assert trace(figure, "Allocated")["x"] == [22]
    symbols = {item["marker"]["symbol"] for item in figure["data"] if item.get("mode") == "markers"}
    assert symbols == {"circle-open", "diamond", "square"}


def test_a_name_with_markup_is_shown_as_it_is():
    assert trace(fairness(FairnessRow("<b>x&y", 1, 1, 1, 1)), "Requested")["y"] == ["&lt;b>x&amp;y"]


def test_quota_splits_what_is_held_at_nominal():
    figure = quota(QuotaRow("h200", held=18, nominal=16, limit=20, asked=2))
    assert trace(figure, "Own quota in use")["x"] == [16]
    assert trace(figure, "Borrowed")["x"] == [2]
    assert trace(figure, "This request")["x"] == [2]
    assert trace(figure, "Nominal quota")["x"] == [16]
    assert trace(figure, "Limit with borrowing")["x"] == [20]


def test_a_request_beyond_the_limit_is_striped_in_the_colour_of_pressure():
    figure = quota(QuotaRow("a", 18, 16, 20, 2), QuotaRow("b", 18, 16, 20, 3))
    colours = trace(figure, "This request")["marker"]["pattern"]["fgcolor"]
    assert colours == ["var(--k-allocated)", "var(--k-pressure-over)"]


def test_quota_without_request_or_limit_shows_neither():
    names = [item["name"] for item in quota(QuotaRow("a", 1, 2))["data"]]
    assert names == ["Own quota in use", "Borrowed", "Nominal quota"]


def test_usage_parts_add_up_to_what_was_allocated():
    figure = usage(UsageRow("a", 10, 4), UsageRow("b", 3, None))
    assert trace(figure, "Utilised")["x"] == [4, 0]
    assert trace(figure, "Allocated but idle")["x"] == [6, 0]
    assert trace(figure, "Not measured")["x"] == [0, 3]


def test_job_measures_are_in_cores_and_gib():
    figure = job(JobSampleRow("t0", 0, 1500, 2048, 0.5))
    assert trace(figure, "CPU")["y"] == [1.5]
    assert trace(figure, "Memory")["y"] == [2.0]
    assert trace(figure, "Devices")["y"] == [0.5]
    assert figure["layout"]["yaxis2"]["title"]["text"] == "Cores"


def test_panels_of_a_job_do_not_overlap():
    layout = job(JobSampleRow("t0", 0, 1, 1, 1))["layout"]
    top, middle, bottom = (layout[key]["domain"] for key in ("yaxis", "yaxis2", "yaxis3"))
    assert top[1] == 1
    assert top[0] > middle[1] > middle[0] > bottom[1] > bottom[0] == pytest.approx(0, abs=1e-3)


def test_a_job_without_devices_has_no_device_panel():
    figure = job(JobSampleRow("t0", 0, 1, 1, None), has_devices=False)
    assert [item["name"] for item in figure["data"]] == ["CPU", "Memory"]
    assert "yaxis3" not in figure["layout"]


def test_a_state_lasts_from_its_start_to_its_end_in_milliseconds():
    piece = timeline(StateSpan("running", "running", 2, 60, 90.5, "30 s"))["data"][0]
    assert piece["base"] == ["1970-01-01T00:01:00.000+00:00"]
    assert piece["x"] == [30_500]
    assert piece["y"] == ["Attempt 2"]
    assert piece["marker"]["color"] == "var(--k-state-running)"


def test_a_clock_that_steps_back_gives_no_negative_bar():
    assert timeline(StateSpan("queued", "queued", 0, 90, 60, "0 s"))["data"][0]["x"] == [0]


def test_a_state_is_named_once_in_the_legend():
    spans = [StateSpan("queued", "queued", n, n, n + 1, "1 s") for n in (1, 2)]
    assert [item["showlegend"] for item in timeline(*spans)["data"]] == [True, False]
