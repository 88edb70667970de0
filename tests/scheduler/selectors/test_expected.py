"""How well expected starts have held, out of rows as they are kept."""

from datetime import timedelta

import pytest

from scheduler.models import ExpectedStart
from scheduler.selectors.expected import SCORE_COUNT, ExpectedScore, expected_score
from telemetry.models import Cluster
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    return factories.cluster("c")


def told(cluster: Cluster, waits_s: list[float], *, started: bool = True) -> None:
    """Tell a job a P50 of 100 s and a P90 of 200 s for each of some waits in truth."""
    tenant = factories.tenant()
    for waited_s in waits_s:
        ExpectedStart.objects.create(
            job=factories.job(tenant, on=cluster),
            cluster=cluster,
            given_at=factories.NOW,
            planned_p50_s=1.0,
            planned_p90_s=1.0,
            told_p50_s=100.0,
            told_p90_s=200.0,
            gang=False,
            over_at=factories.NOW + timedelta(seconds=waited_s),
            started=started,
        )


def test_a_start_by_p50_is_one_by_p90_too(cluster: Cluster) -> None:
    """Of 20 jobs 8 waited 100 s, 10 waited 200 s and 2 longer: 8 and 18 of 20."""
    told(cluster, [100.0] * 8 + [200.0] * 10 + [201.0] * 2)
    assert expected_score(cluster=cluster) == ExpectedScore(20, 40.0, 90.0)


def test_few_waits_those_given_up_and_those_elsewhere_say_nothing(cluster: Cluster) -> None:
    told(cluster, [1.0] * 19)
    told(cluster, [999.0] * 5, started=False)
    told(factories.cluster("d"), [1.0] * 5)
    assert expected_score(cluster=cluster) is None


def test_only_the_last_count(cluster: Cluster) -> None:
    told(cluster, [1.0] * 5)
    told(cluster, [300.0] * SCORE_COUNT)
    assert expected_score(cluster=cluster) == ExpectedScore(SCORE_COUNT, 0.0, 0.0)
