"""Shares, as a page."""

from django.test import Client

from scheduler.models import Cycle
from tests import factories
from tests.portal.pages.conftest import A100, World, text_of


def shares(world: World) -> None:
    rows = [
        {
            "tenant": slug,
            "flavor": A100,
            "entitled": 4000,
            "fair": fair,
            "allocated": 0,
            "requested": 0,
            "part": 4000,
            "past_frac": 0.25,
        }
        for slug, fair in (("vision", 2500), ("language", 1500))
    ]
    Cycle.objects.create(
        cluster=world.demo,
        at=factories.NOW,
        strategy="rules",
        asked="rules",
        status="not_needed",
        pending_count=0,
        start_count=0,
        wall_ms=1,
        fair_shares=rows,
    )


def test_the_viewers_tenants_are_named_and_all_others_are_summed(ada: Client, world: World) -> None:
    shares(world)
    page = text_of(ada.get("/fairness/demo/"))
    assert 'data-measure="fair">2.5<' in page
    assert 'data-measure="fair">1.5<' in page
    assert "all others" in page
    assert 'data-tenant="language"' not in page
    assert "Speech team" not in page
    assert page.count("25 %") == 1  # of all others together nothing is said


def test_shares_of_a_cycle_before_past_use_was_kept_are_shown_without_it(
    ada: Client, world: World
) -> None:
    shares(world)
    cycle = Cycle.objects.get()
    old = [
        {k: v for k, v in row.items() if k not in {"part", "past_frac"}}
        for row in cycle.fair_shares
    ]
    Cycle.objects.update(fair_shares=old)
    assert 'data-measure="fair">2.5<' in text_of(ada.get("/fairness/demo/"))
    assert ada.get("/api/v1/fairness/?cluster=demo").json()["results"][0]["part"] == 0


def test_before_the_first_cycle_the_page_says_so(ada: Client) -> None:
    assert "No cycle has run yet" in text_of(ada.get("/fairness/demo/"))
