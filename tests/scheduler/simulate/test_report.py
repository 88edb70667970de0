import csv
import io
import math
from dataclasses import replace

import pytest

from scheduler.core.snapshot import TenantNode
from scheduler.simulate.baselines import fifo, priority_only
from scheduler.simulate.jobs import NodeChange
from scheduler.simulate.metrics import demand_shares
from scheduler.simulate.pace import Pace
from scheduler.simulate.report import JOB_COLUMNS, fair_shares_kept, figures, job_rows
from scheduler.simulate.run import simulate
from tests.scheduler.simulate.build import site, work

AT_ONCE = Pace(least_s=0.0, wake_s=0.0)
EQUAL = [TenantNode(slug, None, 1.0, {}) for slug in ("a", "b")]


def one_after_the_other():
    """One device: a holds it 0..100 while b waits, b holds it 100..200."""
    jobs = [work("j1", 0, 100, tenant="a"), work("j2", 0, 100, tenant="b")]
    return simulate(site(tenants=["a", "b"]), jobs, fifo(), pace=AT_ONCE)


def test_figures_are_those_worked_out_by_hand() -> None:
    told = figures(one_after_the_other(), EQUAL)
    assert told["jobs"]["completed"] == 2
    assert (told["wait_s"]["mean"], told["wait_s"]["max"]) == (50.0, 100.0)
    assert told["completion_s"]["mean"] == 150.0
    assert (told["allocated_pct"], told["utilised_pct"]) == (100.0, 100.0)
    assert told["tenants"]["b"] == {
        "jobs": 1,
        "wait_s": 100.0,
        "waited_s": 100.0,
        "device_h": round(100 / 3600, 3),
    }


def test_rates_may_be_of_a_part_of_the_run_and_waits_are_of_all_of_it() -> None:
    # until 150 the device is held all the time, a has its 100 s and b 50 of its 100
    told = figures(one_after_the_other(), EQUAL, until_s=150.0)
    assert (told["allocated_pct"], told["utilised_pct"]) == (100.0, 100.0)
    assert told["tenants"]["b"] == {
        "jobs": 1,
        "wait_s": 100.0,
        "waited_s": 100.0,
        "device_h": round(50 / 3600, 3),
    }
    assert (told["wait_s"]["max"], told["jobs"]["completed"]) == (100.0, 2)
    assert (told["rates_days"], told["days"]) == (round(150 / 86400, 5), round(200 / 86400, 5))


def test_rates_of_a_time_longer_than_the_run_count_what_stood_idle_behind_it() -> None:
    told = figures(one_after_the_other(), EQUAL, until_s=400.0)
    assert (told["allocated_pct"], told["utilised_pct"]) == (50.0, 50.0)


def test_work_that_is_not_saved_counts_as_used_while_its_job_still_runs() -> None:
    # nothing is lost at 60: the job has held the device for 60 s, and worked for 50 of them
    pace = replace(AT_ONCE, until_s=60.0)
    result = simulate(site(), [work("j", 0, 100, startup_s=10.0)], fifo(), pace=pace)
    told = figures(result, EQUAL)
    assert (told["allocated_pct"], told["utilised_pct"]) == (100.0, round(100 * 50 / 60, 2))
    # of a run that goes on it is the same at that moment; until 8 it was only starting up
    whole = simulate(site(), [work("j", 0, 100, startup_s=10.0)], fifo(), pace=AT_ONCE)
    assert figures(whole, EQUAL, until_s=60.0)["utilised_pct"] == told["utilised_pct"]
    assert figures(whole, EQUAL, until_s=8.0)["utilised_pct"] == 0.0


def test_job_that_gets_nothing_done_holds_its_device_and_does_not_use_it() -> None:
    # it is measured on another flavor only, and holds the device until its limit of 1000 s
    slow = work("j", 0, 100, throughput={"k80": 1.0}, limit_s=1000, checkpoint_every_s=60.0)
    told = figures(simulate(site(), [slow], fifo(), pace=AT_ONCE), EQUAL)
    assert (told["allocated_pct"], told["utilised_pct"]) == (100.0, 0.0)
    assert (told["lost_device_h"], told["jobs"]["timed_out"]) == (0.0, 1)


def test_waits_of_jobs_that_ran_already_are_left_out() -> None:
    told = figures(one_after_the_other(), EQUAL, begun={"j1"})
    assert told["wait_s"]["mean"] == 100.0


def test_one_of_two_equal_tenants_that_gets_all_is_half_fair() -> None:
    # while both ask (0..100), each is owed half the device: a has all that it is owed, b nothing:
    # (1 + 0)^2 / (2 * 1) = 0.5
    assert fair_shares_kept(one_after_the_other(), EQUAL) == pytest.approx(0.5)


def test_tenants_that_get_their_shares_are_fair() -> None:
    # two devices, four jobs at once: each tenant holds one device all the time
    jobs = [work(f"j{i}", 0, 100, tenant=tenant) for i, tenant in enumerate(["a", "b", "a", "b"])]
    result = simulate(site(devices=2, tenants=["a", "b"]), jobs, fifo(), pace=AT_ONCE)
    assert fair_shares_kept(result, EQUAL) == pytest.approx(1.0)


def test_where_there_always_was_enough_nothing_is_said_of_fairness() -> None:
    result = simulate(site(), [work("j", 0, 10)], fifo(), pace=AT_ONCE)
    assert fair_shares_kept(result, EQUAL) is None
    assert fair_shares_kept(simulate(site(), [], fifo()), EQUAL) is None


def shut_out(until_s: float = math.inf):
    """Four devices: a holds all of them 0..1000, from 10 on four jobs of b wait for one each."""
    jobs = [work("a0", 0, 1000, tenant="a", devices=4)]
    jobs += [work(f"b{k}", 10, 100, tenant="b") for k in range(4)]
    pace = replace(AT_ONCE, until_s=until_s)
    return simulate(site(devices=4, tenants=["a", "b"]), jobs, fifo(), pace=pace)


def test_who_never_starts_in_a_window_that_stops_is_owed_as_much_as_in_one_that_goes_on() -> None:
    # from 10 until 500 each is owed two of four devices: a holds more, b none: (1 + 0)^2 / (2 * 1)
    told = figures(shut_out(until_s=500.0), EQUAL)
    assert told["jain"] == pytest.approx(0.5)
    assert told["jain"] == figures(shut_out(), EQUAL, until_s=500.0)["jain"]


def test_waits_of_jobs_that_never_started_count_up_to_the_end() -> None:
    # a waited 0 s, the four of b 490 s each until 500, and they will wait longer
    told = figures(shut_out(until_s=500.0), EQUAL)
    assert (told["unstarted"], told["jobs"]["waiting"]) == (4, 4)
    assert (told["wait_s"]["mean"], told["wait_s"]["max"]) == (0.0, 0.0)  # of those that started
    assert (told["waited_s"]["mean"], told["waited_s"]["p50"]) == (392.0, 490.0)  # 4 * 490 / 5
    assert (told["tenants"]["b"]["wait_s"], told["tenants"]["b"]["waited_s"]) == (None, 490.0)
    # none has ended: a was there for 500 s, b for 490 s each
    assert (told["completion_s"]["mean"], told["lasted_s"]["mean"]) == (None, 492.0)


def test_where_all_have_ended_what_was_waited_is_the_wait() -> None:
    told = figures(shut_out(), EQUAL)
    assert told["unstarted"] == 0
    assert (told["waited_s"], told["lasted_s"]) == (told["wait_s"], told["completion_s"])
    assert told["wait_s"]["max"] == 990.0


def test_job_that_was_evicted_and_waits_at_the_end_is_owed_what_it_asks_for() -> None:
    """Two devices, lost at 100 with both jobs of a; from 200 on one job of b holds both."""
    jobs = [work(f"a{k}", 0, 5000, tenant="a") for k in range(2)]
    jobs += [work("b", 50, 5000, tenant="b", devices=2, priority=9)]
    changes = [
        NodeChange(100.0, "n0", note="unknown", loses_jobs=True),
        NodeChange(200.0, "n0"),
    ]
    world, pace = site(devices=2, tenants=["a", "b"]), replace(AT_ONCE, until_s=500.0)
    result = simulate(world, jobs, priority_only(), pace=pace, changes=changes)
    assert [job.state.value for job in result.jobs] == ["waiting", "waiting", "running"]
    at_s, _, held, asked = demand_shares(result, 100.0)
    assert at_s.tolist() == [0.0, 100.0, 200.0, 300.0, 400.0]
    assert held.tolist() == [[2, 0], [0, 0], [0, 2], [0, 2], [0, 2]]
    assert asked.tolist() == [[2, 1], [2, 2], [2, 2], [2, 2], [2, 2]]  # b came in the middle


def test_rows_of_jobs_that_never_started_say_how_long_they_waited() -> None:
    rows = {row["uid"]: row for row in job_rows("fifo", shut_out(until_s=500.0))}
    assert (rows["b0"]["wait_s"], rows["b0"]["waited_s"]) == (None, 490.0)
    assert (rows["a0"]["completion_s"], rows["a0"]["lasted_s"]) == (None, 500.0)


def test_rows_fit_their_columns() -> None:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, JOB_COLUMNS)
    writer.writerows(job_rows("fifo", one_after_the_other()))
    assert len(stream.getvalue().splitlines()) == 2
