from dataclasses import replace

import numpy as np
import pytest

from scheduler.core.policy import Policy
from scheduler.simulate.decider import by_policy
from scheduler.simulate.errors import InvalidSimulationError
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.metrics import held_devices
from scheduler.simulate.run import simulate
from scheduler.simulate.synthetic import Site, synthetic


def test_same_seed_same_trace() -> None:
    first, second = (synthetic(Site(days=1.0), np.random.default_rng(5)) for _ in range(2))
    assert first.jobs == second.jobs
    assert synthetic(Site(days=1.0), np.random.default_rng(6)).jobs != first.jobs


def test_what_is_asked_for_is_near_the_load() -> None:
    # four nodes of eight devices for sixty days, half of it asked for; the tail is long
    site = Site(nodes=4, tenants=4, days=60.0, load=0.5)
    trace = synthetic(site, np.random.default_rng(1))
    asked = sum(job.work * job.spec.shape.devices for job in trace.jobs)
    assert asked / (32 * 60 * 86400) == pytest.approx(0.5, rel=0.3)
    assert all(job.spec.time_limit_s >= job.work for job in trace.jobs)
    assert max(job.spec.submitted_s for job in trace.jobs) < 60 * 86400


QUOTAS = {
    "as many as teams": (1, 4, [2000] * 4, [32_000] * 4),
    "one left over": (1, 3, [3000, 3000, 2000], [43_000, 43_000, 42_000]),
    "four left over": (8, 6, [11_000] * 4 + [10_000] * 2, [171_000] * 4 + [170_000] * 2),
    "fewer than teams": (1, 9, [889] * 8 + [888], [15_000] * 2 + [14_000] * 7),
}
"""Nodes of 8 devices and 128 cores, teams, what each owns: 8 = 3 + 3 + 2; 64 = 4 * 11 + 2 * 10."""


@pytest.mark.parametrize(("nodes", "teams", "devices", "cores"), QUOTAS.values(), ids=QUOTAS)
def test_quotas_add_up_to_all_that_there_is(nodes: int, teams: int, devices, cores) -> None:
    site = synthetic(Site(nodes, teams, 0.1), np.random.default_rng(0)).world
    own = [tenant.quotas for tenant in site.tenants[1:]]
    assert [lines["a100-80gb"].nominal for lines in own] == devices
    assert [lines["cpu"].nominal for lines in own] == cores
    assert (sum(devices), sum(cores)) == (8000 * nodes, 128_000 * nodes)


def test_rules_hold_every_device_of_an_invented_site_that_its_teams_cannot_share_evenly() -> None:
    """64 devices among six teams, and one job for each: quota used to be one device short."""
    trace = synthetic(Site(8, 6, 0.1), np.random.default_rng(0))
    spec = trace.jobs[0].spec
    shape = replace(spec.shape, devices=1, cpu_milli=4000, memory_mib=32_768)
    jobs = [
        SimJob(replace(spec, uid=f"j{k}", tenant=f"team-{k % 6:02d}", shape=shape), 60.0)
        for k in range(64)
    ]
    seen = simulate(trace.world, jobs, by_policy(Policy(strategy="rules")))
    assert held_devices(seen.spans).value.max() == 64.0


@pytest.mark.parametrize(
    "wrong", [{"nodes": 0}, {"tenants": -1}, {"days": float("nan")}, {"load": float("inf")}]
)
def test_site_that_cannot_be_is_refused(wrong) -> None:
    with pytest.raises(InvalidSimulationError):
        synthetic(Site(**wrong), np.random.default_rng(0))
