"""Kueue's arithmetic on a tree worked out by hand.

all      nominal 2                          SubtreeQuota 2 + 6 + 4 = 12
+- left  nominal 8, lends 6                 localQuota 8 - 6 = 2
+- right nominal 4, borrows at most 3       localQuota 0
"""

import pytest

from scheduler.core.snapshot import QuotaLine, TenantNode
from scheduler.decide.quota import UNLIMITED, Charge, QuotaLedger, QuotaTree


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
    ledger.add("right", Charge("gpu", 5), [1])
    assert ledger.available("right", "gpu", [0, 2]) == 7
    assert ledger.available("right", "gpu", [0, 1]) == 2


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


def test_a_tenant_that_left_the_tree_is_charged_to_nobody() -> None:
    ledger = QuotaLedger(TREE)
    ledger.add("gone", Charge("gpu", 5))
    assert ledger.available("all", "gpu") == 12
