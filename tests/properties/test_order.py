"""What holds of the order of the queue, under every weight, with past use and any tree."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy
from scheduler.core.snapshot import JobSpec, Snapshot
from scheduler.decide.cycle import decide
from scheduler.decide.fairness.dominant import Path
from scheduler.decide.preemption import asks_from_s
from scheduler.decide.turns import Turns
from tests.builders import NOW_S, with_pending
from tests.properties.worlds import worlds

RULES = Policy(strategy="rules")


def plan_of(snapshot: Snapshot) -> Plan:
    plan = decide(snapshot, RULES, now_s=NOW_S, budget_s=5.0)
    assert plan.solver.status not in {"error", "invalid"}, plan.solver.note
    return plan


def order_of(snapshot: Snapshot) -> list[str]:
    turns = Turns(snapshot, RULES, now_s=NOW_S)
    order = []
    for ranked in turns.queue():
        order.append(ranked.job.uid)
        turns.turn(ranked)
    return order


@settings(max_examples=80, deadline=None)
@given(worlds() | worlds(eventful=True), st.data())
def test_taking_a_waiting_job_away_changes_nothing_for_those_ahead_of_it(
    snapshot: Snapshot, data: st.DataObject
) -> None:
    plan = plan_of(snapshot)
    waiting = [p.uid for p in plan.pending if p.position]
    if not waiting:
        return
    gone = data.draw(st.sampled_from(waiting))
    order = order_of(snapshot)
    ahead = order[: order.index(gone)]
    without = plan_of(with_pending(snapshot, [j for j in snapshot.pending if j.uid != gone]))
    before = {s.uid: s.replicas for s in plan.starts} | {
        p.uid: (p.code, p.expected_start_p50_s, p.expected_start_p90_s) for p in plan.pending
    }
    after = {s.uid: s.replicas for s in without.starts} | {
        p.uid: (p.code, p.expected_start_p50_s, p.expected_start_p90_s) for p in without.pending
    }
    assert {uid: before[uid] for uid in ahead} == {uid: after[uid] for uid in ahead}


@settings(max_examples=80, deadline=None)
@given(worlds())
def test_a_lower_class_comes_before_a_higher_one_only_where_that_one_must_borrow_more(
    snapshot: Snapshot,
) -> None:
    """So no job that is entitled and fits is passed by one of a lower class that is not overdue.

    One that is passes those of other tenants only, and of its own those that use other flavors.

    What starts after it in spite of a lower class is backfill: it fits in every row of the time
    profile on which the planned start of the one ahead is reserved.
    """
    turns = Turns(snapshot, RULES, now_s=NOW_S)
    left = {job.uid: job for job in turns.candidates}

    def usable(job: JobSpec) -> set[str]:
        return {turns.session.flavor_name(f) for f in turns.session.allowed(job)}

    def standing(job: JobSpec) -> Path:
        return turns.shares.path(job.tenant, tuple(sorted(usable(job) - {""})))

    for ranked in turns.queue():
        job = left.pop(ranked.job.uid)
        higher = [other for other in left.values() if other.priority > job.priority]
        overdue = asks_from_s(job, RULES.preemption) <= NOW_S
        for other in higher:
            own = job.tenant == other.tenant and usable(job) & usable(other)
            assert (overdue and not own) or standing(job) < standing(other)
        turns.turn(ranked)


@settings(max_examples=80, deadline=None)
@given(worlds())
def test_what_may_not_be_evicted_is_started_within_what_its_tenant_owns(
    snapshot: Snapshot,
) -> None:
    plan = plan_of(snapshot)
    fleet = snapshot.fleet
    owned = {
        (tenant.slug, flavor): line.nominal
        for tenant in snapshot.tenants
        for flavor, line in tenant.quotas.items()
    }
    limited = {flavor for _, flavor in owned}
    firm, started = Counter[tuple[str, str]](), set[tuple[str, str]]()

    def book(job: JobSpec, flavor: str, replicas: int) -> None:
        firm[job.tenant, "cpu"] += job.shape.cpu_milli * replicas
        firm[job.tenant, flavor] += job.shape.device_milli * replicas

    for held in snapshot.running:
        if not held.spec.preemptible:
            devices = [device for replica in held.replicas for device in replica.devices]
            flavor = fleet.flavors[int(fleet.device_flavor[devices[0]])].name if devices else ""
            book(held.spec, flavor, len(held.replicas))
    jobs = {job.uid: job for job in snapshot.pending}
    for start in plan.starts:
        job = jobs[start.uid]
        if not job.preemptible:
            book(job, start.flavor, len(start.replicas))
            started |= {(job.tenant, "cpu"), (job.tenant, start.flavor)}
    for tenant, flavor in started:
        if flavor in limited and firm[tenant, flavor]:
            assert firm[tenant, flavor] <= owned.get((tenant, flavor), 0)
