"""Each invariant, broken on purpose."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from scheduler.core.errors import InvalidPlanError
from scheduler.core.plan import Plan, SolverReport, Start
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import JobSpec, ReplicaPlacement, Snapshot
from scheduler.core.verify import verify
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

WHOLE = 80_000


def place(node: int = 0, *devices: int, milli: int = 1000, memory: int = WHOLE) -> ReplicaPlacement:
    return ReplicaPlacement(node, devices, milli, memory)


def plan(*starts: Start, pending: tuple[str, ...] = ()) -> Plan:
    waits = tuple(Pending(uid, WaitReason.WAITING_FOR_CAPACITY) for uid in pending)
    return Plan("c", NOW_S, starts, waits, (), SolverReport("rules", "rules", "not_needed"))


def start(*replicas: ReplicaPlacement, uid: str = "a", flavor: str = "a100") -> Start:
    return Start(uid, replicas, flavor)


def small() -> Snapshot:
    """n1: 4 devices, one sick; n2: tainted; n3: cordoned; job a wants 2 devices, b half of one."""
    fleet = FleetBuilder().node("n1", devices=4, sick=[3]).node("n2", devices=4, taints=["x"])
    fleet.node("n3", devices=4, ready=False).node("n4", devices=4, flavor="h100")
    half = job("b", devices=1, milli=500, gpu_memory_mib=50_000)
    return world(fleet, [job("a", devices=2, flavors=["a100"]), half], tenants=[tenant("t")])


GOOD = start(place(0, 0, 1))
HALF = start(place(0, 2, milli=500, memory=50_000), uid="b")

BROKEN: dict[str, tuple[Plan, str]] = {
    "a job is forgotten": (plan(GOOD), "answered 0 times"),
    "a job is answered twice": (plan(GOOD, HALF, pending=("a",)), "answered 2 times"),
    "a job is invented": (plan(GOOD, HALF, pending=("z",)), "not pending"),
    "too many replicas": (plan(start(place(0, 0, 1), place(0, 2, 3)), HALF), "2 replicas"),
    "too few devices": (plan(start(place(0, 0)), HALF), "has 1 devices"),
    "one device twice": (plan(start(place(0, 1, 1)), HALF), "has 2 devices"),
    "a device is held by two": (plan(start(place(0, 1, 2)), HALF), "milli of device 2"),
    "a sick device": (plan(start(place(0, 2, 3)), pending=("b",)), "sick device"),
    "a taint is not tolerated": (plan(start(place(1, 4, 5)), HALF), "tainted node"),
    "a cordoned node": (plan(start(place(2, 8, 9)), HALF), "not ready"),
    "a device of another node": (plan(start(place(0, 0, 4)), HALF), "mixes nodes"),
    "another flavor": (plan(start(place(3, 12, 13), flavor="h100"), HALF), "may not use flavor"),
    "two flavors": (plan(start(place(3, 12, 13)), HALF), "mixes flavors"),
    "a node that is counted from the end": (plan(start(place(-4, 0, 1)), HALF), "no known node"),
    "a node beyond the last": (plan(start(place(4, 0, 1)), HALF), "no known node"),
    "a device counted from the end": (plan(start(place(0, 0, -1)), HALF), "no known device"),
    "a device beyond the last": (plan(start(place(0, 0, 16)), HALF), "no known device"),
    "of another cluster": (replace(plan(GOOD, HALF), cluster="d"), "of cluster 'd'"),
    "another share": (plan(GOOD, start(place(0, 2, milli=400), uid="b")), "other milli"),
}


def test_a_good_plan_passes() -> None:
    verify(small(), plan(GOOD, HALF))


@pytest.mark.parametrize(
    ("broken", "message"), [pytest.param(*case, id=name) for name, case in BROKEN.items()]
)
def test_a_broken_plan_is_named(broken: Plan, message: str) -> None:
    with pytest.raises(InvalidPlanError, match=message):
        verify(small(), broken)


def test_device_memory_is_not_shared_twice() -> None:
    """Two halves of a device that want 50 of its 80 GB each."""
    halves = [job(uid, devices=1, milli=500, gpu_memory_mib=50_000) for uid in ("a", "b")]
    snapshot = world(FleetBuilder().node("n1", devices=1), halves)
    both = [start(place(0, 0, milli=500, memory=50_000), uid=uid) for uid in ("a", "b")]
    with pytest.raises(InvalidPlanError, match="memory of device 0: 100000 taken, 80000 free"):
        verify(snapshot, plan(*both))


def test_a_share_takes_its_part_of_the_memory_whatever_the_plan_says() -> None:
    """A half that asks for no memory takes 40,000 of 80,000 MiB; 50,000 are held already."""
    held = running(job("r", devices=1, milli=500), 0, [0], gpu_memory_mib=50_000)
    asks = job("a", devices=1, milli=500)
    snapshot = world(FleetBuilder().node("n1", devices=1), [asks], running=[held])
    with pytest.raises(InvalidPlanError, match="memory of device 0: 40000 taken, 30000 free"):
        verify(snapshot, plan(start(place(0, 0, milli=500, memory=0))))


MAY_NOT: dict[str, tuple[JobSpec, str]] = {
    "that backs off": (job("a", devices=2, not_before_s=NOW_S + 1), "backs off"),
    "that is on hold": (job("a", devices=2, hold="on_hold"), "on hold"),
    "of no tenant": (job("a", devices=2, tenant="x"), "no known tenant"),
    "that wants more memory": (job("a", devices=2, gpu_memory_mib=80_001), "more memory than"),
    "that it is too slow for": (job("a", devices=2, min_throughput=0.4), "too slow on 'a100': 0.3"),
    "that may not be evicted": (
        replace(job("a", devices=2), preemptible=False),
        "more 'a100' than it owns",
    ),
}


def rated() -> FleetBuilder:
    """Of 300 and 1000 compute units: an A100 runs at 0.3 of the fastest."""
    fleet = FleetBuilder().flavor("a100", cu=300.0).flavor("h100", cu=1000.0)
    return fleet.node("n1", devices=2).node("n2", devices=2, flavor="h100")


@pytest.mark.parametrize(
    ("asks", "message"), [pytest.param(*case, id=name) for name, case in MAY_NOT.items()]
)
def test_nothing_starts_a_job(asks: JobSpec, message: str) -> None:
    """All it owns is one A100, which it may pass by borrowing."""
    tenants = [tenant("top", a100=1), tenant("t", under="top", a100=1)]
    snapshot = world(rated(), [asks], tenants=tenants)
    with pytest.raises(InvalidPlanError, match=message):
        verify(snapshot, plan(GOOD))


def test_what_only_just_may_start_passes() -> None:
    asks = job("a", devices=2, not_before_s=NOW_S, min_throughput=0.3, gpu_memory_mib=80_000)
    verify(world(rated(), [asks]), plan(GOOD))
    measured = replace(asks, min_throughput=0.9, job_class="lm")
    verify(replace(world(rated(), [measured]), throughputs={("lm", "a100"): 0.9}), plan(GOOD))


def test_others_of_its_tenant_that_may_not_be_evicted_count_with_a_job_that_may_not() -> None:
    """t owns three and lets one firm job run: two more may start, and not where two own it."""
    held = running(replace(job("r", devices=1), preemptible=False), 0, [2])
    firm = replace(job("a", devices=2), preemptible=False)
    fleet = FleetBuilder().node("n1", devices=4)
    tenants = [tenant("top", a100=9), tenant("t", under="top", a100=3)]
    snapshot = world(fleet, [firm], running=[held], tenants=tenants)
    verify(snapshot, plan(GOOD))
    less = replace(snapshot, tenants=(tenants[0], tenant("t", under="top", a100=2)))
    verify(replace(less, pending=(job("a", devices=2),)), plan(GOOD))
    with pytest.raises(InvalidPlanError, match="keeps from eviction more 'a100'"):
        verify(less, plan(GOOD))


def test_a_plan_of_another_time_is_refused() -> None:
    """A strategy that shifts the time could wait out every back-off."""
    verify(small(), plan(GOOD, HALF), now_s=NOW_S)
    with pytest.raises(InvalidPlanError, match="the plan is of"):
        verify(small(), plan(GOOD, HALF), now_s=NOW_S + 1)


CHANGES: dict[str, Callable[[Snapshot], Snapshot]] = {
    "its own quota": lambda s: replace(s, tenants=(tenant("t", a100=1),)),
    "the quota above": lambda s: replace(
        s, tenants=(tenant("top", a100=1), tenant("t", under="top", a100=0))
    ),
    "a flavor that others name": lambda s: replace(s, tenants=(tenant("u", a100=9), tenant("t"))),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_quota_is_checked_up_the_tree(change: Callable[[Snapshot], Snapshot]) -> None:
    with pytest.raises(InvalidPlanError, match=r"quota|may not use"):
        verify(change(small()), plan(GOOD, HALF))


def test_a_quota_cut_below_use_stops_nobody_else() -> None:
    """u holds 2 of a quota of 1; t starts within its own."""
    held = running(job("old", tenant="u", devices=2), 0, (2, 3))
    snapshot = world(
        FleetBuilder().node("n1", devices=4),
        [job("a", devices=2)],
        running=[held],
        tenants=[tenant("u", a100=1), tenant("t", a100=2)],
    )
    verify(snapshot, plan(GOOD))


def near() -> FleetBuilder:
    """Racks r and s; n1 has two islands of two devices, with a NUMA node and a card each."""
    pairs = [0, 0, 1, 1]
    fleet = FleetBuilder().node("n1", devices=4, groups=pairs, numa=pairs, nics=pairs, rack="r")
    return fleet.node("n2", devices=4, rack="s")


APART: dict[str, tuple[dict[str, str], tuple[ReplicaPlacement, ...], str]] = {
    "two racks": ({"within": "rack"}, (place(0, 0), place(1, 4)), "not in one rack"),
    "no block is known": ({"within": "block"}, (place(0, 0), place(0, 1)), "not in one block"),
    "two nodes": ({"within": "node"}, (place(0, 0), place(1, 4)), "not in one node"),
    "two islands": ({"within": "link"}, (place(0, 0), place(0, 2)), "not in one link"),
    "no links": ({"within": "link"}, (place(1, 4), place(1, 5)), "not in one link"),
    "two network cards": ({"within": "nic"}, (place(0, 1), place(0, 2)), "not in one nic"),
    "no network card is known": ({"within": "nic"}, (place(1, 4), place(1, 5)), "not in one nic"),
    "no NUMA node is known": ({"within": "numa"}, (place(1, 4), place(1, 5)), "not in one numa"),
    "one node twice": ({"placement": "one_per_node"}, (place(0, 0), place(0, 1)), "on one node"),
}


@pytest.mark.parametrize(
    ("wish", "places", "message"), [pytest.param(*case, id=name) for name, case in APART.items()]
)
def test_a_hard_wish_that_is_not_kept_is_named(
    wish: dict[str, str], places: tuple[ReplicaPlacement, ...], message: str
) -> None:
    asked = job("a", devices=1, replicas=2, **wish)  # type: ignore[arg-type]
    with pytest.raises(InvalidPlanError, match=message):
        verify(world(near(), [asked], tenants=[tenant("t")]), plan(start(*places)))


@pytest.mark.parametrize("level", ["link", "nic", "numa", "node", "rack"])
def test_a_hard_wish_that_is_kept_passes(level: str) -> None:
    asked = job("a", devices=1, replicas=2, within=level)
    good = plan(start(place(0, 0), place(0, 1)))
    verify(world(near(), [asked], tenants=[tenant("t")]), good)


def test_a_forbidden_pair_on_one_device_is_refused_in_either_order() -> None:
    shares = [
        replace(job(uid, devices=1, milli=300, gpu_memory_mib=1000), interference=name)
        for uid, name in (("a", "lm"), ("b", "cv"))
    ]
    snapshot = world(FleetBuilder().node("n1", devices=2), shares)
    beside = plan(*(start(place(0, 0, milli=300, memory=1000), uid=uid) for uid in "ab"))
    apart = plan(
        start(place(0, 0, milli=300, memory=1000)),
        start(place(0, 1, milli=300, memory=1000), uid="b"),
    )
    verify(replace(snapshot, pairs={("cv", "lm"): (0.5, 0.5)}), beside)
    for pairs in ({("cv", "lm"): (0.9, 0.4)}, {("lm", "cv"): (0.9, 0.4)}):
        forbidden = replace(snapshot, pairs=pairs)
        verify(forbidden, apart)
        with pytest.raises(InvalidPlanError, match="shares device 0 with class"):
            verify(forbidden, beside)


def test_a_forbidden_pair_that_runs_already_is_left_alone_but_nobody_joins_it() -> None:
    held = [
        running(
            replace(job(uid, devices=1, milli=300), interference=name), 0, [0], gpu_memory_mib=1000
        )
        for uid, name in (("r", "lm"), ("s", "cv"))
    ]
    asks = replace(job("a", devices=1, milli=300, gpu_memory_mib=1000), interference="cv")
    snapshot = world(FleetBuilder().node("n1", devices=2), [asks], running=held)
    forbidden = replace(snapshot, pairs={("lm", "cv"): (0.4, 0.4)})
    verify(forbidden, plan(start(place(0, 1, milli=300, memory=1000))))
    with pytest.raises(InvalidPlanError, match="shares device 0 with class 'lm'"):
        verify(forbidden, plan(start(place(0, 0, milli=300, memory=1000))))
