"""Work on a timer; the schedules stand in `portal.celery`."""

import logging
from datetime import UTC, datetime

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded

from telemetry import selectors, services

logger = logging.getLogger(__name__)


def _now() -> datetime:
    return datetime.now(tz=UTC)  # noqa: TID251 - a task is the outermost layer


@shared_task(soft_time_limit=60, time_limit=90)
def sample_all() -> None:
    """Look at every enabled cluster once."""
    services.samples_partition(day=_now().date())
    for cluster in selectors.cluster_list(enabled=True):
        try:
            services.sample_cluster(cluster=cluster, now=_now())
        except SoftTimeLimitExceeded:
            raise
        except Exception:  # one cluster's trouble must not blind us to the others
            logger.exception("sample_failed cluster=%s", cluster.slug)


@shared_task(soft_time_limit=60, time_limit=90)
def roll_up() -> None:
    """Sum up what is over."""
    services.roll_up(now=_now())


@shared_task(soft_time_limit=60, time_limit=90)
def retain() -> None:
    """Make partitions for the days ahead and drop what is old."""
    now = _now()
    services.samples_partition(day=now.date())
    services.retain(now=now)
