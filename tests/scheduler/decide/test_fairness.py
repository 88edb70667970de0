"""KAI's three phases, worked out by hand."""

import pytest

from scheduler.decide.fairness import Claim, FairShares, divide
from scheduler.decide.quota import Charge
from tests.builders import tenant


def test_everybody_gets_what_it_deserves_and_asks_for() -> None:
    claims = [Claim("a", deserved=4, requested=9), Claim("b", deserved=4, requested=1)]
    assert divide(5, claims) == {"a": 4, "b": 1}


def test_the_surplus_goes_by_weight_and_what_is_not_wanted_goes_round_again() -> None:
    """12 to divide, weights 1:2:3; b wants 2 only.

    Round 1: parts 2, 4, 6; b takes its 2. 12 - 2 - 2 - 6 = 2 left.
    Round 2: a and c, weights 1:3, parts 0.5 and 1.5: floors 0 and 1; the remainders are equal, and
    a comes first.
    """
    claims = [
        Claim("a", 0, 100, weight=1),
        Claim("b", 0, 2, weight=2),
        Claim("c", 0, 100, weight=3),
    ]
    assert divide(12, claims) == {"a": 3, "b": 2, "c": 7}


def test_what_rounding_left_goes_one_unit_each_by_largest_remainder() -> None:
    """7 units, weights 2:1:1: parts 3.5, 1.75, 1.75; floors 3, 1, 1; two left, to .75 and .75."""
    claims = [Claim("a", 0, 9, weight=2), Claim("b", 0, 9), Claim("c", 0, 9)]
    assert divide(7, claims) == {"a": 3, "b": 2, "c": 2}
    assert divide(7000, [c for c in claims if c.name == "a"], unit=1000) == {"a": 9}


def test_past_use_bends_the_weights() -> None:
    """Equal weights, k = 1: P_a = .5 + (.5 - .5) = .5, P_b = .5 + (.5 - 0) = 1, so 4 and 8."""
    claims = [Claim("a", 0, 99, usage=0.5), Claim("b", 0, 99)]
    assert divide(12, claims) == {"a": 4, "b": 8}


def test_a_higher_bucket_is_served_before_weights_count() -> None:
    claims = [Claim("low", 0, 10, weight=100), Claim("high", 0, 7, priority=1)]
    assert divide(10, claims) == {"low": 3, "high": 7}


def test_weight_zero_gets_nothing_of_the_surplus() -> None:
    assert divide(10, [Claim("a", 2, 9, weight=0), Claim("b", 0, 5)]) == {"a": 2, "b": 5}
    assert divide(10, [Claim("a", 0, 9, weight=0)]) == {"a": 0}


def test_those_who_used_more_than_their_part_share_by_weight_when_nobody_used_less() -> None:
    claims = [Claim("a", 0, 99, usage=5), Claim("b", 0, 99, usage=5)]
    assert divide(10, claims) == {"a": 5, "b": 5}


@pytest.fixture
def shares() -> FairShares:
    """8 devices; the lab deserves 4 (a: 4), b and c are alone with 0."""
    return FairShares(
        [tenant("lab"), tenant("a", under="lab", gpu=4), tenant("c")],
        {"gpu": 8000},
        {("a", "gpu"): 2000},
        {("a", "gpu"): 6000, ("c", "gpu"): 6000},
        {},
    )


def test_the_tree_is_divided_level_by_level(shares: FairShares) -> None:
    """Surplus 4 between the lab (wants 2 more) and c: 2 each; a gets all that the lab got."""
    assert shares.fair("lab", "gpu") == 0
    assert shares.fair("a", "gpu") == 6000
    assert shares.fair("c", "gpu") == 2000


def test_the_factor_is_one_half_at_the_fair_share(shares: FairShares) -> None:
    assert shares.factor("c", ["gpu"]) == 1.0
    assert shares.factor("a", ["gpu"]) == pytest.approx(2 ** (-2 / 6))


def test_holding_something_without_a_fair_share_is_the_worst_standing() -> None:
    held = {("a", "gpu"): 1000}
    shares = FairShares([tenant("a", weight=0)], {"gpu": 8000}, held, held, {})
    assert shares.factor("a", ["gpu"]) == pytest.approx(0.0, abs=1e-12)


def test_rows_show_entitled_fair_allocated_and_requested(shares: FairShares) -> None:
    row = next(row for row in shares.rows() if row.tenant == "a")
    assert (row.entitled, row.fair, row.allocated, row.requested) == (4000, 6000, 2000, 6000)


def test_what_started_on_another_flavor_than_it_waited_under_counts_as_requested_there() -> None:
    shares = FairShares([tenant("a")], {"gpu": 8000, "npu": 8000}, {}, {("a", "gpu"): 2000}, {})
    shares.allocate("a", [Charge("npu", 2000)])
    rows = {row.flavor: row for row in shares.rows()}
    assert (rows["npu"].allocated, rows["npu"].requested) == (2000, 2000)
