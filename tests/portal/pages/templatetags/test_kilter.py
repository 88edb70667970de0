"""Tags of the pages: what they write, and that hostile text stays text."""

from datetime import UTC, datetime, timedelta

import pytest
from django.template import Context, Template

from portal.pages.bars import Bar

NOW = datetime(2026, 12, 2, 8, 0, tzinfo=UTC)


def render(source, **values):
    return Template("{% load kilter %}" + source).render(Context(values))


def test_a_state_is_icon_word_and_colour():
    html = render("{% state_badge 'timed_out' %}")
    assert "k-state-timed-out" in html
    assert 'data-state="timed_out"' in html
    assert "timed out" in html
    assert "#player-stop" in html


def test_an_unknown_state_is_refused():
    with pytest.raises(ValueError, match="asleep"):
        render("{% state_badge 'asleep' %}")


def test_a_node_state_is_a_badge_too():
    assert "k-node-draining" in render("{% node_badge 'draining' %}")


def test_filters_write_amounts():
    assert render("{{ a|memory }} {{ b|devices }} {{ c|duration }}", a=2048, b=500, c=61) == (
        "2 GiB 0.5 1 min"
    )


def test_an_age_carries_the_moment_for_the_browser():
    html = render("{% when then now %}", then=NOW - timedelta(seconds=7), now=NOW)
    assert 'datetime="2026-12-02T07:59:53+00:00"' in html
    assert "data-ago" in html
    assert ">7 s ago<" in html


def test_a_moment_is_utc_until_the_browser_knows_better():
    assert ">2026-12-02 08:00:00 UTC<" in render("{% moment then %}", then=NOW)


def test_a_missing_moment_is_a_dash():
    assert render("{% moment then %}{% when then now %}", then=None, now=NOW) == "––"


def test_a_figure_cannot_close_its_own_element():
    html = render("{% figure_data figure 'f' %}", figure={"name": "</script><script>x"})
    assert html.count("<script") == 1
    assert html.count("</script") == 1
    assert 'id="f-figure"' in html


def test_the_words_of_the_scripts_are_one_json_element():
    html = render("{% script_strings %}")
    assert 'id="kilter-strings"' in html
    assert "{duration} ago" in html


def test_the_quota_bar_needs_no_style_attribute():
    html = render("{% quota_bar bar %}", bar=Bar(18000, 16000, 24000, 4000, "<b>8 of 16</b>"))
    assert "style=" not in html
    assert 'width="66.67%"' in html
    assert "url(#k-stripes)" in html
    assert "&lt;b&gt;8 of 16" in html
