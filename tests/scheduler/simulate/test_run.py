import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from scheduler.core.errors import InvalidPlanError
from scheduler.core.plan import EvictionCause, Plan, Preempt, Resize, SolverReport, Start
from scheduler.core.policy import Policy
from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import DemandKind, JobSpec, ReplicaPlacement, RunningJob, Snapshot
from scheduler.simulate.attempt import Attempt
from scheduler.simulate.baselines import Room, fifo, priority_only, shortest_first
from scheduler.simulate.decider import Decider
from scheduler.simulate.errors import EndlessSimulationError, InvalidSimulationError
from scheduler.simulate.expected import remembering
from scheduler.simulate.jobs import NodeChange, SimJob
from scheduler.simulate.metrics import totals
from scheduler.simulate.result import End, History, Result
from scheduler.simulate.run import Pace, by_policy, simulate
from tests.scheduler.simulate.build import site, work

AT_ONCE = Pace(least_s=0.0, wake_s=0.0, grace_s=0.0)
RULES = by_policy(Policy(strategy="rules"))
BOTH = pytest.mark.parametrize("decider", [fifo(), RULES], ids=["fifo", "rules"])


def of(result: Result, uid: str) -> History:
    return next(job for job in result.jobs if job.uid == uid)


def scripted(script: dict[float, Plan]) -> Decider:
    """Carry out what is written for a moment, once, and nothing at other moments."""
    empty, left = plan(), dict(script)
    return lambda _, now_s: left.pop(now_s, empty)


def plan(
    starts: Sequence[Start] = (), preempts: Sequence[Preempt] = (), resizes: Sequence[Resize] = ()
) -> Plan:
    report = SolverReport("script", "script", "not_needed")
    return Plan("c", 0.0, tuple(starts), (), (), report, tuple(preempts), tuple(resizes))


def start(uid: str, *devices: int, node: int = 0) -> Start:
    """One replica of one device on each of the devices."""
    return Start(uid, tuple(place(d, node) for d in devices), "a100")


def place(device: int, node: int = 0) -> ReplicaPlacement:
    return ReplicaPlacement(node, (device,), 1000, 80_000)


@BOTH
def test_second_job_waits_for_the_only_device(decider: Decider) -> None:
    # a holds the device from 0 to 100; b arrives at 10, starts at 100 and ends at 150
    jobs = [work("a", 0, 100), work("b", 10, 50)]
    result = simulate(site(), jobs, decider, pace=AT_ONCE)
    assert of(result, "a").starts == (0.0,)
    assert of(result, "a").end_s == 100.0
    assert of(result, "b").starts == (100.0,)
    assert of(result, "b").end_s == 150.0
    assert of(result, "b").wait_s == 90.0
    assert of(result, "b").completion_s == 140.0
    assert result.end_s == 150.0
    assert result.events == 6  # two arrivals, starts and ends


@BOTH
def test_totals_are_those_worked_out_by_hand(decider: Decider) -> None:
    # two devices over 150 s; a, one device, 0..100; b, two devices, 100..150: 100 + 100 held.
    # b waits from 10 to 100, and all that time one device is idle
    jobs = [work("a", 0, 100), work("b", 10, 50, devices=2)]
    seen = totals(simulate(site(devices=2), jobs, decider, pace=AT_ONCE))
    assert seen.capacity_device_s == 300.0
    assert seen.allocated_device_s == 200.0
    assert seen.utilised_device_s == 200.0
    assert seen.lost_device_s == 0.0
    assert seen.idle_while_waiting_device_s == 90.0


@BOTH
def test_job_that_is_not_done_ends_at_its_time_limit(decider: Decider) -> None:
    result = simulate(site(), [work("a", 0, 100, limit_s=60)], decider, pace=AT_ONCE)
    assert (of(result, "a").state, of(result, "a").end_s) == (End.TIMED_OUT, 60.0)


@BOTH
def test_job_that_needs_exactly_its_time_limit_completes(decider: Decider) -> None:
    result = simulate(site(), [work("a", 0, 60, limit_s=60)], decider, pace=AT_ONCE)
    assert of(result, "a").state is End.COMPLETED


@BOTH
def test_job_fails_when_it_was_to_fail(decider: Decider) -> None:
    result = simulate(site(), [work("a", 5, 100, fails_after_s=30.0)], decider, pace=AT_ONCE)
    assert (of(result, "a").state, of(result, "a").end_s) == (End.FAILED, 35.0)


@BOTH
def test_run_time_follows_the_flavor_that_the_job_gets(decider: Decider) -> None:
    # 100 units at 4 a second are 25 s, and the start-up takes 5 s before
    jobs = [work("a", 0, 100, throughput={"a100": 4.0, "k80": 1.0}, startup_s=5.0)]
    assert of(simulate(site(), jobs, decider, pace=AT_ONCE), "a").end_s == 30.0


@BOTH
def test_cycles_keep_their_least_distance(decider: Decider) -> None:
    # a arrives at 0 and starts; b arrives at 1, but the next cycle runs at 10
    jobs = [work("a", 0, 100), work("b", 1, 100)]
    result = simulate(site(devices=2), jobs, decider, pace=Pace(least_s=10.0))
    assert of(result, "b").starts == (10.0,)


def test_expected_start_is_the_one_of_the_first_cycle() -> None:
    # without ratios the time limits are taken at their word: a may run until 1000
    jobs = [work("a", 0, 100, limit_s=1000), work("b", 10, 50)]
    result = simulate(site(), jobs, RULES, pace=AT_ONCE)
    eta = of(result, "b").eta
    assert eta is not None
    assert (eta.given_s, eta.p50_s, eta.p90_s) == (10.0, 1000.0, 1000.0)
    assert of(result, "a").eta is None


def test_preempted_job_loses_what_it_did_since_its_checkpoint() -> None:
    # v works from 0, saves every 40 s, is told at 100 and leaves at 110: 80 s are safe, 30 lost.
    # b holds the device 110..160, then v does its last 120 s: it ends at 280
    victim = work("v", 0, 200, checkpoint_every_s=40.0)
    script = {
        0.0: plan([start("v", 0)]),
        100.0: plan(preempts=[Preempt("v", "b", EvictionCause.PREEMPTED)]),
        110.0: plan([start("b", 0)]),
        160.0: plan([start("v", 0)]),
    }
    pace = replace(AT_ONCE, grace_s=10.0)
    result = simulate(site(), [victim, work("b", 100, 50)], scripted(script), pace=pace)
    seen = of(result, "v")
    assert (seen.starts, seen.end_s, seen.evictions) == ((0.0, 160.0), 280.0, 1)
    assert (seen.lost_s, seen.lost_device_s) == (30.0, 30.0)
    assert [span.kept_s for span in result.spans] == [80.0, 50.0, 120.0]
    assert of(result, "b").starts == (110.0,)


def test_checkpoints_of_a_very_long_job_take_no_time() -> None:
    """1e15 s of work, saved every second: evicted at 1e9, the next second is all that is lost."""
    script = {
        0.0: plan([start("v", 0)]),
        1e9: plan(preempts=[Preempt("v", "b", EvictionCause.PREEMPTED)]),
        1e9 + 0.5: plan([start("b", 0)]),
        1e9 + 1.5: plan([start("v", 0)]),
    }
    jobs = [work("v", 0, 1e15, checkpoint_every_s=1.0, limit_s=1e15), work("b", 1e9, 1)]
    result = simulate(site(), jobs, scripted(script), pace=replace(AT_ONCE, grace_s=0.5))
    assert (of(result, "v").lost_s, of(result, "v").starts) == (0.5, (0.0, 1e9 + 1.5))
    assert result.events == 8  # two arrivals, three starts, a leave and two ends


def test_checkpoints_that_are_too_near_to_each_other_are_refused() -> None:
    job = work("v", 0, 60, checkpoint_every_s=1e-9)
    with pytest.raises(
        InvalidSimulationError, match=r"checkpoint_every_s 1e-09 of job 'v'.*1 s at"
    ):
        simulate(site(), [job], fifo())


def test_job_that_saves_when_told_loses_only_its_notice() -> None:
    # told at 100 with 10 s of notice: 100 s are saved, the last 10 are not
    victim = work("v", 0, 200, saves_when_told=True)
    script = {
        0.0: plan([start("v", 0)]),
        100.0: plan(preempts=[Preempt("v", "b", EvictionCause.RECLAIMED)]),
        110.0: plan([start("b", 0)]),
        160.0: plan([start("v", 0)]),
    }
    pace = replace(AT_ONCE, grace_s=10.0)
    result = simulate(site(), [victim, work("b", 100, 50)], scripted(script), pace=pace)
    assert (of(result, "v").lost_s, of(result, "v").end_s) == (10.0, 260.0)


def test_deciders_see_the_notice_the_promise_and_the_count() -> None:
    seen: dict[float, Snapshot] = {}
    script = {
        0.0: plan([start("v", 0)]),
        100.0: plan(preempts=[Preempt("v", "b", EvictionCause.PREEMPTED)]),
        130.0: plan([start("b", 0)]),
    }
    play = scripted(script)

    def decider(snapshot: Snapshot, now_s: float) -> Plan:
        seen[now_s] = snapshot
        return play(snapshot, now_s)

    jobs = [work("v", 0, 200, checkpoint_every_s=40.0), work("b", 100, 50), work("c", 120, 1)]
    simulate(site(), jobs, decider, pace=Pace(least_s=0.0, wake_s=0.0, grace_s=30.0))
    [running] = seen[120.0].running
    assert (running.ending_s, running.checkpointed_s) == (130.0, 120.0)
    assert [(j.uid, j.promised_s) for j in seen[120.0].pending] == [("b", 100.0), ("c", 0.0)]
    back = seen[130.0].pending[0]
    assert (back.uid, back.preempted_count) == ("v", 1)
    assert seen[180.0].running == ()  # b has ended, and its promise is nobody's any more


def test_promise_ends_with_the_first_cycle_that_could_have_kept_it() -> None:
    # v is told to go for b and does at 130, but its node fails at 125: the cycle of 130 can't start
    # b, which waits as others do from then on; at 140 room is promised to it anew
    seen: dict[float, Snapshot] = {}
    script = {
        0.0: plan([start("v", 0), start("w", 1, node=1)]),
        100.0: plan(preempts=[Preempt("v", "b", EvictionCause.RECLAIMED)]),
        140.0: plan(preempts=[Preempt("w", "b", EvictionCause.RECLAIMED)]),
    }
    play = scripted(script)

    def decider(snapshot: Snapshot, now_s: float) -> Plan:
        seen[now_s] = snapshot
        return play(snapshot, now_s)

    jobs = [work("v", 0, 500), work("w", 0, 500), work("b", 100, 50)]
    jobs += [work(f"at{s}", s, 1) for s in (131, 140, 160)]
    gone = NodeChange(at_s=125.0, node="n0", note="cordoned", loses_jobs=False)
    pace = replace(AT_ONCE, grace_s=30.0)
    simulate(site(nodes=2), jobs, decider, pace=pace, changes=[gone])
    told = {
        at_s: next(j for j in seen[at_s].pending if j.uid == "b") for at_s in seen if at_s > 100
    }
    assert {at_s: (b.promised_s, b.not_before_s) for at_s, b in told.items()} == {
        125.0: (100.0, 0.0),
        130.0: (100.0, 0.0),
        131.0: (0.0, 130.0),
        140.0: (0.0, 130.0),
        160.0: (140.0, 130.0),
        170.0: (140.0, 130.0),
    }


def test_job_that_ends_within_its_notice_is_not_evicted() -> None:
    script = {
        0.0: plan([start("v", 0)]),
        100.0: plan(preempts=[Preempt("v", "b", EvictionCause.PREEMPTED)]),
        105.0: plan([start("b", 0)]),
    }
    pace = replace(AT_ONCE, grace_s=10.0)
    jobs = [work("v", 0, 105), work("b", 100, 50)]
    result = simulate(site(), jobs, scripted(script), pace=pace)
    assert (of(result, "v").end_s, of(result, "v").evictions) == (105.0, 0)
    assert of(result, "b").end_s == 155.0


def test_elastic_job_works_faster_with_more_replicas() -> None:
    # 100 units: 40 by 40 s alone; grown without a checkpoint it begins again at 40 with both
    # devices, 2 units a second: 40 + 50 = 90
    script = {0.0: plan([start("e", 0)]), 40.0: plan(resizes=[Resize("e", (place(0), place(1)))])}
    jobs = [work("e", 0, 100, replicas=1, replicas_max=2), work("b", 40, 1)]
    result = simulate(site(devices=2), jobs, scripted(script), pace=AT_ONCE)
    seen = of(result, "e")
    assert (seen.end_s, seen.resizes, seen.lost_s) == (90.0, 1, 40.0)
    # with a checkpoint every 10 s nothing is lost: 60 units are left, 30 s
    kept = work("e", 0, 100, replicas=1, replicas_max=2, checkpoint_every_s=10.0)
    result = simulate(site(devices=2), [kept, jobs[1]], scripted(script), pace=AT_ONCE)
    assert of(result, "e").end_s == 70.0


@pytest.mark.parametrize(
    ("devices", "scaling", "ends_s"),
    [((0, 1), 1.0, 80.0), ((0,), 1.0, 110.0), ((0, 1), 0.0, 110.0)],
)
def test_resumed_job_goes_on_at_the_speed_of_its_replicas(
    devices: tuple[int, ...], scaling: float, ends_s: float
) -> None:
    """100 units at one a second, saved every 10 s; evicted at 45 it has 40, and 60 are left.

    From 50 on, two replicas do two a second and end at 80, one does one and ends at 110, and so do
    two that are no faster than one.
    """
    script = {
        0.0: plan([start("e", 0)]),
        45.0: plan(preempts=[Preempt("e", "b", EvictionCause.PREEMPTED)]),
        50.0: plan([start("e", *devices)]),
    }
    elastic = {"replicas": 1, "replicas_max": 2, "checkpoint_every_s": 10.0, "scaling": scaling}
    jobs = [work("e", 0, 100, **elastic), work("b", 45, 1), work("c", 50, 1)]
    result = simulate(site(devices=2), jobs, scripted(script), pace=AT_ONCE)
    seen = of(result, "e")
    assert (seen.starts, seen.end_s, seen.lost_s) == ((0.0, 50.0), ends_s, 5.0)


def test_resumed_job_goes_on_at_the_speed_of_its_new_flavor_and_replicas() -> None:
    """Of 90 units 40 are saved; on two devices that do three a second each 50 take 50 / 6 s."""
    fast = SimJob(
        work("e", 0, 1, replicas=1, replicas_max=2).spec, 90.0, {"a100": 3.0, "v100": 1.0},
        checkpoint_every_s=10.0,
    )  # fmt: skip
    attempt = Attempt.begin(
        fast, RunningJob(fast.spec, (place(0), place(1)), 50.0), "a100", safe=40.0, token=1
    )
    ends_s, how = attempt.end()
    assert (ends_s, how) == (50.0 + 50 / 6, End.COMPLETED)


Mix = tuple[DemandKind, ...]


def mixes_shown(world: Snapshot, jobs: Sequence[SimJob], decider: Decider) -> list[Mix]:
    seen: list[Snapshot] = []
    pace = replace(AT_ONCE, until_s=20.0)
    simulate(world, jobs, decider, pace=pace, watch=lambda one, _: seen.append(one))
    return [one.demand_mix for one in seen]


def test_what_arrived_is_shown_to_who_looks_at_it_only() -> None:
    jobs = [work("a", 0, 10), work("b", 5, 10, devices=2, replicas=1, replicas_max=3)]
    world = site(devices=4)
    shown: dict[str, list[Mix]] = {}
    deciders = {
        "prices": by_policy(Policy(strategy="rules", placement="prices")),
        "remembering": remembering(by_policy(Policy(strategy="rules", placement="fgd"))),
        "a function": scripted({}),
        "pack": RULES,
        "fifo": fifo(),
    }
    for name, decider in deciders.items():
        shown[name] = mixes_shown(world, jobs, decider)
    # the first cycle sees a, the last b, too, with three replicas, and a has aged by one arrival
    first = (DemandKind(jobs[0].spec.shape, (), 1.0),)
    last = (
        DemandKind(jobs[0].spec.shape, (), 0.5**0.001),
        DemandKind(jobs[1].spec.shape, (), 3.0),
    )
    for name in ("prices", "remembering", "a function"):
        assert (shown[name][0], shown[name][-1]) == (first, last), name
    assert set(shown["pack"]) == set(shown["fifo"]) == {()}


def test_mix_of_before_the_begin_fades_as_others_arrive() -> None:
    kind = DemandKind(ReplicaShape(500, 64, 4), (), 8.0)
    world = replace(site(), demand_mix=(kind,))
    mixes = mixes_shown(world, [work("a", 0, 1)], scripted({}))
    [found] = [one for one in mixes[0] if one.shape == kind.shape]
    assert found.count == 8.0 * 0.5**0.001


def test_job_that_shrinks_for_another_leaves_after_its_notice_and_goes_on() -> None:
    seen: dict[float, Snapshot] = {}
    shrink = Resize("e", (place(1),), beneficiary="b")
    play = scripted(
        {
            0.0: plan([start("e", 0, 1)]),
            10.0: plan(resizes=[shrink]),
            15.0: plan([start("b", 0)]),
        }
    )

    def decider(snapshot: Snapshot, now_s: float) -> Plan:
        seen[now_s] = snapshot
        return play(snapshot, now_s)

    jobs = [work("e", 0, 100, replicas=1, replicas_max=2), work("b", 10, 5)]
    jobs += [work("c", 12, 1), work("d", 700, 1)]
    pace = replace(AT_ONCE, grace_s=5.0, keep_size_s=600.0)
    result = simulate(site(devices=2), jobs, decider, pace=pace)
    [told] = seen[12.0].running
    assert (told.ending_s, told.keeps) == (15.0, (place(1),))
    assert [job.promised_s for job in seen[12.0].pending] == [10.0, 0.0]
    # from 15 it has one device, for which nothing was saved: until 115; it may not grow at once
    [kept] = seen[15.0].running
    assert (kept.started_s, kept.replicas, kept.spec.replicas_max) == (15.0, (place(1),), 1)
    assert (told.spec.preempted_count, kept.spec.preempted_count) == (0, 1)
    assert of(result, "b").starts == (15.0,)
    assert (of(result, "e").end_s, of(result, "e").resizes) == (115.0, 1)


def test_job_without_devices_keeps_as_many_equal_replicas_as_it_was_told_to() -> None:
    """Three replicas on one node differ in nothing; one is to go."""
    seen: dict[float, Snapshot] = {}
    here = ReplicaPlacement(0, (), 0, 0)
    shrink = Resize("e", (here, here), beneficiary="b")
    play = scripted({0.0: plan([Start("e", (here,) * 3, "")]), 10.0: plan(resizes=[shrink])})

    def decider(snapshot: Snapshot, now_s: float) -> Plan:
        seen[now_s] = snapshot
        return play(snapshot, now_s)

    jobs = [work("e", 0, 100, replicas=1, replicas_max=3, devices=0)]
    jobs += [work("b", 10, 1), work("c", 12, 1)]
    simulate(site(), jobs, decider, pace=replace(AT_ONCE, grace_s=5.0))
    [told] = seen[12.0].running
    assert told.keeps == (here, here)


def test_resized_job_may_grow_again_after_a_while() -> None:
    seen: dict[float, Snapshot] = {}
    play = scripted({0.0: plan([start("e", 0, 1)]), 10.0: plan(resizes=[Resize("e", (place(1),))])})

    def decider(snapshot: Snapshot, now_s: float) -> Plan:
        seen[now_s] = snapshot
        return play(snapshot, now_s)

    jobs = [work("e", 0, 500, replicas=1, replicas_max=2), work("b", 10, 1), work("c", 109, 1)]
    jobs += [work("d", 110, 1)]
    simulate(site(devices=2), jobs, decider, pace=replace(AT_ONCE, keep_size_s=100.0))
    assert [seen[at].running[0].spec.replicas_max for at in (109.0, 110.0)] == [1, 2]


def resized_then_seen(
    seen_s: Sequence[float], resize: Resize, *, changes: Sequence[NodeChange] = ()
) -> list[tuple[int, int]]:
    """Return most replicas and evictions of e, that holds two devices and is told at 10.

    It leaves at 40, and is not given more than it was told to have until 110.
    """
    seen: dict[float, Snapshot] = {}
    play = scripted({0.0: plan([start("e", 0, 1)]), 10.0: plan(resizes=[resize])})

    def decider(snapshot: Snapshot, now_s: float) -> Plan:
        seen[now_s] = snapshot
        return play(snapshot, now_s)

    jobs = [work("e", 0, 500, replicas=1, replicas_max=2), work("b", 10, 1)]
    jobs += [work(f"at{at_s}", at_s, 1) for at_s in seen_s]
    pace = replace(AT_ONCE, grace_s=30.0, keep_size_s=100.0)
    simulate(site(devices=2), jobs, decider, pace=pace, changes=changes)
    shown = [[*seen[at].pending, *(one.spec for one in seen[at].running)] for at in seen_s]
    found = [next(one for one in specs if one.uid == "e") for specs in shown]
    return [(one.replicas_max, one.preempted_count) for one in found]


def test_resized_job_keeps_its_size_from_the_order_on_as_in_the_portal() -> None:
    """In its notice it is shown with what it holds; who grows for itself makes room for nobody."""
    told = resized_then_seen([20.0, 50.0, 109.0, 111.0], Resize("e", (place(1),)))
    assert told == [(2, 0), (1, 0), (1, 0), (2, 0)]


def test_resized_job_whose_place_is_gone_waits_and_is_given_no_more_for_as_long() -> None:
    """It shrinks for b, but its node is cordoned before it leaves."""
    shrink = Resize("e", (place(1),), beneficiary="b")
    gone = [NodeChange(20.0, "n0", "cordoned")]
    told = resized_then_seen([50.0, 109.0, 111.0], shrink, changes=gone)
    assert told == [(1, 1), (1, 1), (2, 1)]


def test_job_whose_new_replicas_are_taken_meanwhile_waits() -> None:
    # e is to grow onto device 1 at 15, but b took it at 12
    grow = Resize("e", (place(0), place(1)))
    script = {
        0.0: plan([start("e", 0)]),
        10.0: plan(resizes=[grow]),
        12.0: plan([start("b", 1)]),
        20.0: plan([start("e", 0)]),
    }
    jobs = [work("e", 0, 100, replicas=1, replicas_max=2), work("c", 10, 1), work("b", 12, 100)]
    jobs += [work("d", 20, 1)]
    pace = replace(AT_ONCE, grace_s=5.0)
    result = simulate(site(devices=2), jobs, scripted(script), pace=pace)
    seen = of(result, "e")
    assert (seen.starts, seen.resizes, seen.evictions) == ((0.0, 20.0), 0, 0)
    assert seen.end_s == 120.0


@BOTH
def test_lost_node_sends_its_jobs_back_to_the_queue(decider: Decider) -> None:
    # the node is away from 30 to 50; nothing was saved: 100 s from 50
    changes = [NodeChange(30.0, "n0", "unknown", loses_jobs=True), NodeChange(50.0, "n0")]
    result = simulate(site(), [work("a", 0, 100)], decider, pace=AT_ONCE, changes=changes)
    seen = of(result, "a")
    assert (seen.starts, seen.end_s, seen.losses, seen.lost_s) == ((0.0, 50.0), 150.0, 1, 30.0)
    # one device over 150 s, less the 20 s that it was away
    assert totals(result).capacity_device_s == 130.0


def test_who_loses_a_second_node_waits_for_a_minute() -> None:
    # lost at 30, back at 31; lost at 40, back at 41, but the job not before 100: the cycle of 101
    changes = [NodeChange(s, "n0", "unknown", loses_jobs=True) for s in (30.0, 40.0)]
    changes += [NodeChange(s, "n0") for s in (31.0, 41.0)]
    pace = replace(AT_ONCE, wake_s=10.0)
    result = simulate(site(), [work("a", 0, 100)], RULES, pace=pace, changes=changes)
    assert of(result, "a").starts == (0.0, 31.0, 101.0)


@BOTH
def test_cordoned_node_keeps_what_runs_and_takes_nothing_new(decider: Decider) -> None:
    changes = [NodeChange(30.0, "n0", "cordoned"), NodeChange(500.0, "n0")]
    jobs = [work("a", 0, 100), work("b", 40, 10)]
    result = simulate(site(), jobs, decider, pace=AT_ONCE, changes=changes)
    assert of(result, "a").end_s == 100.0
    assert of(result, "b").starts == (500.0,)


@BOTH
def test_without_nodes_every_job_waits_and_it_comes_to_an_end(decider: Decider) -> None:
    result = simulate(site(nodes=0), [work("a", 0, 100)], decider)
    assert of(result, "a").state is End.WAITING
    assert totals(result).capacity_device_s == 0.0


@BOTH
def test_job_that_gets_nothing_done_runs_until_its_limit_or_for_ever(decider: Decider) -> None:
    slow = work("a", 0, 100, throughput={"k80": 1.0}, limit_s=1000)
    assert of(simulate(site(), [slow], decider), "a").state is End.TIMED_OUT
    ever = replace(slow, spec=replace(slow.spec, time_limit_s=math.inf))
    assert of(simulate(site(), [ever, work("b", 1, 1)], fifo()), "a").state is End.RUNNING


def test_shortest_limit_goes_first_and_passes_who_does_not_fit() -> None:
    # two devices: a holds one until 100; b wants both, d and c one each
    jobs = [work("a", 0, 100, limit_s=1e3), work("b", 1, 10, devices=2, limit_s=20.0)]
    jobs += [work("c", 2, 30, limit_s=50.0), work("d", 1, 30, limit_s=60.0)]
    result = simulate(site(devices=2), jobs, shortest_first(), pace=AT_ONCE)
    # d comes first and takes it until 31; then c until 61; b needs both, from 100
    starts = {job.uid: job.starts for job in result.jobs}
    assert starts == {"a": (0.0,), "b": (100.0,), "c": (31.0,), "d": (1.0,)}


def test_priority_goes_first_and_fifo_does_not_look_at_it() -> None:
    jobs = [work("a", 0, 100), work("b", 1, 10), work("c", 2, 10, priority=5)]
    plain = simulate(site(), jobs, fifo(), pace=AT_ONCE)
    assert (of(plain, "b").starts, of(plain, "c").starts) == ((100.0,), (110.0,))
    ranked = simulate(site(), jobs, priority_only(), pace=AT_ONCE)
    assert (of(ranked, "c").starts, of(ranked, "b").starts) == ((100.0,), (110.0,))


NEVER = {
    "more devices than a node has": {"devices": 5},
    "more replicas than there is room for": {"replicas": 5},
    "more cores than a node has": {"cpu": 10**6},
    "a flavor that is not there": {"flavors": ["k80"]},
    "more memory than a device has": {"gpu_memory_mib": 10**6, "milli": 500},
    "nothing, as it is held": {"hold": "on_hold"},
}


@pytest.mark.parametrize("baseline", [fifo, priority_only])
@pytest.mark.parametrize("asked", NEVER.values(), ids=NEVER)
def test_job_that_can_never_start_stops_nobody_behind_it(baseline, asked) -> None:
    jobs = [work("a", 0, 100, priority=9, **asked)]
    jobs += [work(f"b{k}", 1, 100) for k in range(5)]
    result = simulate(site(devices=4), jobs, baseline(), pace=AT_ONCE)
    assert (of(result, "a").state, of(result, "a").starts) == (End.WAITING, ())
    # four devices: four of them at once, the fifth when they end
    assert [of(result, f"b{k}").starts for k in range(5)] == [(1.0,)] * 4 + [(101.0,)]


def test_who_backs_off_is_passed_over_until_then() -> None:
    jobs = [work("a", 0, 10, not_before_s=50.0), work("b", 1, 100), work("c", 2, 10)]
    result = simulate(site(), jobs, fifo(), pace=replace(AT_ONCE, wake_s=1.0))
    # the only device is b's until 101; then a is ahead of c again
    starts = {job.uid: job.starts for job in result.jobs}
    assert starts == {"b": (1.0,), "a": (101.0,), "c": (111.0,)}


def test_who_waits_for_a_node_that_is_down_is_not_passed_over() -> None:
    """Two nodes of two devices, one down until 500; it wants two replicas of two."""
    changes = [NodeChange(0.0, "n0", "unknown"), NodeChange(500.0, "n0")]
    jobs = [work("a", 1, 100, devices=2, replicas=2), work("b", 2, 10)]
    result = simulate(site(nodes=2, devices=2), jobs, fifo(), pace=AT_ONCE, changes=changes)
    assert (of(result, "a").starts, of(result, "b").starts) == ((500.0,), (600.0,))


def test_profile_that_a_job_names_is_found_among_the_flavors() -> None:
    world = site(flavor="a100-mig-1g.10gb")
    result = simulate(world, [work("a", 0, 10, flavors=["1g.10gb"])], fifo(), pace=AT_ONCE)
    assert [span.flavor for span in result.spans] == ["a100-mig-1g.10gb"]


def test_first_of_the_queue_is_not_tried_again_before_anything_is_freed(monkeypatch) -> None:
    """A long queue must cost fifo no more than a short one: forty arrive, two are tried."""
    tried: list[str] = []
    start = Room.start

    def noted(room: Room, spec: JobSpec) -> Start | None:
        tried.append(spec.uid)
        return start(room, spec)

    monkeypatch.setattr(Room, "start", noted)
    jobs = [work("a", 0, 1000)] + [work(f"b{k:02d}", 1 + k, 10) for k in range(40)]
    simulate(site(), jobs, fifo(), pace=replace(AT_ONCE, until_s=999.0))
    assert tried == ["a", "b00"]


def test_jobs_that_still_run_are_cut_at_the_horizon() -> None:
    jobs = [work("a", 0, 100), work("b", 10, 50)]
    result = simulate(site(), jobs, fifo(), pace=replace(AT_ONCE, until_s=60.0))
    assert (of(result, "a").state, of(result, "b").state) == (End.RUNNING, End.WAITING)
    assert result.end_s == 60.0
    assert totals(result).allocated_device_s == 60.0


def many(seed: int, count: int = 60) -> list[SimJob]:
    rng = np.random.default_rng(seed)
    return [
        work(
            f"j{i:03d}",
            float(rng.integers(0, 2000)),
            float(rng.integers(1, 500)),
            devices=int(rng.integers(1, 4)),
            limit_s=600.0,
            checkpoint_every_s=float(rng.choice([0, 50])),
        )
        for i in range(count)
    ]


@BOTH
def test_every_job_ends_once_and_device_seconds_add_up(decider: Decider) -> None:
    changes = [NodeChange(700.0, "n1", "unknown", loses_jobs=True), NodeChange(900.0, "n1")]
    result = simulate(site(nodes=2, devices=4), many(1), decider, changes=changes)
    assert len(result.jobs) == 60
    assert all(job.state in {End.COMPLETED, End.TIMED_OUT} for job in result.jobs)
    ended = [span.uid for span in result.spans if span.final]
    assert sorted(ended) == [job.uid for job in result.jobs]
    seen = totals(result)
    held = sum(s.device_milli / 1000 * (s.end_s - s.start_s) for s in result.spans)
    assert seen.allocated_device_s == pytest.approx(held)
    assert seen.utilised_device_s + seen.lost_device_s == pytest.approx(held)
    assert seen.allocated_device_s <= seen.capacity_device_s


@BOTH
def test_same_jobs_in_any_order_give_the_same_bytes(decider: Decider) -> None:
    jobs = many(2, 40)
    first = simulate(site(nodes=2, devices=4), jobs, decider)
    shuffled = [jobs[i] for i in np.random.default_rng(0).permutation(len(jobs))]
    assert repr(simulate(site(nodes=2, devices=4), shuffled, decider)) == repr(first)


def test_snapshot_that_a_decider_keeps_does_not_change() -> None:
    kept: list[tuple[Snapshot, str]] = []
    simulate(
        site(devices=4),
        many(3, 20),
        fifo(),
        watch=lambda snapshot, _: kept.append((snapshot, repr(snapshot))),
    )
    assert len(kept) > 20
    assert all(repr(snapshot) == text for snapshot, text in kept)


WRONG = {
    "time runs backwards": work("a", -1.0, 10),
    "submitted at no time": work("a", math.nan, 10),
    "no work": work("a", 0, 0),
    "work is no number": work("a", 0, math.nan),
    "work without end": work("a", 0, math.inf),
    "negative throughput": work("a", 0, 10, throughput={"a100": -1.0}),
    "throughput is no number": work("a", 0, 10, throughput={"a100": math.nan}),
    "negative time limit": work("a", 0, 10, limit_s=-1.0),
    "no replica": work("a", 0, 10, replicas=0, replicas_max=1),
    "negative checkpoints": work("a", 0, 10, checkpoint_every_s=-1.0),
}


@pytest.mark.parametrize("job", WRONG.values(), ids=WRONG.keys())
def test_job_that_cannot_be_simulated_is_named(job: SimJob) -> None:
    with pytest.raises(InvalidSimulationError, match="'a'"):
        simulate(site(), [job], fifo())


def test_worlds_and_changes_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidSimulationError, match="twice"):
        simulate(site(), [work("a", 0, 1), work("a", 1, 1)], fifo())
    with pytest.raises(InvalidSimulationError, match="ghost"):
        simulate(site(), [], fifo(), changes=[NodeChange(1.0, "ghost")])
    with pytest.raises(InvalidSimulationError, match="n0"):
        simulate(site(), [], fifo(), changes=[NodeChange(math.nan, "n0")])
    with pytest.raises(InvalidSimulationError, match="cannot begin"):
        simulate(replace(site(), now_s=math.nan), [], fifo())
    with pytest.raises(InvalidSimulationError, match="nothing waiting"):
        simulate(replace(site(), pending=(work("a", 0, 1).spec,)), [], fifo())
    with pytest.raises(InvalidSimulationError, match="least_s"):
        Pace(least_s=math.nan)


PLANS = {
    "a start of a job that does not wait": plan([start("ghost", 0)]),
    "a start where nothing is free": plan([start("a", 0), start("b", 0)]),
    "a device that does not exist": plan([start("a", 7)]),
    "a device below the first": plan([start("a", -1)]),
    "a node below the first": plan([start("a", 0, node=-1)]),
    "a node that does not exist": plan([start("a", 0, node=2)]),
    "a device of another node": plan([start("a", 1, node=0)]),
    "an eviction of a job that does not run": plan(
        preempts=[Preempt("a", "b", EvictionCause.PREEMPTED)]
    ),
}


@pytest.mark.parametrize("wrong", PLANS.values(), ids=PLANS.keys())
def test_plan_that_cannot_be_carried_out_is_refused(wrong: Plan) -> None:
    with pytest.raises(InvalidPlanError):
        simulate(site(nodes=2), [work("a", 0, 1), work("b", 0, 1)], scripted({0.0: wrong}))


@pytest.mark.parametrize("target", [place(0, -1), place(-1), place(7), place(0, 7)])
def test_resize_to_what_is_not_there_is_refused(target: ReplicaPlacement) -> None:
    """It is told at 10 to go on elsewhere."""
    jobs = [work("a", 0, 100, replicas=1, replicas_max=2), work("b", 5, 10)]
    to = Resize("a", (target,), "a100")
    script = scripted({0.0: plan([start("a", 0)]), 10.0: plan(resizes=[to])})
    with pytest.raises(InvalidPlanError):
        simulate(site(), jobs, script, pace=replace(AT_ONCE, wake_s=5.0))


def test_jobs_that_evict_each_other_for_ever_are_stopped() -> None:
    def decider(snapshot: Snapshot, _: float) -> Plan:
        if snapshot.running:
            uid = snapshot.running[0].spec.uid
            other = snapshot.pending[0].uid
            return plan(preempts=[Preempt(uid, other, EvictionCause.PREEMPTED)])
        return plan([start(snapshot.pending[0].uid, 0)])

    jobs = [work("a", 0, 100), work("b", 0, 100)]
    with pytest.raises(EndlessSimulationError):
        simulate(site(), jobs, decider, pace=Pace(most_cycles=500))
