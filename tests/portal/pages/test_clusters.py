"""How a cluster decides, changed on its page."""

import pytest
from django.test import Client

from scheduler.models import Cycle, SchedulingPolicy, ShadowPlan, StrategyAlarm
from tests import factories
from tests.portal.pages.conftest import World, text_of

PATH = "/admin/clusters/?cluster=demo"
FIELDS = {"strategy": "rules", "budget_s": "2.5", "placement": "spread", "solver": "cbc"}
FIELDS |= {"shadow": "optimising", "kind_notebook": "rules", "kind_training": "optimising"}
FIELDS |= {"power_cap_w": "9000"}
FIELDS |= {"preempt_by_priority": "on", "preempt_delay_s": "5", "preempt_min_runtime_s": "60"}
FIELDS |= {"preempt_grace_s": "20.5", "preempt_most_evictions": "2"}


def test_the_strategy_is_switched(root: Client, world: World) -> None:
    assert root.post(PATH, FIELDS).status_code == 302
    row = SchedulingPolicy.objects.get(cluster=world.demo)
    assert (row.strategy, row.budget_s, row.placement) == ("rules", 2.5, "spread")
    assert row.power_cap_w == 9000.0
    assert (row.shadow, row.solver) == ("optimising", "cbc")
    assert row.kinds == {"notebook": "rules", "training": "optimising"}
    shown = root.get(PATH).context["form"].initial
    assert shown["kind_training"] == "optimising"
    assert shown["shadow"] == "optimising"


@pytest.mark.parametrize("wrong", [{"strategy": "magic"}, {"budget_s": "0"}, {"budget_s": "nan"}])
def test_a_wrong_policy_is_refused(root: Client, world: World, wrong: dict[str, str]) -> None:
    assert root.post(PATH, FIELDS | wrong).status_code == 422
    assert SchedulingPolicy.objects.get(cluster=world.demo).strategy == "optimising"


def test_weights_are_tuned_and_an_empty_field_brings_the_default_back(
    root: Client, world: World
) -> None:
    tuned = {"order_age": "7", "qos_batch": "0.5", "queue_backfill_depth": "20"}
    assert root.post(PATH, FIELDS | tuned).status_code == 302
    row = SchedulingPolicy.objects.get(cluster=world.demo)
    assert row.weights == {
        "order": {"age": 7},
        "qos": {"batch": 0.5},
        "queue": {"backfill_depth": 20},
    }
    initial = root.get(PATH).context["form"].initial
    assert (initial["order_age"], initial.get("order_size")) == (7, None)
    page = text_of(root.get("/admin/audit/?q=demo"))
    assert "Order of the queue: Age 7.0" in page
    assert root.post(PATH, FIELDS | {"order_age": ""}).status_code == 302
    row.refresh_from_db()
    assert row.weights == {}


def test_each_weight_says_what_it_does_and_its_default(root: Client) -> None:
    page = text_of(root.get(PATH))
    assert "Weight of how long the job has waited. Default: 300." in page
    assert "Who has waited so long has its turn as under the rules. Default: 86400." in page
    assert 'placeholder="604800"' in page


@pytest.mark.parametrize(
    "wrong",
    [
        {"order_age": "-1"},
        {"order_age": "nan"},
        {"order_age": "1e10"},
        {"order_age": "seven"},
        {"qos_batch": "1.5"},
        {"queue_backfill_depth": "2.5"},
        {"queue_remedy_depth": "101"},
    ],
)
def test_a_wrong_weight_opens_the_fold_and_says_so(
    root: Client, world: World, wrong: dict[str, str]
) -> None:
    answer = root.post(PATH, FIELDS | wrong)
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == list(wrong)
    assert '<details class="mb-3" open>' in text_of(answer)
    assert SchedulingPolicy.objects.get(cluster=world.demo).weights == {}


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


def test_what_a_shadow_would_have_decided_stands_beside_the_cycles(
    root: Client, world: World
) -> None:
    cycle = Cycle.objects.create(
        cluster=world.demo, at=factories.NOW, pending_count=7, start_count=3, wall_ms=42
    )
    ShadowPlan.objects.create(
        cycle=cycle,
        strategy="optimising",
        answered_by="optimising",
        status="optimal",
        objective=1.5,
        objective_carried=1.25,
        start_count=5,
        wall_ms=80,
        differences={"only_shadow": {"count": 2}, "only_carried": {"count": 0}, "moved": {}},
    )
    page = text_of(root.get(PATH))
    for said in ("5 (3)", "1.500 (1.250)", "starts 2 others, leaves out 0", "80 ms"):
        assert said in page


def alarm(world: World) -> StrategyAlarm:
    return StrategyAlarm.objects.create(
        cluster=world.demo,
        strategy="optimising",
        status="error",
        note="MemoryError: no room",
        count=3,
        since=factories.NOW,
        last_at=factories.NOW,
    )


@pytest.mark.parametrize("path", ["/", PATH])
def test_who_runs_the_portal_sees_that_the_rules_answer_for_a_strategy(
    root: Client, world: World, path: str
) -> None:
    raised = alarm(world)
    page = text_of(root.get(path))
    assert "The rules answer for optimising on Demo: error, 3 times" in page
    assert "MemoryError: no room" in page
    StrategyAlarm.objects.filter(pk=raised.pk).update(cleared_at=factories.NOW)
    assert "The rules answer for" not in text_of(root.get(path))


def test_nobody_else_is_bothered_with_alarms(world: World) -> None:
    alarm(world)
    assert "The rules answer for" not in text_of(world.sees(world.lead).get("/"))


def test_constraints_that_clash_are_named_with_their_numbers(root: Client, world: World) -> None:
    Cycle.objects.create(
        cluster=world.demo,
        at=factories.NOW,
        pending_count=0,
        start_count=0,
        wall_ms=1,
        clashes=[
            {
                "constraints": ["running", "power_cap"],
                "uid": "",
                "numbers": {"held_w": 2100.0, "cap_w": 2000.0},
            },
            {
                "constraints": ["flavors", "quota"],
                "uid": str(world.job.pk),
                "numbers": {
                    "flavors": {"asked": ["nvidia-h100-sxm"]},
                    "quota": {"tenant": "vision"},
                },
            },
        ],
    )
    page = text_of(root.get(PATH))
    assert "What runs needs 2.1 kW of board power; the cap is 2.0 kW." in page
    assert "the quota of vision." in page
    assert "{" not in page.split("What cannot be met together")[1].split("</section>")[0]
