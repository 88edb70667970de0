import numpy as np
import pytest

from scheduler.simulate.baselines import fifo
from scheduler.simulate.metrics import Steps, demand_shares, totals
from scheduler.simulate.run import Pace, simulate
from tests.scheduler.simulate.build import site, work

AT_ONCE = Pace(least_s=0.0, wake_s=0.0)


def test_steps_are_zero_before_the_first_and_hold_until_the_next() -> None:
    steps = Steps(np.array([10.0, 20.0]), np.array([3.0, 1.0]))
    assert steps.at(np.array([0.0, 10.0, 19.0, 20.0, 99.0])).tolist() == [0, 3, 3, 1, 1]
    assert steps.integral(0.0, 30.0) == 40.0  # 10 * 3 + 10 * 1
    assert steps.integral(15.0, 18.0) == 9.0


def test_tenant_shares_are_the_mean_devices_of_each_step() -> None:
    # a holds one device 0..90, b two devices 30..60
    jobs = [work("j1", 0, 90, tenant="a"), work("j2", 30, 30, tenant="b", devices=2)]
    result = simulate(site(devices=3, tenants=["a", "b"]), jobs, fifo(), pace=AT_ONCE)
    at_s, tenants, means, _ = demand_shares(result, 60.0)
    assert at_s.tolist() == [0.0, 60.0]
    assert tenants == ("a", "b")
    assert means.tolist() == [[1.0, 1.0], [0.5, 0.0]]  # 60/60, 2*30/60; 30/60, 0


def test_shares_of_devices_add_up_exactly() -> None:
    jobs = [work(f"j{i}", 0, 30, milli=100, gpu_memory_mib=1) for i in range(10)]
    seen = totals(simulate(site(), jobs, fifo(), pace=AT_ONCE))
    assert seen.allocated_device_s == pytest.approx(30.0)
    assert seen.idle_while_waiting_device_s == 0.0


def test_device_stands_idle_for_nobody_where_only_jobs_without_devices_wait() -> None:
    """One device is free from 100 on; the job that waits wants more cores than there are."""
    jobs = [work("j", 0, 100), work("c", 5, 100, devices=0, cpu=10**6)]
    pace = Pace(least_s=0.0, wake_s=0.0, until_s=1000.0)
    seen = totals(simulate(site(), jobs, fifo(), pace=pace))
    assert (seen.allocated_device_s, seen.idle_while_waiting_device_s) == (100.0, 0.0)


def test_device_stands_idle_for_a_job_that_never_starts() -> None:
    # one of two is free from 100 on, while another job wants three until the end, 1000
    jobs = [work("j", 0, 100), work("d", 5, 100, devices=3)]
    pace = Pace(least_s=0.0, wake_s=0.0, until_s=1000.0)
    seen = totals(simulate(site(devices=2), jobs, fifo(), pace=pace))
    assert seen.idle_while_waiting_device_s == 95 + 2 * 900  # one until 100, both after that


def test_nothing_at_all_is_no_error() -> None:
    seen = totals(simulate(site(), [], fifo()))
    assert (seen.capacity_device_s, seen.allocated_device_s) == (0.0, 0.0)
