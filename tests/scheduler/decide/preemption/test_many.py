"""Room is found however many others there are that don't help."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Reservation, RunningJob, Snapshot, TenantNode
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

POLICY = Policy(strategy="rules")
LONG_S = 900_000.0
WAITED_S = NOW_S - 9000
CHEAP_S, DEAR_S = NOW_S - 5000, NOW_S - 50_000


def plan_of(snapshot: Snapshot) -> Plan:
    return decide(snapshot, POLICY, now_s=NOW_S, budget_s=1.0)


def evicted(snapshot: Snapshot) -> list[str]:
    return sorted(one.uid for one in plan_of(snapshot).preempts)


def owner(devices: int, **owned: int) -> list[TenantNode]:
    """`own` owns so many devices of the root's, `bor` none; others as named."""
    tree = [tenant("root"), tenant("own", under="root", a100=devices)]
    tree.append(tenant("bor", under="root", a100=0))
    return [*tree, *(tenant(slug, under="root", a100=n) for slug, n in owned.items())]


def nodes(count: int, devices: int = 1) -> FleetBuilder:
    fleet = FleetBuilder()
    for i in range(count):
        fleet.node(f"n{i:04d}", devices=devices)
    return fleet


def held(
    name: str, count: int, *, owner: str = "bor", first: int = 0, began_s: float
) -> list[RunningJob]:
    """One device each, on a node each; each began a second before the one ahead of it."""
    spec = job("", tenant=owner, devices=1, limit_s=LONG_S)
    return [
        running(replace(spec, uid=f"{name}{i:03d}"), first + i, [first + i], started_s=began_s - i)
        for i in range(count)
    ]


@pytest.mark.parametrize("racks", [10, 100])
def test_a_gang_that_must_be_in_one_rack_is_made_room_for_in_one(racks: int) -> None:
    """Each rack has one borrower with little to lose and one with much; two of one rack go."""
    fleet, jobs = FleetBuilder(), []
    for i in range(racks):
        fleet.node(f"n{i:03d}a", devices=1, rack=f"r{i:03d}")
        fleet.node(f"n{i:03d}b", devices=1, rack=f"r{i:03d}")
        jobs += held(f"a{i:03d}-", 1, first=2 * i, began_s=CHEAP_S - i)
        jobs += held(f"b{i:03d}-", 1, first=2 * i + 1, began_s=DEAR_S - i)
    gang = job("g", tenant="own", devices=1, replicas=2, within="rack", submitted_s=WAITED_S)
    snapshot = world(fleet, [gang], running=jobs, tenants=owner(2 * racks))
    assert evicted(snapshot) == ["a000-000", "b000-000"]


@pytest.mark.parametrize("cheap", [20, 100])
def test_who_may_lose_only_one_does_not_hide_who_may_lose_more(cheap: int) -> None:
    """x holds one device above what it owns, y four: law 2 leaves one of x's, though cheaper."""
    jobs = held("x", cheap, owner="x", began_s=CHEAP_S)
    jobs += held("y", 4, owner="y", first=cheap, began_s=DEAR_S)
    gang = job("g", tenant="own", devices=1, replicas=2, submitted_s=WAITED_S)
    tree = owner(5, x=cheap - 1, y=0)
    snapshot = world(nodes(cheap + 4), [gang], running=jobs, tenants=tree)
    assert evicted(snapshot) == ["x000", "y000"]


@pytest.mark.parametrize("cheap", [20, 100])
def test_nodes_that_will_be_in_maintenance_do_not_hide_others(cheap: int) -> None:
    """The cheap end before it begins, but a job in their place would not."""
    jobs = held("x", cheap, began_s=CHEAP_S)
    jobs = [replace(one, spec=replace(one.spec, time_limit_s=9000.0)) for one in jobs]
    jobs += held("y", 2, first=cheap, began_s=DEAR_S)
    long = job("l", tenant="own", devices=1, limit_s=7200.0, submitted_s=WAITED_S)
    snapshot = world(nodes(cheap + 2), [long], running=jobs, tenants=owner(cheap + 2))
    window = Reservation("m", NOW_S + 5000, NOW_S + LONG_S, tuple(range(cheap)))
    snapshot = replace(snapshot, reservations=(window,))
    assert evicted(snapshot) == ["y000"]


@pytest.mark.parametrize("alone", [10, 600])
def test_where_only_quota_is_short_free_nodes_alone_in_their_racks_hide_no_other(
    alone: int,
) -> None:
    fleet = FleetBuilder()
    for i in range(alone):
        fleet.node(f"a{i:04d}", devices=1, rack=f"r{i}")
    fleet.node("z0", devices=1, rack="last").node("z1", devices=1, rack="last")
    fleet.node("zz", devices=2, rack="busy", taints=("x",))
    both = job("b", tenant="bor", devices=2, limit_s=LONG_S)
    lender = running(both, alone + 2, [alone + 2, alone + 3], started_s=DEAR_S)
    gang = job("g", tenant="own", devices=1, replicas=2, within="rack", submitted_s=WAITED_S)
    snapshot = world(fleet, [gang], running=[lender], tenants=owner(2))
    assert evicted(snapshot) == ["b"]


def fractions(each: int) -> Sequence[RunningJob]:
    """Eight devices, each shared by so many."""
    spec = job("", tenant="bor", devices=1, milli=1000 // each, memory_mib=100, limit_s=LONG_S)
    return [
        running(
            replace(spec, uid=f"f{device}-{i:02d}"),
            0,
            [device],
            started_s=CHEAP_S - i,
            gpu_memory_mib=80_000 // each,
        )
        for device in range(8)
        for i in range(each)
    ]


@pytest.mark.parametrize("each", [1, 2, 5])
def test_all_who_share_the_devices_of_a_node_may_have_to_go(each: int) -> None:
    fleet = FleetBuilder().node("n", devices=8, cpu=200)
    whole = job("w", tenant="own", devices=8, submitted_s=WAITED_S)
    snapshot = world(fleet, [whole], running=fractions(each), tenants=owner(8))
    assert len(evicted(snapshot)) == 8 * each


def test_many_small_jobs_of_cores_make_room_for_a_large_one() -> None:
    tree = [tenant("root"), tenant("own", under="root", cpu=100)]
    tree += [tenant("bor", under="root", cpu=0)]
    spec = job("", tenant="bor", cpu=2, memory_mib=100, limit_s=LONG_S)
    jobs = [running(replace(spec, uid=f"c{i:02d}"), 0, started_s=CHEAP_S) for i in range(50)]
    large = job("l", tenant="own", cpu=100, submitted_s=WAITED_S)
    snapshot = world(FleetBuilder().node("n", cpu=100), [large], running=jobs, tenants=tree)
    assert len(evicted(snapshot)) == 50


def test_who_can_shrink_on_several_nodes_is_asked_on_each_of_them() -> None:
    """Thirty jobs on three nodes can do without two each: enough for forty, nobody is evicted."""
    spec = job("", tenant="bor", devices=1, replicas=1, replicas_max=3, limit_s=LONG_S)
    jobs = []
    for i in range(30):
        parts = [running(spec, node, [node]).replicas[0] for node in range(3 * i, 3 * i + 3)]
        jobs.append(RunningJob(replace(spec, uid=f"e{i:02d}"), tuple(parts), CHEAP_S - i))
    gang = job("g", tenant="own", devices=1, replicas=40, submitted_s=WAITED_S)
    plan = plan_of(world(nodes(90), [gang], running=jobs, tenants=owner(90)))
    assert not plan.preempts
    assert sum(3 - len(one.replicas) for one in plan.resizes) == 40


def test_a_gang_of_forty_nodes_takes_back_all_that_is_its_tenants() -> None:
    spec = job("", tenant="bor", devices=1, limit_s=LONG_S)
    jobs = [
        running(replace(spec, uid=f"r{d:03d}"), d // 8, [d], started_s=CHEAP_S - d)
        for d in range(320)
    ]
    gang = job("g", tenant="own", devices=8, replicas=40, submitted_s=WAITED_S)
    snapshot = world(nodes(40, devices=8), [gang], running=jobs, tenants=owner(320))
    assert len(evicted(snapshot)) == 320


@pytest.mark.parametrize("others", [5, 60])
def test_hopeless_jobs_and_other_tenants_leave_time_to_search_for_an_owners_next(
    others: int,
) -> None:
    """Law 2 leaves x its four devices, so that gangs of eight are in vain; s needs only four."""
    spec = job("", tenant="x", devices=4, limit_s=LONG_S)
    jobs = [
        running(replace(spec, uid=f"x{i}"), i, range(4 * i, 4 * i + 4), started_s=CHEAP_S - i)
        for i in range(2)
    ]
    gang = job("", tenant="own", devices=4, replicas=2, submitted_s=WAITED_S)
    waiting = [
        replace(gang, uid=f"g{i}", shape=replace(gang.shape, cpu_milli=1000 + i)) for i in range(4)
    ]
    waiting.append(job("s", tenant="own", devices=4, submitted_s=WAITED_S + 100))
    waiting += [
        job(f"o{i}", tenant=f"o{i}", devices=1, submitted_s=WAITED_S + 200) for i in range(others)
    ]
    tree = owner(8, x=4, **{f"o{i}": 0 for i in range(others)})
    snapshot = world(nodes(2, devices=4), waiting, running=jobs, tenants=tree)
    assert [(one.uid, one.beneficiary) for one in plan_of(snapshot).preempts] == [("x0", "s")]
