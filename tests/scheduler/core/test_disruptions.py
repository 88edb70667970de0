"""Each law about evictions and resizes, broken on purpose."""

from dataclasses import replace

import pytest

from scheduler.core.errors import InvalidPlanError
from scheduler.core.plan import EvictionCause, Plan, Preempt, Resize, SolverReport
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import (
    QuotaLine,
    ReplicaPlacement,
    Reservation,
    RunningJob,
    Snapshot,
)
from scheduler.core.verify import verify
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

WAITS = WaitReason.WAITING_FOR_PREEMPTED_JOBS
RECLAIMED, SHARED = EvictionCause.RECLAIMED, EvictionCause.SHARED


def places(*devices: int) -> tuple[ReplicaPlacement, ...]:
    return tuple(ReplicaPlacement(0, (device,), 1000, 80_000) for device in devices)


def small() -> Snapshot:
    """Six devices; t waits for one of its two; b owns two and holds the others.

    b runs v and w of one device each, and an elastic job of two to four replicas with three.
    """
    elastic = RunningJob(
        job("e", tenant="b", devices=1, replicas=2, replicas_max=4), places(2, 3, 4), NOW_S - 999
    )
    held = [running(job(uid, tenant="b", devices=1), 0, [d]) for d, uid in enumerate("vw")]
    tenants = [
        tenant("all", a100=2),
        tenant("t", under="all", a100=2),
        tenant("b", under="all", a100=2),
    ]
    fleet = FleetBuilder().node("n1", devices=6)
    return world(fleet, [job("a", devices=1)], running=[*held, elastic], tenants=tenants)


def plan(*preempts: Preempt, resizes: tuple[Resize, ...] = (), code: WaitReason = WAITS) -> Plan:
    report = SolverReport("rules", "rules", "not_needed")
    return Plan("c", NOW_S, (), (Pending("a", code),), (), report, preempts, resizes)


def reclaim(uid: str = "v", *, by: str = "a") -> Preempt:
    return Preempt(uid, by, EvictionCause.RECLAIMED)


def test_a_lawful_plan_passes() -> None:
    """b holds five of its two: v, w and one replica may go."""
    shrunk = Resize("e", places(2, 3), "a", RECLAIMED)
    verify(small(), plan(reclaim("v"), reclaim("w"), resizes=(shrunk,)))
    verify(small(), plan(resizes=(Resize("e", places(2, 3, 4, 5)),)))


def even(*uids: str) -> Plan:
    return plan(*(Preempt(uid, "a", EvictionCause.REBALANCED) for uid in uids))


def in_debt(**changes: object) -> Snapshot:
    """Return the small world where t owns nothing and its parent four: a would be borrowed.

    b holds three above its own, and keeps two without v, one without w, too.
    """
    snapshot = small()
    (a,) = snapshot.pending
    tenants = [
        tenant("all", a100=4),
        tenant("t", under="all", a100=0),
        tenant("b", under="all", a100=2),
    ]
    waits = replace(a, **changes)  # type: ignore[arg-type]
    return replace(snapshot, pending=(waits,), tenants=tuple(tenants))


def test_surplus_may_be_taken_up_to_an_even_share() -> None:
    verify(in_debt(), even("v"))
    verify(in_debt(), even("v", "w"))
    doubled = [replace(t, fair_weight=2.0 if t.slug == "b" else 1.0) for t in in_debt().tenants]
    with pytest.raises(InvalidPlanError, match="has no claim"):
        verify(replace(in_debt(), tenants=tuple(doubled)), even("v", "w"))


def test_surplus_beyond_an_even_share_stays_where_it_is() -> None:
    """Two for t and one left to b."""
    shape = replace(in_debt().pending[0].shape, devices=2)
    with pytest.raises(InvalidPlanError, match="has no claim"):
        verify(in_debt(shape=shape), even("v", "w"))


def test_who_may_not_be_evicted_takes_no_surplus() -> None:
    with pytest.raises(InvalidPlanError, match="borrows for good"):
        verify(in_debt(preemptible=False), even("v"))


BROKEN: dict[str, tuple[Plan, str]] = {
    "somebody who does not run": (plan(reclaim("x")), "does not run"),
    "twice": (plan(reclaim(), reclaim()), "2 times"),
    "evicted and resized": (
        plan(reclaim("e"), resizes=(Resize("e", places(2, 3), "a", RECLAIMED),)),
        "2 times",
    ),
    "for nobody": (plan(reclaim(by="z")), "does not wait"),
    "for one who waits for something else": (
        plan(reclaim(), code=WaitReason.WAITING_FOR_QUOTA),
        "does not wait",
    ),
    "by priority at equal priority": (
        plan(Preempt("v", "a", EvictionCause.PREEMPTED)),
        "equal priority",
    ),
    "below its guarantee": (plan(reclaim("e"), reclaim("v")), "pushed below"),
    "too small": (plan(resizes=(Resize("e", places(2), "a", RECLAIMED),)), "resized to 1"),
    "too large": (plan(resizes=(Resize("e", places(1, 2, 3, 4, 5)),)), "resized to 5"),
    "moved": (plan(resizes=(Resize("e", places(2, 5), "a", RECLAIMED),)), "does not keep"),
    "shrunk for no cause": (plan(resizes=(Resize("e", places(2, 3), "a"),)), "for no cause"),
    "grown for a cause": (
        plan(resizes=(Resize("e", places(2, 3, 4, 5), cause=RECLAIMED),)),
        "grows for one",
    ),
    "evicted to share": (plan(Preempt("v", "a", SHARED)), "need only share"),
    "shared with a stranger": (
        plan(resizes=(Resize("e", places(2, 3), "a", SHARED),)),
        "shares with another tenant",
    ),
    "shrunk for nobody": (plan(resizes=(Resize("e", places(2, 3)),)), "does not keep"),
    "grown for another": (
        plan(resizes=(Resize("e", places(2, 3, 4, 5), "a", RECLAIMED),)),
        "does not keep",
    ),
    "grown into another": (plan(resizes=(Resize("e", places(2, 3, 4, 0)),)), "milli of device 0"),
}


@pytest.mark.parametrize(
    ("broken", "message"), [pytest.param(*case, id=name) for name, case in BROKEN.items()]
)
def test_a_broken_plan_is_named(broken: Plan, message: str) -> None:
    with pytest.raises(InvalidPlanError, match=message):
        verify(small(), broken)


def changed(**changes: object) -> Snapshot:
    """Return the small world with job v changed."""
    snapshot = small()
    v, *others = snapshot.running
    spec = replace(v.spec, **{k: x for k, x in changes.items() if k != "ending_s"})  # type: ignore[arg-type]
    ending_s = NOW_S + 9 if "ending_s" in changes else None
    return replace(snapshot, running=(replace(v, spec=spec, ending_s=ending_s), *others))


def fenced(slug: str) -> Snapshot:
    snapshot = small()
    tenants = tuple(replace(t, preemption_fence=t.slug == slug) for t in snapshot.tenants)
    return replace(snapshot, tenants=tenants)


WORLDS: dict[str, tuple[Snapshot, str]] = {
    "it is not preemptible": (changed(preemptible=False), "not preemptible"),
    "it is of higher priority": (changed(priority=1), "higher priority"),
    "it is told already": (changed(ending_s=1), "told to end already"),
    "it is one's own": (changed(tenant="t"), "of the tenant that reclaims"),
    "it is beyond the fence": (fenced("t"), "outside the fence"),
}


@pytest.mark.parametrize(
    ("snapshot", "message"), [pytest.param(*case, id=name) for name, case in WORLDS.items()]
)
def test_an_eviction_is_refused_where(snapshot: Snapshot, message: str) -> None:
    with pytest.raises(InvalidPlanError, match=message):
        verify(snapshot, plan(reclaim()))


def test_a_fence_of_the_victim_does_not_bar_others() -> None:
    verify(fenced("b"), plan(reclaim()))


def test_what_children_own_is_guaranteed_to_the_department() -> None:
    """b's department owns nothing more and holds five of its two: three may go, not four."""
    snapshot = small()
    tenants = [
        tenant("all", a100=2),
        tenant("t", under="all", a100=2),
        tenant("dept", under="all", a100=0),
        tenant("b", under="dept", a100=0),
        tenant("c", under="dept", a100=2),
    ]
    deep = replace(snapshot, tenants=tuple(tenants))
    shrunk = Resize("e", places(2, 3), "a", RECLAIMED)
    verify(deep, plan(reclaim("v"), reclaim("w"), resizes=(shrunk,)))
    with pytest.raises(InvalidPlanError, match="'dept' is pushed below"):
        verify(deep, plan(reclaim("v"), reclaim("w"), reclaim("e")))


def waited(snapshot: Snapshot, **changes: object) -> Snapshot:
    """Return the world with the waiting job changed."""
    return replace(snapshot, pending=(replace(snapshot.pending[0], **changes),))  # type: ignore[arg-type]


def ran(seconds: float, *, evicted: int = 0) -> Snapshot:
    """Return the small world; v began so long ago and was evicted so often, a waits for long."""
    snapshot = waited(small(), submitted_s=NOW_S - 900)
    v, *others = snapshot.running
    begun = replace(v, spec=replace(v.spec, preempted_count=evicted), started_s=NOW_S - seconds)
    return replace(snapshot, running=(begun, *others))


LAW = PreemptionPolicy(delay_s=60.0, min_runtime_s=600.0, most_evictions=3)
PATIENT = ran(600.0, evicted=2)
FORBIDDEN: dict[str, tuple[Snapshot, PreemptionPolicy, Preempt, str]] = {
    "the taker came just now": (
        waited(PATIENT, submitted_s=NOW_S - 59),
        LAW,
        reclaim(),
        "not waited",
    ),
    "it was promised room just now": (
        waited(PATIENT, promised_s=NOW_S - 59),
        LAW,
        reclaim(),
        "not waited",
    ),
    "it backed off until just now": (
        waited(PATIENT, not_before_s=NOW_S - 59),
        LAW,
        reclaim(),
        "not waited",
    ),
    "the loser began just now": (ran(599.0), LAW, reclaim(), "599.0 s only"),
    "the loser lost too often": (ran(600.0, evicted=3), LAW, reclaim(), "evicted 3 times already"),
    "nobody evens out": (
        PATIENT,
        replace(LAW, by_fair_share=False),
        Preempt("v", "a", EvictionCause.REBALANCED),
        "is rebalanced",
    ),
    "nobody reclaims": (PATIENT, replace(LAW, by_reclaim=False), reclaim(), "is reclaimed"),
    "priority counts for nothing": (
        waited(PATIENT, priority=1),
        LAW,
        Preempt("v", "a", EvictionCause.PREEMPTED),
        "is preempted",
    ),
}


@pytest.mark.parametrize(
    ("snapshot", "law", "eviction", "message"),
    [pytest.param(*case, id=name) for name, case in FORBIDDEN.items()],
)
def test_a_policy_forbids_an_eviction_where(
    snapshot: Snapshot, law: PreemptionPolicy, eviction: Preempt, message: str
) -> None:
    verify(snapshot, plan(eviction))
    with pytest.raises(InvalidPlanError, match=message):
        verify(snapshot, plan(eviction), Policy(preemption=law))


def test_a_policy_allows_what_has_only_just_waited_and_run() -> None:
    """60 s, 600 s and two evictions are all that is asked."""
    snapshot = waited(PATIENT, submitted_s=NOW_S - 60)
    verify(snapshot, plan(reclaim()), Policy(preemption=LAW))
    by_priority = replace(LAW, by_priority=True, by_reclaim=False)
    eviction = Preempt("v", "a", EvictionCause.PREEMPTED)
    verify(waited(snapshot, priority=1), plan(eviction), Policy(preemption=by_priority))


def test_nobody_is_shrunk_where_nobody_may_be_evicted() -> None:
    nobody = replace(LAW, by_reclaim=False, by_fair_share=False)
    own = waited(PATIENT, tenant="b")
    for snapshot, cause in ((PATIENT, RECLAIMED), (own, SHARED)):
        resized = plan(resizes=(Resize("e", places(2, 3), "a", cause),))
        verify(snapshot, resized, Policy(preemption=LAW))
        with pytest.raises(InvalidPlanError, match=f"is {cause}, which is not allowed"):
            verify(snapshot, resized, Policy(preemption=nobody))


def test_nobody_is_shrunk_without_a_claim() -> None:
    """t owns nothing and holds one; a, of b's class, could only borrow a second from e.

    b holds five of its two, so that its guarantee is in nobody's way.
    """
    held = running(job("r", tenant="t", devices=1), 0, [5])
    snapshot = waited(small(), submitted_s=NOW_S - 900)
    alls, t, b = snapshot.tenants
    poor = replace(t, quotas={"a100": QuotaLine(0)})
    snapshot = replace(snapshot, running=(*snapshot.running, held), tenants=(alls, poor, b))
    policy = Policy(preemption=LAW)
    for cause, why in (
        (RECLAIMED, "'a' has no claim on job 'e'"),
        (EvictionCause.PREEMPTED, "'e' is of equal priority"),
        (SHARED, "'e' shares with another tenant"),
    ):
        with pytest.raises(InvalidPlanError, match=why):
            verify(snapshot, plan(resizes=(Resize("e", places(2, 3), "a", cause),)), policy)


def test_surplus_is_shrunk_only_up_to_an_even_share() -> None:
    """a would be borrowed. b holds three above its own, and keeps two without one of e's, then one.

    With v and one of e's gone b keeps one, as much as t takes; without w, too, it keeps none.
    """
    shrunk = (Resize("e", places(2, 3), "a", EvictionCause.REBALANCED),)
    verify(in_debt(), replace(even("v"), resizes=shrunk))
    with pytest.raises(InvalidPlanError, match="'a' has no claim on job"):
        verify(in_debt(), replace(even("v", "w"), resizes=shrunk))


def test_a_job_grows_that_ends_before_its_node_is_reserved() -> None:
    """e began 999 s ago and has 2601 s left of 3600 s; the node is set aside in 3000 s."""
    aside = Reservation("r", NOW_S + 3000, NOW_S + 9000, (0,))
    grown = plan(resizes=(Resize("e", places(2, 3, 4, 5)),))
    verify(replace(small(), reservations=(aside,)), grown)
    soon = replace(aside, start_s=NOW_S + 2600)
    with pytest.raises(InvalidPlanError, match="in the way of reservation 'r'"):
        verify(replace(small(), reservations=(soon,)), grown)


def test_nobody_reclaims_more_than_it_owns() -> None:
    """t runs one job beside the one that waits: it must own two, and on a flavor that is b's."""
    snapshot = small()
    held = running(job("r", tenant="t", devices=1), 0, [5])
    both = replace(snapshot, running=(*snapshot.running, held))
    verify(both, plan(reclaim()))
    alls, t, b = both.tenants
    less = replace(both, tenants=(alls, replace(t, quotas={"a100": QuotaLine(1000)}), b))
    with pytest.raises(InvalidPlanError, match="'a' has no claim on job 'v'"):
        verify(less, plan(reclaim()))
    nothing = waited(snapshot, flavors=("h100",))
    with pytest.raises(InvalidPlanError, match="'a' has no claim on job 'v'"):
        verify(nothing, plan(reclaim()))


def test_a_claim_and_a_guarantee_are_of_one_flavor() -> None:
    """t owns H100 only and meets v, which runs on an A100, over CPU: b holds all it owns there.

    b runs five replicas of one core each. Were it A100 that t claims, b would hold more than two.
    """
    fleet = FleetBuilder().node("n1", devices=6).node("n2", devices=1, flavor="h100")
    snapshot = small()
    for cores, refused in ((5, True), (4, False)):
        tenants = (
            tenant("all", a100=0, h100=0, cpu=0),
            tenant("t", under="all", a100=0, h100=2, cpu=9),
            tenant("b", under="all", a100=2, h100=0, cpu=cores),
        )
        mixed = world(fleet, snapshot.pending, running=snapshot.running, tenants=tenants)
        if refused:
            with pytest.raises(InvalidPlanError, match="'b' is pushed below its quota of 'cpu'"):
                verify(mixed, plan(reclaim()))
        else:
            verify(mixed, plan(reclaim()))


def test_only_the_smallest_gang_is_protected_by_the_least_run_time() -> None:
    """e has three replicas, needs two and began a second ago: it may lose the third, not all."""
    snapshot = waited(small(), submitted_s=NOW_S - 900)
    *others, e = snapshot.running
    snapshot = replace(snapshot, running=(*others, replace(e, started_s=NOW_S - 1)))
    policy = Policy(preemption=LAW)
    verify(snapshot, plan(resizes=(Resize("e", places(2, 3), "a", RECLAIMED),)), policy)
    with pytest.raises(InvalidPlanError, match=r"1\.0 s only"):
        verify(snapshot, plan(reclaim("e")), policy)


def test_a_job_shares_with_its_own_tenant_only_once_it_has_run_for_long_enough() -> None:
    """Its tenant's own job waits; 600 s are asked since e began or was last resized."""
    snapshot = waited(small(), submitted_s=NOW_S - 900, tenant="b")
    *others, e = snapshot.running
    shared = plan(resizes=(Resize("e", places(2, 3), "a", SHARED),))
    for ran_s, refused in ((600, False), (599, True)):
        now = replace(snapshot, running=(*others, replace(e, started_s=NOW_S - ran_s)))
        if refused:
            with pytest.raises(InvalidPlanError, match="run for 599"):
                verify(now, shared, Policy(preemption=LAW))
        else:
            verify(now, shared, Policy(preemption=LAW))
