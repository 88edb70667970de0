"""Whose quota it is: a tenant that has others below it owns its own nominal, whatever they hold."""

from dataclasses import replace

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import JobSpec, RunningJob, TenantNode
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

NO_DEPTH = Policy(strategy="rules", backfill_depth=0)
EARLY_S = NOW_S - 50_000

DEPT = [
    tenant("root"),
    tenant("dept", under="root", a100=4),
    tenant("kid", under="dept", a100=4),
    tenant("other", under="root", a100=0),
]
"""dept owns 4 a100 itself and kid, below it, 4 of its own; other may only borrow."""


def holds(uid: str, owner: str, node: int) -> RunningJob:
    devices = range(4 * node, 4 * node + 4)
    spec = job(uid, tenant=owner, devices=4, limit_s=90_000)
    return running(spec, node, devices, started_s=EARLY_S)


def planned(pending: list[JobSpec], runs: list[RunningJob], tenants: list[TenantNode]) -> Plan:
    fleet = FleetBuilder().node("n1", devices=4).node("n2", devices=4)
    snapshot = world(fleet, pending, running=runs, tenants=tenants)
    return decide(snapshot, NO_DEPTH, now_s=NOW_S, budget_s=1.0)


def waits(devices: int, owner: str = "dept") -> JobSpec:
    return job("mine", tenant=owner, devices=devices, submitted_s=NOW_S - 5000)


def test_what_an_inner_tenant_owns_is_its_own_whatever_its_children_hold() -> None:
    """kid holds its own 4, other the 4 of dept, which holds 0 itself: 0 + 4 <= 4.

    Nothing is planned past the depth but what a tenant owns.
    """
    runs = [holds("kid", "kid", 0), holds("oth", "other", 1)]
    plan = planned([waits(4)], runs, DEPT)
    assert [(one.uid, one.beneficiary) for one in plan.preempts] == [("oth", "mine")]


def test_an_inner_tenant_owns_no_more_than_its_own_nominal() -> None:
    """dept holds its 4 itself, and kid's 4 are held by other: 4 + 1 > 4, it would borrow."""
    runs = [holds("own", "dept", 0), holds("oth", "other", 1)]
    assert planned([waits(1)], runs, DEPT).preempts == ()
    assert len(planned([waits(1, "kid")], runs, DEPT).preempts) == 1  # 0 + 1 <= 4


def test_an_inner_tenant_that_is_overdue_goes_before_a_higher_class() -> None:
    """One device is free. dept owns 4 and holds 1 itself, kid below it 3 of its own 4.

    1 + 1 <= 4 and it has waited, so that dept is overdue; kid, of a higher class, has just come.
    (With kid's 3 dept's Usage is 4.)
    """
    runs = [
        running(job("own", tenant="dept", devices=1, limit_s=90_000), 0, [0], started_s=EARLY_S),
        running(job("kid", tenant="kid", devices=3, limit_s=90_000), 0, [1, 2, 3]),
        running(job("oth", tenant="other", devices=3, limit_s=90_000), 1, [4, 5, 6]),
    ]
    loud = job("loud", tenant="kid", devices=1, priority=9)
    plan = planned([loud, waits(1)], runs, DEPT)
    assert [start.uid for start in plan.starts] == ["mine"]


def test_an_inner_tenant_is_given_what_it_owns_before_what_it_would_borrow() -> None:
    """dept owns 4 v100, kid holds 4 of its own; a k80 is smaller, but other owns those.

    Own: 0 + 1 <= 4 v100, so v100 goes first.
    """
    tenants = [
        tenant("root"),
        tenant("dept", under="root", v100=4, k80=0),
        tenant("kid", under="dept", v100=4),
        tenant("other", under="root", k80=4),
    ]
    fleet = FleetBuilder().flavor("k80", cu=4.0).flavor("v100", cu=125.0)
    fleet = fleet.node("n1", devices=4, flavor="v100").node("n2", devices=4, flavor="v100")
    fleet = fleet.node("n3", devices=4, flavor="k80")
    snapshot = world(fleet, [waits(1)], running=[holds("kid", "kid", 0)], tenants=tenants)
    plan = decide(snapshot, NO_DEPTH, now_s=NOW_S, budget_s=1.0)
    assert [start.flavor for start in plan.starts] == ["v100"]


def firm_plan(quota: int, devices_of_b: int = 1) -> Plan:
    """Plan for firm jobs of one tenant on node a (1 device, 4 cores) and b (2 devices, 2 cores).

    A holds one device and all cores of a for another hour. B, ahead, needs 4 cores, so that it is
    planned there from then on. C has a free device on b, for three hours.
    """
    fleet = FleetBuilder().node("a", devices=devices_of_b, cpu=4).node("b", devices=2, cpu=2)
    firm = [
        replace(job(uid, cpu=cpu, devices=devices, limit_s=limit_s), preemptible=False)
        for uid, cpu, devices, limit_s in (
            ("A", 4, 1, 3600),
            ("B", 4, devices_of_b, 3600),
            ("C", 1, 1, 3 * 3600),
        )
    ]
    queue = [replace(firm[1], priority=9), firm[2]]
    snapshot = world(
        fleet, queue, running=[running(firm[0], 0, [0])], tenants=[tenant("t", a100=quota)]
    )
    return decide(snapshot, Policy(strategy="rules"), now_s=NOW_S, budget_s=1.0)


def test_firm_jobs_that_follow_each_other_are_not_summed() -> None:
    """A until 1 h, then B: one device at any time, and C beside it makes two of two."""
    plan = firm_plan(2)
    assert [start.uid for start in plan.starts] == ["C"]
    assert [pending.expected_start_p90_s for pending in plan.pending] == [NOW_S + 3600]


def test_who_waits_for_quota_that_is_planned_for_a_firm_job_ahead_is_told_so() -> None:
    """B takes two of two from 1 h on: until C's end in 3 h nothing is left, now there is one.

    C would fit, and end in time with a limit of less than an hour.
    """
    plan = firm_plan(2, devices_of_b=2)
    assert plan.starts == ()
    waits = plan.pending[1]
    assert (waits.uid, waits.code) == ("C", "waiting_for_quota")
    names = ("nominal_milli", "used_milli", "available_milli", "missing_milli", "planned_milli")
    assert [waits.evidence[name] for name in names] == [2000, 1000, 0, 1000, 1000]
    helps = {remedy.code: remedy.params for remedy in waits.remedies}
    assert helps["ask_for_quota"] == {"missing_milli": {"a100": 1000}, "starts_now": True}
    assert helps["shorter_time_limit"] == {"time_limit_s": 3540.0, "starts_now": True}
