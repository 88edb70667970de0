import pytest

from scheduler.core.errors import InvalidPolicyError
from scheduler.core.policy import Policy
from scheduler.simulate.policies import NAMES, decider_of, policy_with


def test_settings_change_fields_and_keep_their_kind() -> None:
    policy = policy_with(
        Policy(),
        {"placement": "spread", "order.age": "7", "preemption.by_priority": "true", "seed": "3"},
    )
    assert (policy.placement, policy.order.age, policy.seed) == ("spread", 7.0, 3)
    assert policy.preemption.by_priority is True
    assert policy.order.fair_share == Policy().order.fair_share


WRONG = {
    "an unknown field": ("speed", "1"),
    "an unknown field of a group": ("order.speed", "1"),
    "a group": ("order", "1"),
    "something within a value": ("seed.low", "1"),
    "half a whole number": ("seed", "0.5"),
    "neither true nor false": ("preemption.by_priority", "yes"),
    "a list": ("kinds", "a"),
    "a negative weight": ("order.age", "-1"),
    "NaN": ("order.age", "nan"),
    "an unknown placement": ("placement", "magic"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("name", "value"), WRONG.values(), ids=WRONG)
def test_setting_that_makes_no_sense_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidPolicyError):
        policy_with(Policy(), {name: value})


def test_every_name_has_a_decider_and_no_other() -> None:
    assert all(callable(decider_of(name, Policy())) for name in NAMES)
    with pytest.raises(InvalidPolicyError, match="magic"):
        decider_of("magic", Policy())
