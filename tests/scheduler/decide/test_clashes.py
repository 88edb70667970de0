"""Which constraints clash: irreducible sets, checked by brute force, and their numbers."""

from collections.abc import Sequence
from itertools import chain, combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.plan import Clash
from scheduler.core.policy import Policy
from scheduler.core.snapshot import QuotaLine, Snapshot, TenantNode
from scheduler.decide.clashes import deletion_filter
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

TABLES = st.lists(st.sets(st.integers(0, 3)), min_size=1, max_size=5)
"""What each group allows of four flavors."""


def subsets(groups: Sequence[int]) -> list[tuple[int, ...]]:
    sizes = range(len(groups) + 1)
    return list(chain.from_iterable(combinations(groups, size) for size in sizes))


@settings(max_examples=200, deadline=None)
@given(TABLES)
def test_the_filter_finds_a_set_that_clashes_and_none_of_whose_parts_does(
    tables: list[set[int]],
) -> None:
    def feasible(groups: Sequence[int]) -> bool:
        return bool({0, 1, 2, 3}.intersection(*(tables[g] for g in groups)))

    found = deletion_filter(range(len(tables)), feasible)
    every = [groups for groups in subsets(range(len(tables))) if not feasible(groups)]
    minimal = [g for g in every if not any(set(other) < set(g) for other in every)]
    assert (found in minimal) if every else (found == ())


def clashes(snapshot: Snapshot, policy: Policy | None = None) -> dict[str, Clash]:
    chosen = policy or Policy(strategy="rules")
    plan = decide(snapshot, chosen, now_s=NOW_S, budget_s=1.0)
    return {clash.uid: clash for clash in plan.clashes}


def fleet() -> FleetBuilder:
    builder = FleetBuilder().flavor("fast", cu=900.0, power_w=700.0)
    builder.flavor("slow", cu=300.0, power_w=300.0)
    return builder.node("n1", devices=4, flavor="fast").node("n2", devices=4, flavor="slow")


def test_speed_and_quota_clash_where_the_tenant_owns_only_what_is_slow() -> None:
    """Each alone can be met: `fast` is fast enough, and of `slow` the tenant has four."""
    quotas = {"slow": QuotaLine(4000), "fast": QuotaLine(0)}
    asked = job("a", devices=2, min_throughput=0.9)
    found = clashes(world(fleet(), [asked], tenants=[TenantNode("t", None, 1.0, quotas)]))
    assert found["a"].constraints == ("quota", "min_throughput")
    assert found["a"].numbers == {"quota": {"tenant": "t"}, "min_throughput": {"asked": 0.9}}


def test_speed_and_power_clash_under_a_cap() -> None:
    """Four fast devices need 2800 W, four slow ones 1200 W."""
    asked = job("a", devices=4, min_throughput=0.9)
    found = clashes(world(fleet(), [asked]), Policy(strategy="rules", power_cap_w=2000.0))
    assert found["a"].constraints == ("power_cap", "min_throughput")
    assert found["a"].numbers["power_cap"] == {"cap_w": 2000.0}


def test_a_single_constraint_that_nothing_meets_is_named_alone() -> None:
    found = clashes(world(fleet(), [job("a", devices=5)]))
    assert found["a"].constraints == ("nodes",)


def test_flavor_and_speed_clash_in_the_request_itself() -> None:
    asked = job("a", devices=1, flavors=["slow"], min_throughput=0.9)
    assert clashes(world(fleet(), [asked]))["a"].constraints == ("flavors", "min_throughput")


def test_several_slices_unasked_are_what_alone_rules_a_job_out() -> None:
    """A profile, by which a job may ask for slices, is no clash."""
    name = "a100-mig-1g.10gb"
    slices = FleetBuilder().flavor(name).node("n1", devices=7, flavor=name)
    assert clashes(world(slices, [job("a", devices=2)]))["a"].constraints == ("flavors",)
    assert clashes(world(slices, [job("a", devices=2, flavors=["1g.10gb"])])) == {}


def test_what_runs_and_a_limit_that_was_cut_below_it_clash() -> None:
    held = running(job("run", devices=3, flavors=["fast"]), 0, [0, 1, 2])
    snapshot = world(fleet(), running=[held], tenants=[tenant("t", fast=2)])
    plan = decide(snapshot, Policy(strategy="rules", power_cap_w=2000.0), now_s=NOW_S, budget_s=1.0)
    power, quota = plan.clashes
    assert (power.constraints, quota.constraints) == (
        ("running", "power_cap"),
        ("running", "quota"),
    )
    assert power.numbers == {"held_w": 2100.0, "cap_w": 2000.0}
    assert quota.numbers == {
        "tenant": "t",
        "flavor": "fast",
        "used_milli": 3000,
        "most_milli": 2000,
    }


def test_where_all_can_be_met_nothing_clashes() -> None:
    mistake = job("wrong", cpu=0)
    assert clashes(world(fleet(), [job("a", devices=4), mistake])) == {}
