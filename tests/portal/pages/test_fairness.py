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


def test_before_the_first_cycle_the_page_says_so(ada: Client) -> None:
    assert "No cycle has run yet" in text_of(ada.get("/fairness/demo/"))
