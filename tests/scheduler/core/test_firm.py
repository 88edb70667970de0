"""Room for jobs that may not be evicted, promised against the rule on purpose."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduler.core.errors import InvalidPlanError
from scheduler.core.plan import EvictionCause, Plan, Preempt, SolverReport, Start
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import JobSpec, ReplicaPlacement, RunningJob, Snapshot
from scheduler.core.verify import verify
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

GRACE = Policy(preemption=PreemptionPolicy(grace_s=30.0, by_priority=True))


def firm(uid: str, *, devices: int = 1, flavors: tuple[str, ...] = ("a100",)) -> JobSpec:
    spec = job(uid, devices=devices, flavors=flavors, priority=1, submitted_s=NOW_S - 900)
    return replace(spec, preemptible=False)


def two_kinds(*queue: JobSpec, a100: int, h100: int, held: Sequence[RunningJob] = ()) -> Snapshot:
    """Return three A100 and two H100. t owns some; v owns none and runs va and vb on A100."""
    fleet = FleetBuilder().node("a", devices=3).node("h", devices=2, flavor="h100")
    tenants = [
        *(tenant("all", a100=3, h100=2), tenant("t", under="all", a100=a100, h100=h100)),
        tenant("v", under="all", a100=0, h100=0),
    ]
    for d, uid in enumerate(("va", "vb")):
        held = [*held, running(job(uid, tenant="v", devices=1), 0, (d,), started_s=NOW_S - 900)]
    return world(fleet, queue, running=held, tenants=tenants)


def room(
    *pairs: tuple[str, str],
    starts: tuple[Start, ...] = (),
    cause: EvictionCause = EvictionCause.PREEMPTED,
) -> Plan:
    """Return a plan that evicts the first of each pair for the second."""
    waiting = sorted({taker for _, taker in pairs})
    pending = tuple(Pending(uid, WaitReason.WAITING_FOR_PREEMPTED_JOBS) for uid in waiting)
    report = SolverReport("rules", "rules", "not_needed")
    evicted = tuple(Preempt(uid, taker, cause) for uid, taker in pairs)
    return Plan("c", NOW_S, starts, pending, (), report, evicted)


def test_no_room_is_made_for_a_firm_job_beyond_what_its_tenant_owns() -> None:
    for owned, refused in ((1, False), (0, True)):
        snapshot = two_kinds(firm("J"), a100=owned, h100=2)
        if refused:
            with pytest.raises(InvalidPlanError, match="'J', whose tenant does not own"):
                verify(snapshot, room(("va", "J")), GRACE)
        else:
            verify(snapshot, room(("va", "J")), GRACE)


def test_no_room_is_made_for_a_firm_job_on_a_flavor_that_its_tenant_does_not_own() -> None:
    """It could use both and owns H100 only, its department both: the claim is on H100 alone."""
    wide = firm("J", flavors=("a100", "h100"))
    snapshot = two_kinds(wide, a100=0, h100=2)
    top, t, v = snapshot.tenants
    dept = tenant("dept", under="all", a100=2, h100=0)
    snapshot = replace(snapshot, tenants=(top, dept, replace(t, parent="dept"), v))
    plan = room(("va", "J"), cause=EvictionCause.RECLAIMED)
    with pytest.raises(InvalidPlanError, match="'J' has no claim on job 'va'"):
        verify(snapshot, plan, GRACE)
    verify(replace(snapshot, pending=(replace(wide, preemptible=True),)), plan, GRACE)


def beside(left_s: float) -> Snapshot:
    """Return t with one A100 of its own, held for so long by a firm job of it."""
    other = replace(firm("r"), time_limit_s=900 + left_s)
    held = [running(other, 0, (2,), started_s=NOW_S - 900)]
    return two_kinds(firm("J"), a100=1, h100=0, held=held)


def test_firm_jobs_count_that_run_on_when_the_grace_is_over() -> None:
    """The grace is 30 s; without a policy it may be of any length."""
    plan = room(("va", "J"))
    verify(beside(30), plan, GRACE)
    with pytest.raises(InvalidPlanError, match="'J', whose tenant does not own"):
        verify(beside(31), plan, GRACE)
    verify(beside(31), plan)


def test_firm_jobs_count_that_start_in_the_same_cycle() -> None:
    snapshot = two_kinds(firm("J"), firm("K"), a100=1, h100=0)
    start = Start("K", (ReplicaPlacement(0, (2,), 1000, 80_000),), "a100")
    with pytest.raises(InvalidPlanError, match="'J', whose tenant does not own"):
        verify(snapshot, room(("va", "J"), starts=(start,)), GRACE)


def test_firm_jobs_count_for_each_other_that_room_is_made_for() -> None:
    """J and K come at the same time, each to an A100; one owns them both, or only one."""
    plan = room(("va", "J"), ("vb", "K"))
    verify(two_kinds(firm("J"), firm("K"), a100=2, h100=0), plan, GRACE)
    with pytest.raises(InvalidPlanError, match="whose tenant does not own"):
        verify(two_kinds(firm("J"), firm("K"), a100=1, h100=0), plan, GRACE)
