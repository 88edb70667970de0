"""Celery's way in: each task reads the clock, wires the ports and makes one call."""

import logging
from datetime import timedelta
from time import perf_counter

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from scheduler import demo, loop, shadows
from scheduler.events import CYCLE_TASK
from scheduler.execute.base import ExecutorError
from scheduler.models import Placement
from scheduler.ports import cluster_executor
from scheduler.services import retention
from scheduler.services.learning import throughputs_learn
from telemetry.choices import ClusterKind
from telemetry.models import Cluster

OBSERVE_EXPIRES_S = 1.0
log = logging.getLogger(__name__)


def _ports(cluster: Cluster) -> loop.Ports:
    return loop.Ports(
        executor=cluster_executor(cluster), node_lost_after_s=settings.NODE_LOST_AFTER_S
    )


@shared_task(name=CYCLE_TASK)
def run_cycle(cluster_slug: str, woken: bool = True) -> None:
    """Run one cycle of a cluster, and its shadow once that is over."""
    cluster = Cluster.objects.filter(slug=cluster_slug, enabled=True).first()
    if cluster is None:
        return
    report = loop.run_cycle(
        cluster,
        _ports(cluster),
        clock=timezone.now,  # noqa: TID251 - a task is the outermost layer
        woken=woken,
    )
    if report.decided and shadows.wanted(report.decided):
        shadows.run(report.decided, clock=perf_counter)


@shared_task(name="scheduler.tasks.pulse_cycles")
def pulse_cycles() -> None:
    """Ask for a cycle of every cluster, in case a wake-up was lost."""
    for slug in Cluster.objects.filter(enabled=True).values_list("slug", flat=True):
        run_cycle.apply_async((slug, False), expires=settings.CYCLE_TIMER_S)


@shared_task(name="scheduler.tasks.observe")
def observe(cluster_slug: str) -> None:
    """Look at what runs on a cluster."""
    cluster = Cluster.objects.filter(slug=cluster_slug).first()
    if cluster is not None:
        loop.look(
            cluster,
            _ports(cluster),
            clock=timezone.now,  # noqa: TID251 - a task is the outermost layer
        )


@shared_task(name="scheduler.tasks.pulse_observe")
def pulse_observe() -> None:
    """Ask for a look at every cluster where something runs, switched off or not."""
    busy = Placement.objects.filter(released_at__isnull=True).values("cluster_id")
    for slug in Cluster.objects.filter(pk__in=busy).values_list("slug", flat=True):
        observe.apply_async((slug,), expires=OBSERVE_EXPIRES_S)


@shared_task(name="scheduler.tasks.demo_arrivals")
def demo_arrivals() -> None:
    """Let invented jobs arrive on simulated fleets."""
    now = timezone.now()  # noqa: TID251 - a task is the outermost layer
    for cluster in Cluster.objects.filter(enabled=True, kind=ClusterKind.SIMULATED):
        demo.arrive(cluster=cluster, now=now)


@shared_task(name="scheduler.tasks.learn")
def learn() -> None:
    """Learn from jobs that ended how fast classes run on flavors."""
    throughputs_learn(now=timezone.now())  # noqa: TID251 - a task is the outermost layer


@shared_task(name="scheduler.tasks.tidy")
def tidy() -> None:
    """Drop cycles, decisions, logs and work folders that nobody will ask for any more."""
    now = timezone.now()  # noqa: TID251 - a task is the outermost layer
    retention.tidy(before=now - timedelta(days=settings.SAMPLE_KEEP_DAYS))
    before = now - timedelta(days=settings.JOB_KEEP_DAYS)
    for cluster in Cluster.objects.all():
        try:
            retention.purge(cluster_executor(cluster), before=before)
        except ExecutorError:  # the other clusters must not wait for this one
            log.exception("what jobs left on %s could not be removed", cluster.slug)
