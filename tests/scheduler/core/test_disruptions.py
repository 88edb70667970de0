"""Each law about evictions and resizes, broken on purpose."""

from dataclasses import replace

import pytest

from scheduler.core.errors import InvalidPlanError
from scheduler.core.plan import EvictionCause, Plan, Preempt, Resize, SolverReport
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import ReplicaPlacement, RunningJob, Snapshot
from scheduler.core.verify import verify
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

WAITS = WaitReason.WAITING_FOR_PREEMPTED_JOBS


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
    shrunk = Resize("e", places(2, 3), "a")
    verify(small(), plan(reclaim("v"), reclaim("w"), resizes=(shrunk,)))
    verify(small(), plan(resizes=(Resize("e", places(2, 3, 4, 5)),)))


BROKEN: dict[str, tuple[Plan, str]] = {
    "somebody who does not run": (plan(reclaim("x")), "does not run"),
    "twice": (plan(reclaim(), reclaim()), "2 times"),
    "evicted and resized": (
        plan(reclaim("e"), resizes=(Resize("e", places(2, 3), "a"),)),
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
    "too small": (plan(resizes=(Resize("e", places(2), "a"),)), "resized to 1"),
    "too large": (plan(resizes=(Resize("e", places(1, 2, 3, 4, 5)),)), "resized to 5"),
    "moved": (plan(resizes=(Resize("e", places(2, 5), "a"),)), "does not keep"),
    "shrunk for nobody": (plan(resizes=(Resize("e", places(2, 3)),)), "does not keep"),
    "grown for another": (plan(resizes=(Resize("e", places(2, 3, 4, 5), "a"),)), "does not keep"),
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
    shrunk = Resize("e", places(2, 3), "a")
    verify(deep, plan(reclaim("v"), reclaim("w"), resizes=(shrunk,)))
    with pytest.raises(InvalidPlanError, match="'dept' is pushed below"):
        verify(deep, plan(reclaim("v"), reclaim("w"), reclaim("e")))
