"""The search for whom it costs least: what is found, what is spared, and what a search may cost."""

from dataclasses import replace

import pytest

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import JobSpec, Reservation, RunningJob, Snapshot
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world
from tests.scheduler.decide.preemption.test_room import plan_of

RULES = Policy(strategy="rules")


def runs(uid: str, *devices: int, node: int = 0, ran_s: float = 3600, who: str = "b") -> RunningJob:
    """Return an inelastic job of b, nothing saved: it loses what it ran times its devices."""
    spec = job(uid, tenant=who, devices=len(devices), limit_s=1e5)
    return running(spec, node, devices, started_s=NOW_S - ran_s)


def stretches(uid: str, least: int, *cells: tuple[int, int], ran_s: float = 3600) -> RunningJob:
    """Return an elastic job of b, one device a replica at each (node, device)."""
    spec = job(uid, tenant="b", devices=1, replicas=least, replicas_max=len(cells), limit_s=1e5)
    parts = [running(spec, node, [device]).replicas[0] for node, device in cells]
    return RunningJob(spec, tuple(parts), NOW_S - ran_s)


def wants(uid: str = "T", devices: int = 4, replicas: int = 1, limit_s: float = 3600) -> JobSpec:
    spec = job(uid, tenant="a", devices=devices, replicas=replicas, limit_s=limit_s)
    return replace(spec, submitted_s=NOW_S - 90_000)


def site(
    nodes: tuple[int, ...], jobs: list[RunningJob], *queue: JobSpec, a: int, b: int
) -> Snapshot:
    """Return nodes of so many devices that the tenants a and b own so much of."""
    fleet = FleetBuilder()
    for n, devices in enumerate(nodes):
        fleet.node(f"n{n}", devices=devices)
    tenants = [tenant("all", a100=0)]
    tenants += [tenant("a", under="all", a100=a), tenant("b", under="all", a100=b)]
    return world(fleet, queue, running=jobs, tenants=tenants)


def told(plan: Plan) -> dict[str, int]:
    """Return uid -> replicas that are left to it."""
    shrunk = {one.uid: len(one.replicas) for one in plan.resizes}
    return {one.uid: 0 for one in plan.preempts} | shrunk


SMALL = {
    "two small jobs": [runs("s0", 4, node=1, ran_s=700), runs("s1", 5, node=1, ran_s=700)],
    "an elastic job": [stretches("e", 1, (1, 4), (1, 5), ran_s=700)],
}


@pytest.mark.parametrize("small", SMALL.values(), ids=SMALL.keys())
def test_cheap_jobs_do_not_use_up_what_the_laws_allow(small: list[RunningJob]) -> None:
    """b owns two of the six that it holds; a owns four and wants them, each on a place of its own.

    Only the large job gives four: 6 - 4 = 2 are left to b. Once one of the small ones has gone, b
    holds 5, and the large one would leave it 1.
    """
    snapshot = site(
        (4, 2), [runs("large", 0, 1, 2, 3), *small], wants(devices=1, replicas=4), a=4, b=2
    )
    assert told(plan_of(snapshot)) == {"large": 0}


def test_one_shrinks_who_can_do_without_enough_and_nobody_is_evicted() -> None:
    """x can do without one of four on n0, y without four of five: n1 is emptied of y alone.

    x comes first, as it loses less work, and its eviction would make room as well.
    """
    x = stretches("x", 3, (0, 0), (0, 1), (0, 2), (0, 3), ran_s=1000)
    y = stretches("y", 1, (1, 4), (1, 5), (1, 6), (1, 7), (2, 8), ran_s=9000)
    assert told(plan_of(site((4, 4, 1), [x, y], wants(), a=5, b=4))) == {"y": 1}


def test_quota_is_won_by_shrinking_before_anybody_is_evicted() -> None:
    """Places are free; b holds seven, two of them a's. x could give one, y gives both.

    To shrink both x and y would cost 2 x 1000 + 5 x 9000 device-seconds, y alone 5 x 9000.
    """
    x = stretches("x", 1, (0, 0), (0, 1), ran_s=1000)
    y = stretches("y", 1, *((0, d) for d in range(2, 7)), ran_s=9000)
    assert told(plan_of(site((8, 8), [x, y], wants(devices=2), a=2, b=5))) == {"y": 3}


def test_who_is_evicted_shrinks_instead_where_that_will_do() -> None:
    """firm gives two of four devices on n0, the elastic job two of three; it keeps one."""
    firm, e = runs("firm", 0, 1), stretches("e", 1, (0, 2), (0, 3), (1, 4))
    assert told(plan_of(site((4, 1), [firm, e], wants(), a=5, b=0))) == {"firm": 0, "e": 1}


def test_the_sum_of_the_work_lost_is_least_not_that_of_each() -> None:
    """T wants two devices. One job of two lost 2 x 1100 = 2200; two of one 1300 each, 2600.

    Job by job, those two come first, as each loses less than the one.
    """
    ones = [runs("o0", 0, ran_s=1300), runs("o1", 1, ran_s=1300)]
    pair = runs("pair", 2, 3, ran_s=1100)
    snapshot = site((4,), [*ones, pair], wants(devices=2), a=4, b=0)
    assert told(plan_of(snapshot)) == {"pair": 0}


def test_no_higher_class_loses_than_must() -> None:
    """n0: a job of class 0 that lost much. n1: one of class 1 that lost nothing yet."""
    old, new = runs("old", 0, 1, ran_s=90_000), runs("new", 2, 3, node=1, ran_s=600)
    new = replace(new, spec=replace(new.spec, priority=1))
    asks = replace(wants(devices=2), priority=1)
    assert told(plan_of(site((2, 2), [old, new], asks, a=4, b=0))) == {"old": 0}


def test_a_long_job_that_cannot_be_helped_does_not_stop_a_short_one() -> None:
    """In two hours the node is closed for maintenance: ten hours do not fit before it, half of one
    does."""
    queue = [wants("long", limit_s=36_000), wants("short", limit_s=1800)]
    snapshot = site((4,), [runs("r", 0, 1, 2, 3)], *queue, a=4, b=0)
    closed = Reservation("closed", NOW_S + 7200, NOW_S + 2e5, (0,))
    plan = plan_of(replace(snapshot, reservations=(closed,)))
    assert [(one.uid, one.beneficiary) for one in plan.preempts] == [("r", "short")]


def test_kinds_that_nobody_can_help_do_not_use_up_the_searches() -> None:
    """A firm job of a's own holds one of four devices: nothing makes room for four on one node."""
    firm = runs("firm", 0, who="a")
    firm = replace(firm, spec=replace(firm.spec, preemptible=False))
    others = [runs(f"r{d}", d) for d in (1, 2, 3)]
    big = [wants(f"B{k:02d}") for k in range(70)]
    big = [replace(one, shape=replace(one.shape, memory_mib=1000 + k)) for k, one in enumerate(big)]
    small = replace(wants("small", devices=1), submitted_s=NOW_S - 600)
    plan = plan_of(site((4,), [firm, *others], *big, small, a=8, b=0))
    assert [one.beneficiary for one in plan.preempts] == ["small"]


def test_watts_are_won_back_like_places() -> None:
    """1600 W are four devices of 400 W: b holds all four of a's, and four places are free."""
    snapshot = site((8,), [runs("r", 0, 1, 2, 3)], wants(), a=4, b=0)
    policy = replace(RULES, power_cap_w=1600.0)
    root = tenant("all", a100=4)
    snapshot = replace(snapshot, tenants=(root, *snapshot.tenants[1:]))
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=1.0)
    verify(snapshot, plan, policy)
    assert told(plan) == {"r": 0}


def test_who_has_just_grown_gives_it_back_at_once() -> None:
    """e may run on one and took a's three idle devices a second ago, which began it anew.

    It can't be evicted for 599 s more, and need not be.
    """
    e = stretches("e", 1, (0, 0), (0, 1), (0, 2), (0, 3), ran_s=1)
    assert told(plan_of(site((4,), [e], wants(devices=3), a=3, b=1))) == {"e": 1}
    assert told(plan_of(site((4,), [e], wants(devices=4), a=4, b=0))) == {}
