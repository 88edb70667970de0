"""Kueue's arithmetic on a tree worked out by hand (pkg/cache/scheduler/resource_node.go).

all      nominal 2                          SubtreeQuota 2 + 6 + 4 = 12
+- left  nominal 8, lends 6                 localQuota 8 - 6 = 2
+- right nominal 4, borrows at most 3       localQuota 0
"""

import numpy as np
import pytest

from scheduler.core.snapshot import QuotaLine, TenantNode
from scheduler.decide.quota import UNLIMITED, Charge, QuotaLedger, QuotaTree
from scheduler.decide.standing import above_quota


def line(nominal: int, borrows: int | None = None, lends: int | None = None) -> QuotaLine:
    return QuotaLine(nominal, borrows, lends)


def node(slug: str, parent: str | None, quota: QuotaLine | None) -> TenantNode:
    return TenantNode(slug, parent, 1.0, {"gpu": quota} if quota else {})


TREE = QuotaTree(
    [
        node("all", None, line(2)),
        node("left", "all", line(8, lends=6)),
        node("right", "all", line(4, borrows=3)),
        node("guest", "all", None),
    ]
)

CASES = {
    "nothing used: left has its local 2 and all of the 12 above": ({}, "left", 14),
    "nothing used: right has its 4 and may borrow 3": ({}, "right", 7),
    "nothing used: the root has what its children lend": ({}, "all", 12),
    "left takes 5: 2 are local, 3 come from above": ({"left": 5}, "left", 9),
    "left takes 5: right is still held by its borrowing limit": ({"left": 5}, "right", 7),
    "left takes 10: 8 come from above, so 4 are left for right": ({"left": 10}, "right", 4),
    "right takes 7: its borrowing limit is reached": ({"right": 7}, "right", 0),
    "right takes 7: left has 2 of its own and 5 above": ({"right": 7}, "left", 7),
    "right holds 9 after a cut: it is 2 over its limit": ({"right": 9}, "right", -2),
    "a tenant that does not name a flavor gets none of it": ({}, "guest", 0),
}


@pytest.mark.parametrize(
    ("used", "tenant", "expected"), [pytest.param(*case, id=name) for name, case in CASES.items()]
)
def test_available(used: dict[str, int], tenant: str, expected: int) -> None:
    ledger = QuotaLedger(TREE)
    for slug, amount in used.items():
        ledger.add(slug, Charge("gpu", amount))
    assert ledger.available(tenant, "gpu") == expected


def test_potential_is_what_an_empty_tree_would_give() -> None:
    assert TREE.potential("all", "gpu") == 12
    assert TREE.potential("left", "gpu") == 2 + 12
    assert TREE.potential("right", "gpu") == 4 + 3
    assert TREE.potential("guest", "gpu") == 0


def test_a_flavor_that_nobody_names_is_not_limited() -> None:
    assert QuotaLedger(TREE).available("guest", "tpu") == UNLIMITED
    assert TREE.may_use("guest", "tpu")
    assert not TREE.may_use("guest", "gpu")


def test_usage_above_the_local_part_moves_up() -> None:
    ledger = QuotaLedger(TREE)
    ledger.add("left", Charge("gpu", 5))
    assert ledger.used("left", "gpu") == 5
    assert ledger.used("all", "gpu") == 3


def test_a_window_offers_what_its_tightest_row_offers() -> None:
    ledger = QuotaLedger(TREE, rows=3)
    ledger.add("right", Charge("gpu", 5), np.array([1]))
    assert ledger.available("right", "gpu", np.array([0, 2])) == 7
    assert ledger.available("right", "gpu", np.array([0, 1])) == 2


def test_giving_back_undoes_taking_across_the_local_boundary() -> None:
    ledger = QuotaLedger(TREE)
    ledger.add("left", Charge("gpu", 5))
    ledger.add("left", Charge("gpu", -4))
    assert (ledger.used("left", "gpu"), ledger.used("all", "gpu")) == (1, 0)


def test_a_parent_that_runs_jobs_itself_takes_from_what_its_children_lent_it() -> None:
    """lab owns 2; x owns 4 and lends 3, so keeps 1: 2 + 3 = 5 for the lab, 1 + 5 = 6 for x.

    The lab holds 4 itself: 1 is left above, and x still has the 1 that it keeps.
    """
    tree = QuotaTree([node("lab", None, line(2)), node("x", "lab", line(4, lends=3))])
    ledger = QuotaLedger(tree)
    assert (ledger.available("lab", "gpu"), ledger.available("x", "gpu")) == (5, 6)
    ledger.add("lab", Charge("gpu", 4))
    assert (ledger.available("lab", "gpu"), ledger.available("x", "gpu")) == (1, 2)
    ledger.add("x", Charge("gpu", 2))
    assert (ledger.available("lab", "gpu"), ledger.available("x", "gpu")) == (0, 0)


def test_a_parent_holds_itself_what_its_children_did_not_add() -> None:
    """x keeps 1 of its 4, so of the 3 that it holds the lab's Usage has 2: 2 + 2 own = 4."""
    tree = QuotaTree([node("lab", None, line(2)), node("x", "lab", line(4, lends=3))])
    ledger = QuotaLedger(tree)
    ledger.add("lab", Charge("gpu", 2))
    ledger.add("x", Charge("gpu", 3))
    assert (ledger.used("lab", "gpu"), ledger.own("lab", "gpu")) == (4, 2)
    assert (ledger.used("x", "gpu"), ledger.own("x", "gpu")) == (3, 3)  # a leaf: all its own
    assert ledger.own("lab", "npu") == 0  # nobody names it


def test_a_tenant_that_left_the_tree_is_charged_to_nobody() -> None:
    ledger = QuotaLedger(TREE)
    ledger.add("gone", Charge("gpu", 5))
    assert ledger.available("all", "gpu") == 12


# -- deeper trees, over-commit and cuts; formulas as in Kueue's resource_node.go -----------------

DEEP = QuotaTree(
    [
        node("firm", None, line(3)),
        node("lab", "firm", line(5, borrows=2, lends=4)),
        node("team", "lab", line(6, borrows=1, lends=2)),
        node("person", "team", line(2, lends=0)),
    ]
)
"""SubtreeQuota and localQuota from the leaf up:

person  2                   lends 0, so it keeps max(0, 2 - 0) = 2 and stores 0 above
team    6 + 0 = 6           lends 2, keeps 4, stores 2
lab     5 + 2 = 7           lends 4, keeps 3, stores 4
firm    3 + 4 = 7           a root keeps nothing from anybody
"""


def test_subtree_and_local_quota_of_four_levels() -> None:
    (tree,) = DEEP.trees
    assert tree.subtree == (7, 7, 6, 2)
    assert tree.local == (0, 3, 4, 2)


def test_potential_of_four_levels() -> None:
    """firm 7; lab min(3 + 7, 7 + 2) = 9; team min(4 + 9, 6 + 1) = 7; person 2 + 7 = 9."""
    potentials = [DEEP.potential(slug, "gpu") for slug in ("firm", "lab", "team", "person")]
    assert potentials == [7, 9, 7, 9]


def test_usage_and_available_of_four_levels() -> None:
    """person holds 8: 2 of its own, 6 of the team's; 4 stay there, 2 reach the lab, which keeps 3.

    firm 7 - 0 = 7; lab max(0, 3 - 2) + min(7, 4 - 0 + 2) = 7; team 0 + min(7, 2 - 2 + 1) = 1;
    person max(0, 2 - 8) + 1 = 1.
    """
    ledger = QuotaLedger(DEEP)
    ledger.add("person", Charge("gpu", 8))
    used = [ledger.used(slug, "gpu") for slug in ("firm", "lab", "team", "person")]
    assert used == [0, 2, 6, 8]
    left = [ledger.available(slug, "gpu") for slug in ("firm", "lab", "team", "person")]
    assert left == [7, 7, 1, 1]


def test_a_cut_above_takes_what_is_available_below_zero() -> None:
    """The firm is cut to 0 and the lab to lend nothing; right still holds 3 that it borrowed."""
    tree = QuotaTree(
        [
            node("firm", None, line(0)),
            node("lab", "firm", line(5, lends=0)),
            node("r", "firm", line(0)),
        ]
    )
    ledger = QuotaLedger(tree)
    ledger.add("r", Charge("gpu", 3))
    assert ledger.available("firm", "gpu") == -3
    assert ledger.available("r", "gpu") == -3
    assert ledger.available("lab", "gpu") == 5 - 3  # Kueue adds both terms, whatever their signs


def test_a_lending_limit_above_what_there_is_keeps_nothing_back() -> None:
    tree = QuotaTree([node("all", None, line(0)), node("a", "all", line(4, lends=9))])
    assert tree.trees[0].local == (0, 0)
    assert tree.potential("all", "gpu") == 4


def test_more_quota_than_the_cluster_has_is_legal_and_is_admitted_by_quota() -> None:
    """Over-commit: nominal quotas are promises in integers; capacity is asked elsewhere."""
    tree = QuotaTree([node("a", None, line(10**9)), node("b", None, line(10**9))])
    assert QuotaLedger(tree).available("a", "gpu") == 10**9


def test_a_chain_of_three_thousand_tenants_is_walked_without_recursion() -> None:
    chain = [node("t0", None, line(1))]
    chain += [node(f"t{i}", f"t{i - 1}", line(1)) for i in range(1, 3000)]
    tree = QuotaTree(chain)
    ledger = QuotaLedger(tree)
    ledger.add("t2999", Charge("gpu", 1))
    assert tree.potential("t2999", "gpu") == 3000
    assert ledger.available("t2999", "gpu") == 2999


def test_above_the_quota_is_what_no_lender_could_ever_give() -> None:
    """right may hold 4 + 3 at most; with 9 it is 2 above, with 7 it only borrows."""
    ledger = QuotaLedger(TREE)
    ledger.add("right", Charge("gpu", 7))
    assert above_quota(ledger, "right", "gpu") == 0
    ledger.add("right", Charge("gpu", 2))
    assert above_quota(ledger, "right", "gpu") == 2
    assert above_quota(ledger, "right", "tpu") == 0
