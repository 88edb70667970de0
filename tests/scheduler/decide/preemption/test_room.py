"""Room that is made for waiting jobs: who gives it, who is told, and what is held for whom."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.core.plan import EvictionCause, Plan
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import JobSpec, ReplicaPlacement, RunningJob, Snapshot
from scheduler.decide.cycle import decide, estimate
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

RECLAIM = Policy(strategy="rules", preemption=PreemptionPolicy(by_fair_share=False))
EVEN = Policy(strategy="rules", preemption=PreemptionPolicy())
BOTH = replace(RECLAIM, preemption=PreemptionPolicy(by_priority=True))
LONG_AGO_S = NOW_S - 3600


def plan_of(snapshot: Snapshot, policy: Policy = RECLAIM) -> Plan:
    plan = decide(snapshot, policy, now_s=snapshot.now_s, budget_s=1.0)
    assert plan.solver.status != "error", plan.solver.note
    return plan


def held(uid: str, *devices: int, who: str = "b", **changes: Any) -> RunningJob:
    """Return a job of b that runs on devices of the only node for an hour, nothing saved."""
    spec = job(uid, tenant=who, devices=len(devices), limit_s=86_400)
    spec = replace(spec, **{k: v for k, v in changes.items() if k in JobSpec.__slots__})
    own = {k: v for k, v in changes.items() if k in RunningJob.__slots__}
    return replace(running(spec, 0, devices, started_s=LONG_AGO_S), **own)


def waits(uid: str = "a", *, who: str = "t", devices: int = 1, **changes: Any) -> JobSpec:
    spec = job(uid, tenant=who, devices=devices, submitted_s=NOW_S - 600)
    return replace(spec, **changes)


def four(*jobs: RunningJob, queue: tuple[JobSpec, ...], **quotas: int) -> Snapshot:
    """Return one node of four devices; t and b share what `all` has, two each by default."""
    shares = {"t": 2, "b": 2} | quotas
    tenants = [tenant("all", a100=0), *(tenant(s, under="all", a100=n) for s, n in shares.items())]
    fleet = FleetBuilder().node("n1", devices=4)
    return world(fleet, queue, running=jobs, tenants=tenants)


def evicted(plan: Plan) -> dict[str, str]:
    return {p.uid: p.beneficiary for p in plan.preempts}


def test_a_tenant_reclaims_its_quota_from_who_borrows_it() -> None:
    """b holds four of its two; t waits for one of its own two."""
    snapshot = four(*(held(f"b{k}", k) for k in range(4)), queue=(waits(),))
    plan = plan_of(snapshot)
    (preempt,) = plan.preempts
    assert preempt.beneficiary == "a"
    assert preempt.cause is EvictionCause.RECLAIMED
    assert plan.starts == ()
    (pending,) = plan.pending
    assert pending.code is WaitReason.WAITING_FOR_PREEMPTED_JOBS
    assert pending.evidence["evicted_jobs"] == 1
    assert pending.evidence["from_tenants"] == {"b": 1}
    assert pending.evidence["room_at_s"] == NOW_S + 30  # the grace
    assert pending.expected_start_p50_s == NOW_S + 30


def test_nobody_is_evicted_where_the_job_could_not_go() -> None:
    """All that b borrows is on a node that takes no new work."""
    jobs = [held(f"b{k}", k) for k in range(4)]
    fleet = FleetBuilder().node("n1", devices=4, ready=False).node("n2")
    tenants = [tenant("all", a100=0), *(tenant(s, under="all", a100=2) for s in ("t", "b"))]
    assert plan_of(world(fleet, [waits()], running=jobs, tenants=tenants)).preempts == ()


def test_who_loses_the_least_work_is_evicted() -> None:
    """b1 saved its work ten seconds ago, the others never did."""
    jobs = [held(f"b{k}", k) for k in range(4)]
    jobs[1] = replace(jobs[1], checkpointed_s=NOW_S - 10)
    plan = plan_of(four(*jobs, queue=(waits(),)))
    assert evicted(plan) == {"b1": "a"}
    assert plan.preempts[0].evidence["work_lost_s"] == 10


def test_lower_priority_is_evicted_before_less_work() -> None:
    jobs = [held("old", 0, priority=-1), held("new", 1, started_s=NOW_S - 700), held("x", 2, 3)]
    assert evicted(plan_of(four(*jobs, queue=(waits(),), t=4, b=0))) == {"old": "a"}


def test_nobody_is_evicted_who_is_not_needed() -> None:
    """b's pair and its two singles; t wants two devices: the pair alone gives them."""
    jobs = [held("pair", 0, 1), held("s1", 2, started_s=NOW_S - 4000), held("s2", 3)]
    plan = plan_of(four(*jobs, queue=(waits(devices=2),)))
    assert len(evicted(plan)) in {1, 2}
    freed = sum({"pair": 2, "s1": 1, "s2": 1}[uid] for uid in evicted(plan))
    assert freed == 2


SPARED: dict[str, dict[str, Any]] = {
    "it is not preemptible": {"preemptible": False},
    "it has only begun": {"started_s": NOW_S - 599},
    "it was evicted three times": {"preempted_count": 3},
    "its priority is higher": {"priority": 1},
    "it is gone by itself before that": {"time_limit_s": 3620.0},
    "it began in the future": {"started_s": NOW_S + 5},
}


@pytest.mark.parametrize("changes", SPARED.values(), ids=SPARED.keys())
def test_a_job_is_spared_where(changes: dict[str, Any]) -> None:
    jobs = [held("b0", 0, 1, 2, 3, **changes)]
    plan = plan_of(four(*jobs, queue=(waits(),), t=4, b=0))
    assert plan.preempts == ()


def test_a_job_asks_only_once_it_has_waited() -> None:
    jobs = [held(f"b{k}", k) for k in range(4)]
    young = waits(submitted_s=NOW_S - 59)
    assert plan_of(four(*jobs, queue=(young,))).preempts == ()
    assert plan_of(four(*jobs, queue=(replace(young, submitted_s=NOW_S - 60),))).preempts


def test_nobody_is_pushed_below_its_guarantee() -> None:
    """b holds three of its two in one job: without it, it would hold none of them (law 2)."""
    jobs = [held("b0", 0, 1, 2), held("t0", 3, who="t")]
    assert plan_of(four(*jobs, queue=(waits(),))).preempts == ()


def test_who_is_above_its_own_quota_does_not_reclaim() -> None:
    """t holds two of its two and wants a third; b has borrowed two of u's."""
    jobs = [held("t0", 0, 1, who="t"), held("b0", 2), held("b1", 3)]
    assert plan_of(four(*jobs, queue=(waits(),), b=0, u=2)).preempts == ()


def borrowing(
    *queue: JobSpec, sizes: tuple[int, ...] = (1, 1), weights: tuple[float, float] = (1.0, 1.0)
) -> Snapshot:
    """Return t with the two devices that it owns, and b with two that u owns."""
    jobs, at = [held("t0", 0, 1, who="t")], 2
    for size in sizes:
        jobs.append(held(f"b{at}", *range(at, at + size)))
        at += size
    snapshot = four(*jobs, queue=queue, b=0, u=2)
    by_slug = {"t": weights[0], "b": weights[1]}
    tenants = (replace(t, fair_weight=by_slug.get(t.slug, 1.0)) for t in snapshot.tenants)
    return replace(snapshot, tenants=tuple(tenants))


def test_who_borrows_less_takes_from_who_borrows_more() -> None:
    """t would borrow one and b keep one."""
    plan = plan_of(borrowing(waits()), EVEN)
    assert [(p.beneficiary, p.cause) for p in plan.preempts] == [("a", EvictionCause.REBALANCED)]


NOT_EVEN: dict[str, tuple[Snapshot, Policy]] = {
    "it would borrow two and b none": (borrowing(waits(devices=2)), EVEN),
    "b has but one job, and would keep none": (borrowing(waits(), sizes=(2,)), EVEN),
    "one for it is as much as two for b": (borrowing(waits(), weights=(1.0, 2.0)), EVEN),
    "it has no weight": (borrowing(waits(), weights=(0.0, 1.0)), EVEN),
    "it could not give it back": (borrowing(waits(preemptible=False)), EVEN),
    "it has waited for too short": (borrowing(waits(submitted_s=NOW_S - 59)), EVEN),
    "the policy does not allow it": (borrowing(waits()), RECLAIM),
}


@pytest.mark.parametrize(("snapshot", "policy"), NOT_EVEN.values(), ids=NOT_EVEN.keys())
def test_no_surplus_is_taken_where(snapshot: Snapshot, policy: Policy) -> None:
    assert plan_of(snapshot, policy).preempts == ()


def test_departments_even_out_what_they_borrow_between_them() -> None:
    """Of eight devices x and y own two each, idle z four. x holds two, y six, all in one team.

    x's team takes one, then y keeps five: three above its own, x one. It may take two: two each.
    """
    fleet = FleetBuilder().node("n1", devices=8)
    tenants = [tenant("all", a100=0)]
    for slug, owned in (("x", 2), ("y", 2), ("z", 4)):
        tenants += [tenant(slug, under="all", a100=0), tenant(f"{slug}1", under=slug, a100=owned)]
    jobs = [held("x0", 0, 1, who="x1"), *(held(f"y{k}", k, who="y1") for k in range(2, 8))]
    queue = [waits(f"a{k}", who="x1") for k in range(4)]
    plan = plan_of(world(fleet, queue, running=jobs, tenants=tenants), EVEN)
    assert [preempt.cause for preempt in plan.preempts] == [EvictionCause.REBALANCED] * 2


def test_who_gave_surplus_does_not_take_it_back() -> None:
    """b's job waits again; t holds three, one above its own, and b one: even."""
    jobs = [held("t0", 0, 1, who="t"), held("a", 2, who="t"), held("b3", 3)]
    snapshot = four(*jobs, queue=(waits("b2", who="b"),), b=0, u=2)
    assert plan_of(snapshot, EVEN).preempts == ()


NOBODY_RECLAIMS = replace(BOTH, preemption=PreemptionPolicy(by_reclaim=False))
OVERDUE: dict[str, tuple[float, Policy, str]] = {
    "not a second before": (59, RECLAIM, "b"),
    "then it is overdue": (60, RECLAIM, "a"),
    "not where nobody may claim anything back": (60, NOBODY_RECLAIMS, "b"),
}


@pytest.mark.parametrize(("waited_s", "policy", "first"), OVERDUE.values(), ids=OVERDUE.keys())
def test_who_waits_too_long_for_what_it_owns_goes_first(
    waited_s: float, policy: Policy, first: str
) -> None:
    """x2 holds all eight, so that department x stands behind y; a is of x1, that owns four.

    Too long is the delay of 60 s, after which what a tenant owns is claimed back.
    """
    tenants = [tenant("all", a100=0)]
    for slug in ("x", "y"):
        tenants.append(tenant(slug, under="all", a100=0))
        tenants += [tenant(f"{slug}{k}", under=slug, a100=n) for k, n in ((1, 4), (2, 0))]
    jobs = [held("x0", *range(8), who="x2", preemptible=False)]
    queue = [waits("a", who="x1", submitted_s=NOW_S - waited_s), waits("b", who="y2")]
    fleet = FleetBuilder().node("n1", devices=8)
    plan = plan_of(world(fleet, queue, running=jobs, tenants=tenants), policy)
    assert [pending.uid for pending in plan.pending if pending.position == 1] == [first]


def test_priority_evicts_only_where_the_policy_allows_it() -> None:
    jobs = [held(f"t{k}", k, who="t") for k in range(4)]
    snapshot = four(*jobs, queue=(waits(priority=1),), t=4, b=0)
    assert plan_of(snapshot).preempts == ()
    (preempt,) = plan_of(snapshot, BOTH).preempts
    assert preempt.cause is EvictionCause.PREEMPTED


def test_equal_priority_evicts_nobody_of_its_own_tenant() -> None:
    jobs = [held(f"t{k}", k, who="t") for k in range(4)]
    assert plan_of(four(*jobs, queue=(waits(),), t=4, b=0), BOTH).preempts == ()


def test_priority_takes_from_others_only_what_they_borrow() -> None:
    """b is within its quota of four: nothing to take, whatever the priority."""
    jobs = [held(f"b{k}", k) for k in range(4)]
    snapshot = four(*jobs, queue=(waits(priority=9),), t=0, b=4)
    assert plan_of(snapshot, BOTH).preempts == ()
    borrowed = four(*jobs, queue=(waits(priority=9),), t=0, b=3, u=1)
    assert len(plan_of(borrowed, BOTH).preempts) == 1


def test_a_fence_keeps_evictions_inside() -> None:
    jobs = [held(f"b{k}", k) for k in range(4)]
    snapshot = four(*jobs, queue=(waits(),))
    fenced = [replace(t, preemption_fence=t.slug == "t") for t in snapshot.tenants]
    assert plan_of(replace(snapshot, tenants=tuple(fenced))).preempts == ()
    outside = [replace(t, preemption_fence=t.slug == "b") for t in snapshot.tenants]
    assert len(plan_of(replace(snapshot, tenants=tuple(outside))).preempts) == 1


def test_a_promised_job_asks_for_nothing_more_while_its_room_comes() -> None:
    jobs = [held(f"b{k}", k) for k in range(4)]
    jobs[2] = replace(jobs[2], ending_s=NOW_S + 12)
    plan = plan_of(four(*jobs, queue=(waits(promised_s=NOW_S - 18),)))
    assert plan.preempts == ()
    (pending,) = plan.pending
    assert pending.code is WaitReason.WAITING_FOR_PREEMPTED_JOBS
    assert pending.evidence["room_at_s"] == NOW_S + 12
    assert pending.expected_start_p50_s == NOW_S + 12


def test_a_promised_job_goes_first_and_keeps_its_place() -> None:
    """The other job is older and of higher priority, and would take the free device."""
    jobs = [held(f"b{k}", k) for k in range(3)]
    other = waits("other", priority=5, submitted_s=NOW_S - 90_000)
    plan = plan_of(four(*jobs, queue=(waits(promised_s=NOW_S - 31), other)))
    assert [start.uid for start in plan.starts] == ["a"]


def test_a_broken_promise_lets_a_job_ask_again_after_the_delay() -> None:
    jobs = [held(f"b{k}", k) for k in range(4)]
    assert plan_of(four(*jobs, queue=(waits(promised_s=NOW_S - 59),))).preempts == ()
    assert plan_of(four(*jobs, queue=(waits(promised_s=NOW_S - 60),))).preempts


def test_nothing_is_started_into_the_room_that_is_made() -> None:
    """One device is free; t wants two; the short job of b may use it, the long one may not."""
    jobs = [held(f"b{k}", k) for k in range(3)]
    long = waits("long", who="b", submitted_s=NOW_S)
    short = replace(long, uid="short", time_limit_s=30.0)
    plan = plan_of(four(*jobs, queue=(waits(devices=2), long, short)))
    assert len(plan.preempts) == 1
    assert [start.uid for start in plan.starts] == ["short"]


def test_two_jobs_are_never_promised_the_same_room() -> None:
    """t may hold two; three of its jobs wait: two are promised one device each."""
    jobs = [held(f"b{k}", k) for k in range(4)]
    queue = tuple(waits(uid) for uid in ("x", "y", "z"))
    plan = plan_of(four(*jobs, queue=queue))
    assert sorted(evicted(plan).values()) == ["x", "y"]


def test_elastic_jobs_are_shrunk_before_any_is_evicted() -> None:
    """b's elastic job runs four replicas and can do with two; t wants two devices."""
    spec = replace(
        job("e", tenant="b", devices=1, replicas=2, replicas_max=4, limit_s=86_400), priority=0
    )
    places = tuple(ReplicaPlacement(0, (d,), 1000, 80_000) for d in range(4))
    plan = plan_of(four(RunningJob(spec, places, LONG_AGO_S), queue=(waits(devices=2),)))
    assert plan.preempts == ()
    (resize,) = plan.resizes
    assert (resize.uid, resize.beneficiary) == ("e", "a")
    assert len(resize.replicas) == 2
    assert set(resize.replicas) < set(places)
    (pending,) = plan.pending
    assert pending.code is WaitReason.WAITING_FOR_PREEMPTED_JOBS
    assert pending.evidence["shrunk_jobs"] == 1


def grown(has: int, **changes: Any) -> RunningJob:
    """Return an elastic job of t, one to four replicas of one device each."""
    places = tuple(ReplicaPlacement(0, (k,), 1000, 80_000) for k in range(has))
    wide = replace(held("e", 0, who="t"), replicas=places)
    return replace(wide, spec=replace(wide.spec, replicas_max=4, **changes))


def test_a_job_shares_what_it_can_do_without_with_a_waiting_job_of_its_tenant() -> None:
    """It has four, and gives one; nobody would have to leave for that by any other law."""
    plan = plan_of(four(grown(4), queue=(waits(),), t=4, b=0))
    assert plan.preempts == ()
    assert [(r.uid, len(r.replicas), r.beneficiary) for r in plan.resizes] == [("e", 3, "a")]


SHARES_NOTHING: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "it needs them all": ({"replicas_min": 4}, {}),
    "it is of a higher class": ({"priority": 1}, {}),
    "it may not be disturbed": ({"preemptible": False}, {}),
    "the other has not waited for the delay": ({}, {"submitted_s": NOW_S - 59}),
    "what it has beyond its smallest gang is too little": ({}, {"devices": 4}),
}


@pytest.mark.parametrize(("its", "other"), SHARES_NOTHING.values(), ids=SHARES_NOTHING.keys())
def test_a_job_keeps_its_replicas_from_its_own_tenant_where(
    its: dict[str, Any], other: dict[str, Any]
) -> None:
    size = other.get("devices", 1)
    queue = (waits(devices=size, **{k: v for k, v in other.items() if k != "devices"}),)
    plan = plan_of(four(grown(4, **its), queue=queue, t=4, b=0))
    assert (plan.preempts, plan.resizes) == ((), ())


def test_a_job_that_shared_grows_back_only_once_the_other_is_gone() -> None:
    """Shrunk to three 700 s ago, it stays so beside the other, and takes the place it leaves."""
    shrunk = replace(grown(3), started_s=NOW_S - 700, checkpointed_s=NOW_S - 5)
    beside = held("a", 3, who="t")
    assert plan_of(four(shrunk, beside, queue=(), t=4, b=0)).resizes == ()
    (resize,) = plan_of(four(shrunk, queue=(), t=4, b=0)).resizes
    assert (len(resize.replicas), resize.beneficiary) == (4, "")


def test_what_a_shrinking_job_keeps_is_not_planned_for_others() -> None:
    """Two of four devices come free at the end of the grace, the other two in a day."""
    spec = job("e", tenant="b", devices=1, replicas=1, replicas_max=4, limit_s=86_400)
    places = tuple(ReplicaPlacement(0, (d,), 1000, 80_000) for d in range(4))
    told = RunningJob(spec, places, LONG_AGO_S, ending_s=NOW_S + 10, keeps=places[:2])
    two = waits(devices=2, promised_s=NOW_S - 20)
    three = waits("c", devices=3, submitted_s=NOW_S)
    plan = plan_of(four(told, queue=(two, three), t=4, b=0))
    planned = {p.uid: p.expected_start_p50_s for p in plan.pending}
    assert planned["a"] == NOW_S + 10
    assert planned["c"] is not None
    assert planned["c"] > NOW_S + 3000


def test_a_quota_cut_below_use_lets_others_reclaim() -> None:
    """b holds four of a quota cut to one: three must go before the two of `all` leave t its one."""
    jobs = [held(f"b{k}", k) for k in range(4)]
    assert len(plan_of(four(*jobs, queue=(waits(),), t=1, b=1)).preempts) == 3


def test_over_committed_quotas_evict_nobody_within_its_own() -> None:
    jobs = [held(f"b{k}", k) for k in range(4)]
    assert plan_of(four(*jobs, queue=(waits(),), t=4, b=4)).preempts == ()


def test_quota_alone_can_be_reclaimed_where_places_are_free() -> None:
    """Six devices, four of quota: two are free, and b has borrowed t's two."""
    jobs = [held(f"b{k}", k) for k in range(4)]
    snapshot = four(*jobs, queue=(waits(),))
    fleet = FleetBuilder().node("n1", devices=6).build(jobs)
    plan = plan_of(replace(snapshot, fleet=fleet))
    assert len(plan.preempts) == 1


def test_cpu_is_reclaimed_from_cpu_jobs() -> None:
    """b's jobs use 60 of 64 cores, its quota is 32; t wants 20 of its 32 for a device job."""
    hogs = [
        replace(running(job(f"c{k}", tenant="b", cpu=20, limit_s=86_400), 0), started_s=LONG_AGO_S)
        for k in range(3)
    ]
    wants = job("a", tenant="t", devices=1, cpu=20, submitted_s=NOW_S - 600)
    tenants = [tenant("t", a100=2, cpu=32), tenant("b", a100=2, cpu=32)]
    fleet = FleetBuilder().node("n1", devices=4)
    plan = plan_of(world(fleet, [wants], running=hogs, tenants=tenants))
    assert len(plan.preempts) == 1


def test_a_whole_gang_on_several_nodes_is_evicted_as_one() -> None:
    """b's gang holds both nodes; t wants one whole node; the gang goes, and only once."""
    spec = job("gang", tenant="b", devices=2, replicas=2, limit_s=86_400)
    places = (ReplicaPlacement(0, (0, 1), 1000, 80_000), ReplicaPlacement(1, (2, 3), 1000, 80_000))
    fleet = FleetBuilder().node("n1", devices=2).node("n2", devices=2)
    tenants = [tenant("all"), tenant("t", under="all", a100=4), tenant("b", under="all", a100=0)]
    gang = RunningJob(spec, places, LONG_AGO_S)
    plan = plan_of(world(fleet, [waits(devices=2)], running=[gang], tenants=tenants))
    assert evicted(plan) == {"gang": "a"}


def test_the_node_is_emptied_whose_jobs_lose_least() -> None:
    """Both nodes run two single jobs; those on n2 have just saved their work."""
    jobs = [
        replace(
            running(
                job(f"j{d}", tenant="b", devices=1, limit_s=86_400),
                d // 2,
                [d],
                started_s=LONG_AGO_S,
            ),
            checkpointed_s=NOW_S - (5 if d >= 2 else 3000),
        )
        for d in range(4)
    ]
    fleet = FleetBuilder().node("n1", devices=2).node("n2", devices=2)
    tenants = [tenant("all"), tenant("t", under="all", a100=4), tenant("b", under="all", a100=0)]
    plan = plan_of(world(fleet, [waits(devices=2)], running=jobs, tenants=tenants))
    assert sorted(evicted(plan)) == ["j2", "j3"]


@pytest.mark.parametrize("strategy", ["rules", "optimising"])
def test_both_strategies_reclaim(strategy: str) -> None:
    jobs = [held(f"b{k}", k) for k in range(4)]
    idle = replace(waits("idle", who="b"), shape=replace(waits().shape, devices=0))
    plan = plan_of(four(*jobs, queue=(waits(), idle)), replace(RECLAIM, strategy=strategy))
    assert len(plan.preempts) == 1
    assert [start.uid for start in plan.starts] == ["idle"]


def test_an_estimate_says_whom_it_could_have_evicted_and_when() -> None:
    """It would ask after its delay of 60 s; the room is there 30 s later; else in about a day."""
    jobs = [held(f"b{k}", k) for k in range(4)]
    asked = waits(submitted_s=NOW_S)
    answer = estimate(four(*jobs, queue=()), RECLAIM, asked, now_s=NOW_S)
    assert isinstance(answer, Pending)
    assert answer.code is WaitReason.WAITING_FOR_QUOTA  # nobody makes room for it yet
    later = answer.evidence["would_evict"]
    assert later == {
        "evicted_jobs": 1,
        "shrunk_jobs": 0,
        "from_tenants": {"b": 1},
        "asks_at_s": NOW_S + 60,
        "room_at_s": NOW_S + 90,
    }
    assert answer.expected_start_p50_s == NOW_S + 90
    assert answer.expected_start_p90_s == LONG_AGO_S + 86_400


def test_an_estimate_knows_until_when_those_are_spared_who_have_just_started() -> None:
    """They ran for 100 s of the 600 s that spare them: evictable in 500 s, gone 30 s later."""
    jobs = [replace(held(f"b{k}", k), started_s=NOW_S - 100) for k in range(4)]
    answer = estimate(four(*jobs, queue=()), RECLAIM, waits(submitted_s=NOW_S), now_s=NOW_S)
    assert isinstance(answer, Pending)
    later = answer.evidence["would_evict"]
    assert isinstance(later, dict)
    assert (later["evicted_jobs"], later["asks_at_s"]) == (1, NOW_S + 500)
    assert answer.expected_start_p50_s == later["room_at_s"] == NOW_S + 530


def test_an_estimate_takes_who_is_spared_no_longer_when_it_may_ask() -> None:
    """It asks in 60 s; by then b0, which ran for 550 s, has run for 600 s, the others not."""
    jobs = [replace(held(f"b{k}", k), started_s=NOW_S - (100, 550)[k == 0]) for k in range(4)]
    answer = estimate(four(*jobs, queue=()), RECLAIM, waits(submitted_s=NOW_S), now_s=NOW_S)
    assert isinstance(answer, Pending)
    later = answer.evidence["would_evict"]
    assert isinstance(later, dict)
    assert (later["asks_at_s"], later["room_at_s"]) == (NOW_S + 60, NOW_S + 90)


def test_an_estimate_promises_no_eviction_against_the_laws() -> None:
    """t owns nothing: it waits like anybody."""
    jobs = [held(f"b{k}", k) for k in range(4)]
    answer = estimate(four(*jobs, queue=(), t=0, u=2), RECLAIM, waits(), now_s=NOW_S)
    assert isinstance(answer, Pending)
    assert "would_evict" not in answer.evidence


def test_a_search_that_fails_is_not_made_twice_for_equal_jobs() -> None:
    """Forty jobs of one kind that nobody may make room for: one search, and the same answer."""
    jobs = [held(f"b{k}", k, preemptible=k > 0) for k in range(4)]
    queue = tuple(waits(f"a{k:02d}", devices=4) for k in range(40))
    plan = plan_of(four(*jobs, queue=queue, t=4, b=0))
    assert plan.preempts == ()
    assert len({p.code for p in plan.pending}) == 1
