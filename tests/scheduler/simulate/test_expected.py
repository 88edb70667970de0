"""What a simulated site remembers of the starts that it told jobs to expect."""

from dataclasses import replace

from scheduler.core.plan import Plan, Start
from scheduler.core.reasons import Pending, WaitReason
from scheduler.core.snapshot import Expectation, ReplicaPlacement, Snapshot
from scheduler.simulate.baselines import plan_of
from scheduler.simulate.expected import Expectations, remembering
from tests.builders import NOW_S, FleetBuilder, job, world

SITE = world(FleetBuilder().node("n1", devices=1), [job("a"), job("b", replicas=2)])


def plan(now_s: float, *told: Pending, starts: tuple[str, ...] = ()) -> Plan:
    begun = [Start(uid, (ReplicaPlacement(0, (), 0, 0),), "") for uid in starts]
    return replace(plan_of(SITE, "rules", begun, now_s=now_s), pending=told)


def waits(uid: str, p50_s: float, p90_s: float) -> Pending:
    return Pending(
        uid,
        WaitReason.WAITING_FOR_CAPACITY,
        planned_p50_s=NOW_S + p50_s,
        planned_p90_s=NOW_S + p90_s,
    )


def test_the_first_word_counts_until_the_job_starts() -> None:
    memory = Expectations()
    memory.note(SITE, plan(NOW_S, waits("a", 10, 20), waits("b", 30, 40)))
    memory.note(SITE, plan(NOW_S + 5, waits("a", 99, 99), waits("b", 99, 99)))
    assert memory.now(NOW_S + 8) == (
        Expectation(10, 20, 8, started=False, gang=False),
        Expectation(30, 40, 8, started=False, gang=True),
    )
    memory.note(SITE, plan(NOW_S + 12, starts=("b",)))
    assert memory.now(NOW_S + 20) == (
        Expectation(30, 40, 12, started=True, gang=True),
        Expectation(10, 20, 20, started=False, gang=False),
    )


def test_who_starts_at_once_or_is_told_nothing_leaves_no_trace() -> None:
    memory = Expectations()
    nothing = Pending("a", WaitReason.ON_HOLD)
    memory.note(SITE, plan(NOW_S, nothing, starts=("b",)))
    assert memory.now(NOW_S) == ()


def test_a_decider_is_given_what_it_said_before() -> None:
    seen: list[tuple[Expectation, ...]] = []

    def decider(snapshot: Snapshot, now_s: float) -> Plan:
        seen.append(snapshot.expectations)
        return plan(now_s, waits("a", 10, 20))

    decide = remembering(decider)
    decide(SITE, NOW_S)
    decide(SITE, NOW_S + 3)
    assert seen == [(), (Expectation(10, 20, 3, started=False, gang=False),)]
