"""The quota bar: own, borrowed and asked, end to end, against one scale."""

from portal.pages.bars import Bar, BarSegment, bar_segments


def test_own_use_below_nominal_is_one_calm_piece():
    bar = Bar(held=4000, nominal=16000, limit=20000)
    assert bar_segments(bar) == (BarSegment("pressure-calm", 0.0, 20.0),)
    assert bar.nominal_pct == 80.0


def test_what_is_above_nominal_is_shown_as_borrowed():
    bar = Bar(held=18000, nominal=16000, limit=24000)
    assert bar_segments(bar) == (
        BarSegment("pressure-calm", 0.0, 66.67),
        BarSegment("borrowed", 66.67, 8.33),
    )


def test_this_request_stands_behind_what_is_held():
    bar = Bar(held=4000, nominal=8000, limit=8000, asked=2000)
    assert bar_segments(bar)[-1] == BarSegment("asked", 50.0, 25.0)
    assert not bar.is_over


def test_a_request_beyond_the_limit_widens_the_scale_and_says_so():
    bar = Bar(held=8000, nominal=8000, limit=8000, asked=2000)
    assert bar.is_over
    assert bar.nominal_pct == 80.0
    assert bar_segments(bar)[-1] == BarSegment("asked-over", 80.0, 20.0)


def test_without_a_limit_nothing_is_ever_over():
    assert not Bar(held=9000, nominal=1000, asked=9000).is_over


def test_an_empty_quota_divides_by_no_zero():
    assert bar_segments(Bar(held=0, nominal=0)) == ()
