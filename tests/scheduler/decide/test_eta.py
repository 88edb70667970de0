"""When waiting jobs are expected to start, beside when they do."""

import heapq
import math
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from scheduler.core.plan import Plan
from scheduler.core.policy import Policy, PriorityWeights
from scheduler.core.reasons import Pending
from scheduler.core.snapshot import Expectation, JobSpec, RunningJob, Snapshot
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

BY_AGE = Policy(strategy="rules", order=PriorityWeights(fair_share=0.0, size=0.0))
TWENTY = tuple(k / 20 for k in range(1, 21))


def expected(snapshot: Snapshot) -> dict[str, tuple[float, float]]:
    """Return uid -> seconds from now to the P50 and P90 start."""
    plan = decide(snapshot, BY_AGE, now_s=NOW_S, budget_s=1.0)
    found = {}
    for p in plan.pending:
        assert p.expected_start_p50_s is not None
        assert p.expected_start_p90_s is not None
        found[p.uid] = (p.expected_start_p50_s - NOW_S, p.expected_start_p90_s - NOW_S)
    return found


def queue(*uids: str) -> list[JobSpec]:
    return [
        job(uid, devices=1, limit_s=1000, submitted_s=NOW_S - 99 + k) for k, uid in enumerate(uids)
    ]


def busy(*started_s: float) -> list[RunningJob]:
    return [
        running(job(f"old{d}", devices=1, limit_s=1000), 0, (d,), started_s=s)
        for d, s in enumerate(started_s)
    ]


def test_time_limits_are_taken_at_their_word_where_nothing_was_observed() -> None:
    snapshot = world(FleetBuilder().node("n1", devices=1), queue("a", "b"), running=busy(NOW_S))
    assert expected(snapshot) == {"a": (1000, 1000), "b": (2000, 2000)}


def test_a_start_is_expected_when_survivors_have_ended() -> None:
    """After 500 of 1000 s: the 5th of 10 survivors ended at 750, the 9th at 950."""
    fleet = FleetBuilder().node("n1", devices=1)
    snapshot = world(fleet, queue("a"), running=busy(NOW_S - 500))
    (found,) = expected(replace(snapshot, runtime_ratios=TWENTY)).values()
    assert found == pytest.approx((250, 450))


def test_who_waits_behind_a_waiting_job_waits_for_its_runtime_too() -> None:
    """a needs 500 s in the middle and 900 s at P90: 250 + 500 and 450 + 900.

    It is the second in line: of the 600 s between them it is told sqrt(1/2 + 0.1/2).
    """
    fleet = FleetBuilder().node("n1", devices=1)
    snapshot = world(fleet, queue("a", "b"), running=busy(NOW_S - 500))
    found = expected(replace(snapshot, runtime_ratios=TWENTY))
    assert found["b"] == pytest.approx((750, 750 + 600 * math.sqrt(0.55)))


def test_who_waits_behind_a_job_that_starts_now_waits_for_its_runtime() -> None:
    fleet = FleetBuilder().node("n1", devices=1)
    snapshot = replace(world(fleet, queue("a", "b")), runtime_ratios=TWENTY)
    assert expected(snapshot) == {"b": pytest.approx((500, 900))}


def test_many_short_jobs_say_nothing_of_those_that_have_outlived_them() -> None:
    """200 jobs of 1 s with a limit of 1000 s; two others have run for 30 s."""
    fleet = FleetBuilder().node("n1", devices=2)
    snapshot = world(fleet, queue("a"), running=busy(NOW_S - 30, NOW_S - 30))
    assert expected(replace(snapshot, runtime_ratios=(0.001,) * 200)) == {"a": (970, 970)}


def test_jobs_beyond_the_planned_depth_get_the_pace_of_those_before() -> None:
    """100 are planned one after the other, the last after 500 + 99 * 500 s: 500 s each."""
    fleet = FleetBuilder().node("n1", devices=1)
    snapshot = world(fleet, queue(*(f"j{k:03d}" for k in range(102))), running=busy(NOW_S))
    plan = decide(replace(snapshot, runtime_ratios=(0.5,) * 10), BY_AGE, now_s=NOW_S, budget_s=1.0)
    last = plan.pending[-1]
    assert last.uid == "j101"
    assert last.evidence["expected_start_basis"] == "rate"
    assert last.expected_start_p50_s == NOW_S + 102 * 500


def test_who_backs_off_is_expected_when_that_ends_if_there_is_room() -> None:
    fleet = FleetBuilder().node("n1", devices=1)
    tried = replace(queue("a")[0], not_before_s=NOW_S + 300)
    assert expected(world(fleet, [tried])) == {"a": (300, 300)}
    later = world(fleet, [tried], running=busy(NOW_S))
    assert expected(later) == {"a": (1000, 1000)}


def test_who_backs_off_comes_after_those_in_the_queue_and_never_before_its_time() -> None:
    """b holds the device from 1000 to 2000; what past waits were worth makes nobody try earlier."""
    fleet = FleetBuilder().node("n1", devices=1)
    tried = replace(queue("a")[0], not_before_s=NOW_S + 300)
    snapshot = world(fleet, [tried, *queue("b")], running=busy(NOW_S))
    assert expected(snapshot) == {"a": (2000, 2000), "b": (1000, 1000)}
    quick = (Expectation(300.0, 300.0, 0.0, started=True, gang=False),) * 99
    alone = replace(world(fleet, [tried]), expectations=quick)
    assert expected(alone) == {"a": (300, 300)}


class Toy:
    """A stationary stream on four devices; time limits are 100 s, runtimes any part of that."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.fleet = FleetBuilder().node("n1", devices=4)
        self.now_s, self.arrives_s, self.count = NOW_S, NOW_S, 0
        self.waiting: list[JobSpec] = []
        self.running: dict[str, RunningJob] = {}
        self.ends: list[tuple[float, str]] = []
        self.ratios: list[float] = []

    def play(self, events: int) -> Iterator[Plan]:
        for _ in range(events):
            self.step()
            plan = decide(self.snapshot(), BY_AGE, now_s=self.now_s, budget_s=1.0)
            self.start(plan)
            yield plan

    def step(self) -> None:
        """Let the next job end or arrive."""
        if self.ends and self.ends[0][0] < self.arrives_s:
            self.now_s, uid = heapq.heappop(self.ends)
            ended = self.running.pop(uid)
            self.ratios.append((self.now_s - ended.started_s) / 100)
            return
        self.now_s = self.arrives_s
        self.arrives_s += self.random.expovariate(1 / 13.5)  # 4 devices, 50 s each: 93 % busy
        self.count += 1
        self.waiting.append(
            job(f"j{self.count:05d}", devices=1, limit_s=100, submitted_s=self.now_s)
        )

    def snapshot(self) -> Snapshot:
        held = list(self.running.values())
        snapshot = world(
            self.fleet, self.waiting, running=held, tenants=[tenant("t")], now_s=self.now_s
        )
        return replace(snapshot, runtime_ratios=tuple(sorted(self.ratios[-200:])))

    def start(self, plan: Plan) -> None:
        specs = {spec.uid: spec for spec in self.waiting}
        for start in plan.starts:
            self.running[start.uid] = RunningJob(specs[start.uid], start.replicas, self.now_s)
            end_s = self.now_s + 100 * max(0.01, self.random.random())
            heapq.heappush(self.ends, (end_s, start.uid))
        started = {start.uid for start in plan.starts}
        self.waiting = [spec for spec in self.waiting if spec.uid not in started]


def test_expected_starts_come_true_in_a_stationary_stream() -> None:
    toy = Toy(seed=5)
    first: dict[str, Pending] = {}
    began: dict[str, float] = {}
    for k, plan in enumerate(toy.play(events=600)):
        began.update({start.uid: toy.now_s for start in plan.starts})
        for pending in plan.pending if k > 200 else ():
            first.setdefault(pending.uid, pending)
    asked = [pending for uid, pending in first.items() if uid in began]
    assert len(asked) > 100
    for pending in asked:
        assert pending.expected_start_p50_s is not None
        assert pending.expected_start_p90_s is not None
        assert pending.expected_start_p50_s <= pending.expected_start_p90_s
    p50 = sum(began[p.uid] <= (p.expected_start_p50_s or 0) for p in asked) / len(asked)
    p90 = sum(began[p.uid] <= (p.expected_start_p90_s or 0) for p in asked) / len(asked)
    assert 0.8 <= p90 <= 1.0
    assert 0.3 <= p50 <= 0.8
