from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.reasons import WaitReason
from scheduler.core.snapshot import JobSpec, Snapshot
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

RULES = Policy(strategy="rules")


def plan_of(snapshot: Snapshot, policy: Policy = RULES) -> Plan:
    return decide(snapshot, policy, now_s=NOW_S, budget_s=1.0)


def test_a_job_starts_on_an_idle_fleet() -> None:
    plan = plan_of(world(FleetBuilder().node("n1", devices=4), [job("a", devices=2)]))
    assert [start.uid for start in plan.starts] == ["a"]
    assert plan.starts[0].replicas[0].devices == (0, 1)
    assert plan.starts[0].flavor == "a100"
    assert plan.pending == ()


def test_a_blocked_job_is_planned_for_the_end_of_the_one_that_runs() -> None:
    busy = running(job("old", devices=4, limit_s=600), 0, range(4))
    plan = plan_of(
        world(FleetBuilder().node("n1", devices=4), [job("a", devices=2)], running=[busy])
    )
    (pending,) = plan.pending
    assert pending.code is WaitReason.WAITING_FOR_CAPACITY
    assert pending.expected_start_p50_s == NOW_S + 600


def test_a_lower_job_backfills_only_if_it_ends_before_the_planned_start() -> None:
    busy = running(job("old", devices=3, limit_s=600), 0, range(3))
    jobs = [
        job("big", devices=4, priority=1),
        job("long", devices=1, limit_s=601),
        job("short", devices=1, limit_s=600),
    ]
    plan = plan_of(world(FleetBuilder().node("n1", devices=4), jobs, running=[busy]))
    assert [start.uid for start in plan.starts] == ["short"]
    reasons = {p.uid: p.code for p in plan.pending}
    assert reasons["long"] is WaitReason.RESERVED


def test_a_quota_that_is_used_up_is_said_so() -> None:
    jobs = [job("a", devices=2), job("b", devices=2)]
    plan = plan_of(world(FleetBuilder().node("n1", devices=4), jobs, tenants=[tenant("t", a100=3)]))
    assert [start.uid for start in plan.starts] == ["a"]
    (pending,) = plan.pending
    assert pending.code is WaitReason.WAITING_FOR_QUOTA
    assert pending.evidence["missing_milli"] == 1000
    assert pending.expected_start_p50_s == NOW_S + 3600


def test_a_policy_may_do_without_advice_and_expected_starts_and_decides_the_same() -> None:
    held = (running(job("old", devices=3), 0, (0, 1, 2)),)
    snapshot = world(
        FleetBuilder().node("n1", devices=4), [job("a", devices=2), job("b")], running=held
    )
    full = decide(snapshot, Policy(strategy="rules"), now_s=NOW_S, budget_s=1.0)
    lean = Policy(strategy="rules", remedy_depth=0, expects_starts=False)
    silent = decide(snapshot, lean, now_s=NOW_S, budget_s=1.0)
    assert silent.starts == full.starts
    assert full.pending[0].remedies
    assert full.pending[0].expected_start_p50_s is not None
    assert silent.pending[0].code is full.pending[0].code
    assert not silent.pending[0].remedies
    assert silent.pending[0].expected_start_p50_s is None


def test_what_a_tenant_owns_is_had_back_however_far_back_its_job_stands() -> None:
    """a owns 2 and b holds all 4. With a depth of 1 only the job ahead is planned for.

    That is of a higher class, and asks for more than a owns.
    """
    owners = {"a": 2, "b": 2, "d": 1}
    tenants = [tenant("all", a100=0)]
    tenants += [tenant(slug, under="all", a100=owned) for slug, owned in owners.items()]
    held = [
        running(job(f"b{i}", tenant="b", devices=1), 0, (i,), started_s=NOW_S - 3000)
        for i in range(4)
    ]
    waiting = [
        job("ahead", tenant="a", devices=4, submitted_s=NOW_S - 1000, priority=1),
        job("mine", tenant="a", devices=2, submitted_s=NOW_S - 600, limit_s=400),
    ]
    snapshot = world(FleetBuilder().node("n1", devices=4), waiting, running=held, tenants=tenants)
    plan = plan_of(snapshot, Policy(strategy="rules", backfill_depth=1))
    assert [pending.uid for pending in plan.pending] == ["ahead", "mine"]
    assert {preempt.beneficiary for preempt in plan.preempts} == {"mine"}
    assert plan.pending[1].code is WaitReason.WAITING_FOR_PREEMPTED_JOBS


def test_where_no_quota_says_who_owns_what_nobody_is_overdue() -> None:
    """Both ask for all four cores. The lower class has waited an hour: long enough to claim, but
    nothing is its tenant's own, so the class decides.
    """
    waiting = [
        job("old", tenant="t", cpu=4, submitted_s=NOW_S - 3600),
        job("high", tenant="u", cpu=4, priority=1),
    ]
    fleet = FleetBuilder().node("n1", cpu=4)
    plan = plan_of(world(fleet, waiting, tenants=[tenant("t"), tenant("u")]))
    assert [start.uid for start in plan.starts] == ["high"]
    owners = [tenant("t", cpu=4), tenant("u", cpu=0)]
    plan = plan_of(world(fleet, waiting, tenants=owners))
    assert [start.uid for start in plan.starts] == ["old"]


def overdue_beside(high: JobSpec, *others: JobSpec, free: int = 1) -> list[str]:
    """Return who starts on so many free a100; a job of t has waited for two hours for one.

    The only h100 is taken. t and u own four of both.
    """
    fleet = FleetBuilder().flavor("h100", cu=900.0).node("n1", devices=free)
    fleet.node("n2", devices=1, flavor="h100")
    held = running(job("held", devices=1, flavors=["h100"], limit_s=90_000), 1, [free])
    low = job("low", devices=1, flavors=["a100"], submitted_s=NOW_S - 7200)
    owners = [tenant("t", a100=4, h100=4), tenant("u", a100=4, h100=4)]
    plan = plan_of(world(fleet, [low, high, *others], running=[held], tenants=owners))
    return [start.uid for start in plan.starts]


def test_who_is_overdue_does_not_pass_a_higher_class_of_its_tenant_that_could_use_the_same() -> (
    None
):
    """`high` may use either flavor, so that the two are not compared as one set of jobs."""
    assert overdue_beside(job("high", devices=1, priority=9)) == ["high"]
    assert overdue_beside(job("high", devices=1, priority=9, flavors=["h100"])) == ["low"]
    assert overdue_beside(job("high", tenant="u", devices=1, priority=9)) == ["low"]


def test_who_is_overdue_follows_at_once_when_the_higher_class_has_had_its_turn() -> None:
    """Two are free: `other`, of another tenant and a class between them, comes third."""
    high = job("high", devices=1, priority=9)
    other = job("other", tenant="u", devices=1, priority=5)
    assert overdue_beside(high, other, free=2) == ["high", "low"]
