"""How a cluster decides, changed on its page."""

import pytest
from django.test import Client

from scheduler.models import Cycle, SchedulingPolicy
from tests import factories
from tests.portal.pages.conftest import World, text_of

PATH = "/admin/clusters/?cluster=demo"
FIELDS = {"strategy": "rules", "budget_s": "2.5", "placement": "spread"}


def test_the_strategy_is_switched(root: Client, world: World) -> None:
    assert root.post(PATH, FIELDS).status_code == 302
    row = SchedulingPolicy.objects.get(cluster=world.demo)
    assert (row.strategy, row.budget_s, row.placement) == ("rules", 2.5, "spread")


@pytest.mark.parametrize("wrong", [{"strategy": "magic"}, {"budget_s": "0"}, {"budget_s": "nan"}])
def test_a_wrong_policy_is_refused(root: Client, world: World, wrong: dict[str, str]) -> None:
    assert root.post(PATH, FIELDS | wrong).status_code == 422
    assert SchedulingPolicy.objects.get(cluster=world.demo).strategy == "optimising"


@pytest.mark.parametrize("who", ["ada", "lead", "viewer", "eve"])
def test_nobody_else_switches_it(world: World, who: str) -> None:
    assert world.sees(getattr(world, who)).post(PATH, FIELDS).status_code == 403


def test_the_last_cycles_say_what_the_solver_did(root: Client, world: World) -> None:
    Cycle.objects.create(
        cluster=world.demo,
        at=factories.NOW,
        strategy="rules",
        asked="optimising",
        status="timeout",
        note="out of time",
        gap_frac=0.25,
        objective=1.5,
        pending_count=7,
        start_count=3,
        wall_ms=42,
        timings={"decide": 40.0},
    )
    page = text_of(root.get(PATH))
    for said in ("for optimising", "out of time", "25 %", "42 ms", "decide 40"):
        assert said in page
