"""The numbers that tune decisions: kept, refused, brought back, and obeyed."""

import math
from typing import Any

import pytest

from scheduler.core.policy import ObjectiveWeights, Policy, PriorityWeights, QosFactors
from scheduler.models import SchedulingPolicy
from scheduler.services.policy import policy_update
from scheduler.snapshots import policy_of
from tenants.errors import InvalidValueError
from tests import factories
from tests.scheduler.world import World

pytestmark = pytest.mark.django_db


def change(world: World, weights: object) -> SchedulingPolicy:
    return policy_update(actor=factories.admin(), cluster=world.cluster, weights=weights)


def test_every_number_reaches_the_decision() -> None:
    world = World()
    order = {"priority_class": 1, "fair_share": 2, "age": 3, "size": 4, "qos": 5, "age_max_s": 6}
    objective = {"utilisation": 1, "performance": 2, "fairness": 3, "energy": 4}
    qos = {"training": 0.1, "inference": 0.2, "batch": 0.3, "notebook": 0.4}
    queue = {"backfill_depth": 7, "remedy_depth": 8, "patience_s": 9.5}
    change(world, {"order": order, "objective": objective, "qos": qos, "queue": queue})
    found = policy_of(world.cluster)
    assert found.order == PriorityWeights(**order)
    assert found.objective == ObjectiveWeights(**objective)
    assert found.qos == QosFactors(**qos)
    assert (found.backfill_depth, found.remedy_depth, found.patience_s) == (7, 8, 9.5)
    assert isinstance(found.backfill_depth, int)


def test_what_is_not_named_stays_and_none_brings_defaults_back() -> None:
    world = World()
    change(world, {"order": {"age": 7, "size": 8}, "qos": {"batch": 1}})
    assert change(world, {"order": {"age": None}}).weights == {
        "order": {"size": 8},
        "qos": {"batch": 1},
    }
    assert change(world, {"order": None}).weights == {"qos": {"batch": 1}}
    assert change(world, {}).weights == {"qos": {"batch": 1}}
    assert change(world, None).weights == {}
    found = policy_of(world.cluster)
    assert found == Policy(strategy=found.strategy, budget_s=found.budget_s)


def test_a_default_is_not_stored() -> None:
    assert change(World(), {"order": {"age": 300, "size": 51}}).weights == {"order": {"size": 51}}


WRONG: dict[str, tuple[Any, str, str]] = {
    "an unknown name": ({"order": {"speed": 1}}, "weights.order.speed", "priority_class"),
    "an unknown group": ({"magic": {}}, "weights.magic", "objective"),
    "no object": ([1], "weights", "[1]"),
    "a group that is no object": ({"qos": 3}, "weights.qos", "not “3”"),
    "a negative weight": ({"order": {"age": -1}}, "weights.order.age", "not “-1”"),
    "not a number": ({"order": {"age": math.nan}}, "weights.order.age", "not “nan”"),
    "endless": ({"objective": {"energy": math.inf}}, "weights.objective.energy", "not “inf”"),
    "too large": ({"order": {"age": 1e10}}, "weights.order.age", "0 to 1000000000"),
    "larger than Python writes": ({"order": {"age": 10**6000}}, "weights.order.age", "not “…”"),
    "text": ({"order": {"age": "7"}}, "weights.order.age", "not “7”"),
    "true": ({"order": {"age": True}}, "weights.order.age", "not “True”"),
    "a factor above 1": ({"qos": {"batch": 1.5}}, "weights.qos.batch", "0 to 1"),
    "half a job": ({"queue": {"backfill_depth": 1.5}}, "weights.queue.backfill_depth", "whole"),
    "too many tries": ({"queue": {"remedy_depth": 101}}, "weights.queue.remedy_depth", "0 to 100"),
}


@pytest.mark.parametrize("given", [pytest.param(case, id=name) for name, case in WRONG.items()])
def test_a_wrong_number_is_refused_with_field_value_and_remedy(given: tuple[Any, str, str]) -> None:
    weights, field, said = given
    world = World()
    change(world, {"order": {"size": 51}})
    with pytest.raises(InvalidValueError) as caught:
        change(world, weights)
    assert list(caught.value.fields) == [field]
    assert said in caught.value.fields[field][0]
    assert SchedulingPolicy.objects.get(cluster=world.cluster).weights == {"order": {"size": 51}}


def test_a_row_of_old_keeps_its_meaning_and_what_is_no_weight_is_not_obeyed() -> None:
    world = World()
    stored = {"order": {"age": 12, "speed": 3}, "objective": {"energy": -1}, "qos": "high", "x": 1}
    SchedulingPolicy.objects.update_or_create(cluster=world.cluster, defaults={"weights": stored})
    found = policy_of(world.cluster)
    assert found.order == PriorityWeights(age=12)
    assert (found.objective, found.qos) == (ObjectiveWeights(), QosFactors())
    SchedulingPolicy.objects.update(weights=[])
    assert policy_of(world.cluster).order == PriorityWeights()
