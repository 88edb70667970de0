"""KAI's three phases and Kueue's dominant share, worked out by hand."""

import math

import pytest

from scheduler.core.snapshot import QuotaLine, TenantNode
from scheduler.decide.fairness import Claim, DominantShares, FairShares, divide, weighted_share
from scheduler.decide.quota import Charge, QuotaTree
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


def test_of_two_equal_remainders_the_older_is_rounded_up() -> None:
    """3 units for two: 1.5 each. b was created first."""
    claims = [Claim("a", 0, 9, created_s=200.0), Claim("b", 0, 9, created_s=100.0)]
    assert divide(3, claims) == {"a": 1, "b": 2}


def test_past_use_bends_the_weights() -> None:
    """Equal weights, k = 1: P_a = .5 + (.5 - .5) = .5, P_b = .5 + (.5 - 0) = 1, so 4 and 8."""
    claims = [Claim("a", 0, 99, usage=0.5), Claim("b", 0, 99)]
    assert divide(12, claims) == {"a": 4, "b": 8}


def test_a_higher_bucket_is_served_before_weights_count() -> None:
    claims = [Claim("low", 0, 10, weight=100), Claim("high", 0, 7, priority=1)]
    assert divide(10, claims) == {"low": 3, "high": 7}


def test_three_buckets_divide_what_the_one_above_left_each_by_its_own_weights() -> None:
    """20 to divide, 2 deserved by z. 18 left.

    Bucket 2: a wants 5, b wants 4, weights 1:1, parts 9 and 9: both satisfied, 9 left.
    Bucket 1: c and d want 50 each, weights 1:2: parts 3 and 6, nothing left for bucket 0.
    """
    claims = [
        Claim("a", 0, 5, priority=2),
        Claim("b", 0, 4, priority=2),
        Claim("c", 0, 50, priority=1),
        Claim("d", 0, 50, weight=2, priority=1),
        Claim("z", 2, 50, weight=9),
    ]
    assert divide(20, claims) == {"a": 5, "b": 4, "c": 3, "d": 6, "z": 2}


def test_a_high_bucket_is_rounded_up_before_the_low_one_gets_anything() -> None:
    """7 for a and b: 3.5 each, floors 3 and 3, equal remainders: the 1 left is a's."""
    high = [Claim("a", 0, 9, priority=1), Claim("b", 0, 9, priority=1)]
    assert divide(7, [*high, Claim("low", 0, 9)]) == {"a": 4, "b": 3, "low": 0}
    assert divide(7, high) == {"a": 4, "b": 3}


def test_a_part_that_loses_a_unit_to_floating_point_keeps_it() -> None:
    """0.29 of 100 is 28.999999999999996 in doubles."""
    claims = [Claim("a", 0, 99, weight=29), Claim("b", 0, 99, weight=71)]
    assert divide(100, claims) == {"a": 29, "b": 71}


def test_weight_zero_gets_nothing_of_the_surplus() -> None:
    assert divide(10, [Claim("a", 2, 9, weight=0), Claim("b", 0, 5)]) == {"a": 2, "b": 5}
    assert divide(10, [Claim("a", 0, 9, weight=0)]) == {"a": 0}


def test_those_who_used_more_than_their_part_share_by_weight_when_nobody_used_less() -> None:
    claims = [Claim("a", 0, 99, usage=5), Claim("b", 0, 99, usage=5)]
    assert divide(10, claims) == {"a": 5, "b": 5}


LAB = (
    tenant("all", gpu=4),
    tenant("lab", under="all", gpu=0),
    tenant("a", under="lab", gpu=4),
    tenant("c", under="all", gpu=0),
)
"""8 devices: a owns 4, 4 are everybody's; c owns none and may borrow."""


@pytest.fixture
def shares() -> FairShares:
    held, asked = {("a", "gpu"): 2000}, {("a", "gpu"): 6000, ("c", "gpu"): 6000}
    return FairShares(LAB, {"gpu": 8000}, held, asked, {})


def test_the_tree_is_divided_level_by_level(shares: FairShares) -> None:
    """Surplus 4 between the lab (wants 2 more) and c: 2 each; a gets all that the lab got."""
    assert shares.fair("lab", "gpu") == 0
    assert shares.fair("a", "gpu") == 6000
    assert shares.fair("c", "gpu") == 2000


def test_nobody_has_a_fair_share_of_what_its_quota_will_never_give() -> None:
    """c may borrow 1 at most: of the surplus of 4 it gets 1, and the lab 3."""
    capped = TenantNode("c", "all", 1.0, {"gpu": QuotaLine(0, borrowing_limit=1000)})
    asked = {("a", "gpu"): 9000, ("c", "gpu"): 6000}
    shares = FairShares((*LAB[:3], capped), {"gpu": 8000}, {}, asked, {})
    assert (shares.fair("a", "gpu"), shares.fair("c", "gpu")) == (7000, 1000)


def test_a_higher_queue_priority_is_served_first_among_siblings() -> None:
    first = TenantNode("c", "all", 1.0, {"gpu": QuotaLine(0)}, queue_priority=1)
    asked = {("a", "gpu"): 6000, ("c", "gpu"): 6000}
    shares = FairShares((*LAB[:3], first), {"gpu": 8000}, {}, asked, {})
    assert (shares.fair("a", "gpu"), shares.fair("c", "gpu")) == (4000, 4000)


def test_past_use_of_a_department_is_that_of_all_its_teams() -> None:
    """The lab's team used .5 of the cluster: P = .5 + (.5 - .5) = .5 against c's 1: 3 for c."""
    asked = {("a", "gpu"): 9000, ("c", "gpu"): 9000}
    tenants = (*LAB[:2], tenant("a", under="lab", gpu=5), LAB[3])
    shares = FairShares(tenants, {"gpu": 9000}, {}, asked, {"a": 0.5})
    # the surplus is 4: P 1/3 and 2/3, so 1.33 and 2.67: floors 1 and 2, the one left to c
    assert (shares.fair("a", "gpu"), shares.fair("c", "gpu")) == (6000, 3000)


def test_the_part_is_the_share_if_everybody_asked_for_everything(shares: FairShares) -> None:
    """Deserved 4 and 0; the surplus of 4 goes 2 to the lab, so to a, and 2 to c."""
    assert (shares.part("a", "gpu"), shares.part("c", "gpu")) == (6000, 2000)
    nobody_asks = FairShares(LAB, {"gpu": 8000}, {}, {}, {})
    assert (nobody_asks.part("a", "gpu"), nobody_asks.part("c", "gpu")) == (6000, 2000)


def test_the_factor_halves_with_each_part_held_and_had(shares: FairShares) -> None:
    """a holds 2 of its 6: 2 ** -(2 / 6 / 2). Past use of 6 of 8 devices is its part as well."""
    assert shares.factor("c", ("gpu",)) == 1.0
    assert shares.factor("a", ("gpu",)) == pytest.approx(2 ** (-2 / 6 / 2))
    used = FairShares(LAB, {"gpu": 8000}, {("a", "gpu"): 6000}, {}, {"a": 6 / 8})
    assert used.past("a") == pytest.approx(1.0)
    assert used.factor("a", ("gpu",)) == pytest.approx(0.5)


def test_holding_something_without_a_fair_share_is_the_worst_standing() -> None:
    held = {("a", "gpu"): 1000}
    shares = FairShares([tenant("a", weight=0)], {"gpu": 8000}, held, held, {})
    assert shares.factor("a", ("gpu",)) == pytest.approx(0.0, abs=1e-12)


def test_rows_show_entitled_fair_allocated_and_requested(shares: FairShares) -> None:
    row = next(row for row in shares.rows() if row.tenant == "a")
    assert (row.entitled, row.fair, row.allocated, row.requested) == (4000, 6000, 2000, 6000)
    assert (row.part, row.past_frac) == (6000, 0.0)


def test_what_started_on_another_flavor_than_it_waited_under_counts_as_requested_there() -> None:
    shares = FairShares([tenant("a")], {"gpu": 8000, "npu": 8000}, {}, {("a", "gpu"): 2000}, {})
    shares.allocate("a", [Charge("npu", 2000)])
    rows = {row.flavor: row for row in shares.rows()}
    assert (rows["npu"].allocated, rows["npu"].requested) == (2000, 2000)


def test_a_chain_of_a_thousand_tenants_is_divided_to_its_end() -> None:
    chain = [tenant("t0", gpu=1)]
    chain += [tenant(f"t{i}", under=f"t{i - 1}", gpu=0) for i in range(1, 1000)]
    shares = FairShares(chain, {"gpu": 1000}, {}, {("t999", "gpu"): 1000}, {})
    assert shares.fair("t999", "gpu") == 1000


# -- who may borrow next -------------------------------------------------------------------------


def test_the_share_is_the_largest_part_of_what_can_be_lent_over_the_weight() -> None:
    """Kueue: max(1000 * 2 / 10, 1000 * 30 / 100) / 2 = 150; the cpu decides."""
    borrowed, lendable = {"accelerators": 2, "cpu": 30}, {"accelerators": 10, "cpu": 100}
    assert weighted_share(borrowed, lendable, 2.0) == 150.0


def test_who_borrows_nothing_has_share_zero_and_weight_zero_that_borrows_is_last() -> None:
    assert weighted_share({}, {"cpu": 10}, 0.0) == 0.0
    assert weighted_share({"cpu": 1}, {"cpu": 10}, 0.0) == math.inf


def test_what_nobody_can_lend_counts_for_nothing() -> None:
    assert weighted_share({"cpu": 5}, {"cpu": 0}, 1.0) == 0.0


FIRM = (
    tenant("firm", gpu=0, npu=0),
    tenant("left", under="firm", gpu=4, npu=2),
    tenant("right", under="firm", gpu=4, weight=2, npu=2),
    tenant("x", under="left", gpu=2, npu=0),
    tenant("y", under="left", gpu=0, npu=0, weight=0),
)
"""SubtreeQuota in gpus: left 6, right 4, firm 10; in npus 2, 2, 4. The firm can lend 14 in all."""


def dominant(**held: int) -> DominantShares:
    allocated = {(slug, "gpu"): amount for slug, amount in held.items()}
    return DominantShares(FIRM, QuotaTree(FIRM), allocated)


def test_flavors_of_accelerators_are_one_resource() -> None:
    """right holds 6 gpus of its 4 and 3 npus of its 2: 3 of 14 borrowed, weight 2."""
    shares = dominant(right=6000)
    shares.allocate("right", [Charge("npu", 3000)])
    assert shares.share("right") == pytest.approx(1000 * 3 / 14 / 2)


def test_room_within_the_quota_is_level_with_everybody_else_who_has_some() -> None:
    shares = dominant(right=3000)
    assert shares.path("right", ("gpu",)) == shares.path("left", ("gpu",)) == ()


def test_at_its_quota_a_tenant_borrows_next() -> None:
    """Both levels count: x has 2 of its 2, left is far below its 6."""
    shares = dominant(right=4000, x=2000)
    assert shares.path("right", ("gpu",)) == ((1, 0.0),)
    assert shares.path("x", ("gpu",)) == ((0, 0.0), (1, 0.0))
    assert shares.path("x", ("gpu",)) < shares.path("right", ("gpu",))


def test_siblings_are_compared_where_their_ways_part() -> None:
    """left holds 8 of its 6 through x, right 7 of its 4.

    Below the firm left has 1000 * 2 / 14 = 142.9 and right 1000 * 3 / 14 / 2 = 107.1: right goes
    first, though x, seen from left, borrows 6 of the 14 that left could get and y none.
    """
    shares = dominant(x=8000, right=7000)
    left, right = shares.path("x", ("gpu",)), shares.path("right", ("gpu",))
    assert right < left
    assert left[0].share == pytest.approx(1000 * 2 / 14)
    assert right[0].share == pytest.approx(1000 * 3 / 14 / 2)


def test_weight_zero_borrows_after_everybody_else_and_by_its_bare_share() -> None:
    shares = dominant(y=1000)
    below_firm, below_left = shares.path("y", ("gpu",))
    assert below_firm == (0, 0.0)
    assert below_left.rank == 2
    assert below_left.share == pytest.approx(1000 * 1 / 14)
    assert shares.share("y") == math.inf


def test_a_flavor_with_room_is_within_the_quota_though_another_is_not() -> None:
    shares = dominant(right=6000)
    assert shares.path("right", ("gpu", "npu")) == ()
    assert shares.path("right", ("gpu",)) != ()


def test_an_inner_tenants_own_jobs_stand_among_its_children() -> None:
    """left owns 4 itself and holds 5; its subtree owns 6, so left as a whole borrows nothing."""
    below_firm, own = dominant(left=5000).path("left", ("gpu",))
    assert (below_firm, own.rank) == ((0, 0.0), 1)
    assert own.share == pytest.approx(1000 / 14)


def test_a_flavor_that_nobody_names_is_nobodys_to_borrow() -> None:
    assert dominant(right=9000).path("right", ("tpu",)) == ()
