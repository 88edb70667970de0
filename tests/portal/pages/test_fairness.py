"""Shares, as a page."""

from datetime import timedelta

from django.test import Client

from scheduler.models import Cycle, ExpectedStart, Job
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


def test_it_says_how_expected_starts_have_held_once_enough_jobs_waited(
    ada: Client, world: World
) -> None:
    """Of 20 jobs told 60 and 120 s, 10 waited 30 s, 9 waited 90 s and one 150 s."""
    assert "data-expected-score" not in text_of(ada.get("/fairness/demo/"))
    for waited_s in [30] * 10 + [90] * 9 + [150]:
        ExpectedStart.objects.create(
            job=factories.job(world.vision, on=world.demo),
            cluster=world.demo,
            given_at=factories.NOW,
            planned_p50_s=60,
            planned_p90_s=120,
            told_p50_s=60,
            told_p90_s=120,
            gang=False,
            over_at=factories.NOW + timedelta(seconds=waited_s),
            started=True,
        )
    said = "Of the last 20 jobs that waited here, 50 % had started by their P50 and 95 %"
    assert said in text_of(ada.get("/fairness/demo/"))
    pending = {"code": "waiting_for_capacity", "expected_start_p50": "2026-03-02T12:10:00+00:00"}
    Job.objects.filter(pk=world.job.pk).update(pending=pending)
    assert said in text_of(ada.get(f"/jobs/{world.job.pk}/"))
