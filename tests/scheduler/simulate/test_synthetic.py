import numpy as np
import pytest

from scheduler.simulate.errors import InvalidSimulationError
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


@pytest.mark.parametrize(
    "wrong", [{"nodes": 0}, {"tenants": -1}, {"days": float("nan")}, {"load": float("inf")}]
)
def test_site_that_cannot_be_is_refused(wrong) -> None:
    with pytest.raises(InvalidSimulationError):
        synthetic(Site(**wrong), np.random.default_rng(0))
