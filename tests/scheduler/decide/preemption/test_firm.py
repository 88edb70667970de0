"""Room for jobs that may not be evicted: only where their tenant owns what they will hold."""

from dataclasses import replace

import pytest

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy, PreemptionPolicy
from scheduler.core.snapshot import JobSpec, RunningJob
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

LONG_S = 90_000.0


def firm(uid: str, *, devices: int = 2, limit_s: float = 3500.0, **changes: object) -> JobSpec:
    """Return a job of t that may not be evicted and has waited for five minutes."""
    spec = job(uid, devices=devices, cpu=1, limit_s=limit_s, submitted_s=NOW_S - 300)
    return replace(spec, preemptible=False, **changes)  # type: ignore[arg-type]


def borrowed(uid: str, node: int, devices: tuple[int, ...], *, limit_s: float) -> RunningJob:
    """Return a job of v, that owns nothing, which has run for 700 s."""
    spec = job(uid, tenant="v", devices=len(devices), limit_s=limit_s)
    return running(spec, node, devices, started_s=NOW_S - 700)


def evicted(plan: Plan) -> list[tuple[str, str]]:
    assert plan.solver.status != "error", plan.solver.note
    return [(one.uid, one.beneficiary) for one in plan.preempts]


@pytest.mark.parametrize(("owns", "goes"), [("h100", "vh"), ("a100", "va")])
def test_room_is_made_on_the_flavor_that_the_tenant_of_a_firm_job_owns(
    owns: str, goes: str
) -> None:
    """Its department owns two of either, so that t's claim holds on both; t itself owns one kind.

    v runs on both; the job on the other flavor has the shorter run, and would be the cheaper.
    """
    fleet = FleetBuilder().node("a", devices=2).node("h", devices=2, flavor="h100")
    owned, others = {owns: 2}, {"a100": 2, "h100": 2} | {owns: 0}
    tenants = [
        *(tenant("all"), tenant("dept", under="all"), tenant("v", under="all", a100=0, h100=0)),
        tenant("t", under="dept", **{"a100": 0, "h100": 0} | owned),
        tenant("t2", under="dept", **others),
    ]
    held = [borrowed("va", 0, (0, 1), limit_s=LONG_S), borrowed("vh", 1, (2, 3), limit_s=LONG_S)]
    held = [replace(r, started_s=NOW_S - (900 if r.spec.uid == goes else 700)) for r in held]
    snapshot = world(fleet, [firm("J")], running=held, tenants=tenants)
    plan = decide(snapshot, Policy(strategy="rules"), now_s=NOW_S, budget_s=1.0)
    assert evicted(plan) == [(goes, "J")]


@pytest.mark.parametrize(("grace_s", "goes"), [(30.0, [("vj", "J")]), (600.0, [])])
def test_room_for_a_firm_job_moves_no_firm_job_ahead(
    grace_s: float, goes: list[tuple[str, str]]
) -> None:
    """t owns two. A, ahead, is planned for them in an hour, on n1, where a job of w ends then.

    J runs for 3500 s: from the end of a grace of 30 s until before that hour; from one of 600 s
    until after it, and both would hold four then.
    """
    fleet = FleetBuilder().node("n1", devices=2).node("n2", cpu=8, devices=2)
    tenants = [tenant("all"), *(tenant(s, under="all", a100=n) for s, n in (("t", 2), ("w", 2)))]
    others = replace(job("wj", tenant="w", devices=2, limit_s=4300.0), preemptible=False)
    held = [
        running(others, 0, (0, 1), started_s=NOW_S - 700),
        borrowed("vj", 1, (2, 3), limit_s=LONG_S),
    ]
    ahead = firm("A", limit_s=3600.0, priority=1)
    ahead = replace(ahead, shape=replace(ahead.shape, cpu_milli=32_000))
    tenants.append(tenant("v", under="all", a100=0))
    snapshot = world(fleet, [ahead, firm("J")], running=held, tenants=tenants)
    policy = Policy(strategy="rules", preemption=PreemptionPolicy(grace_s=grace_s))
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=1.0)
    assert evicted(plan) == goes
    planned = {one.uid: one.expected_start_p50_s for one in plan.pending}
    assert planned["A"] == NOW_S + 3600


def test_what_a_firm_job_holds_that_ends_within_the_grace_counts_no_more() -> None:
    """r has one of t's two for twenty seconds yet; J, of two, could begin when vj is gone."""
    fleet = FleetBuilder().node("n1", devices=2).node("n2", devices=1)
    tenants = [tenant("all", a100=1), tenant("t", under="all", a100=2)]
    tenants.append(tenant("v", under="all", a100=0))
    held = [
        borrowed("vj", 0, (0, 1), limit_s=LONG_S),
        running(firm("r", devices=1, limit_s=720.0), 1, (2,), started_s=NOW_S - 700),
    ]
    snapshot = world(fleet, [firm("J", priority=1)], running=held, tenants=tenants)
    policy = Policy(strategy="rules", preemption=PreemptionPolicy(by_priority=True))
    plan = decide(snapshot, policy, now_s=NOW_S, budget_s=1.0)
    assert evicted(plan) == [("vj", "J")]
