"""The Celery application and every schedule, in one place."""

import os
from typing import Any

from celery import Celery
from celery.signals import heartbeat_sent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

from django.conf import settings
from django.core.cache import cache
from django.utils import timezone

WORKER_BEAT_KEY = "worker-at"
WORKER_BEAT_KEEP_S = 60

app = Celery("kilter")
app.set_default()  # of every thread: a request's thread has no current application of its own
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_default_queue="default",
    task_queues={"cycle": {}, "default": {}},
    task_routes={
        "scheduler.tasks.run_cycle": {"queue": "cycle"},
        "scheduler.tasks.observe": {"queue": "cycle"},
    },
    task_time_limit=120,
    task_soft_time_limit=90,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": 300},
    timezone="UTC",
    beat_schedule={
        "cycles": {
            "task": "scheduler.tasks.pulse_cycles",
            "schedule": settings.CYCLE_TIMER_S,
            "options": {"expires": settings.CYCLE_TIMER_S},
        },
        "observe": {
            "task": "scheduler.tasks.pulse_observe",
            "schedule": 1.0,
            "options": {"expires": 1.0},
        },
        "sample": {
            "task": "telemetry.tasks.sample_all",
            "schedule": settings.SAMPLE_S,
            "options": {"expires": settings.SAMPLE_S},
        },
        "rollup": {
            "task": "telemetry.tasks.roll_up",
            "schedule": 60.0,
            "options": {"expires": 60.0},
        },
        "retention": {"task": "telemetry.tasks.retain", "schedule": 3600.0},
        "tidy": {"task": "scheduler.tasks.tidy", "schedule": 3600.0},
        "learn": {
            "task": "scheduler.tasks.learn",
            "schedule": 300.0,
            "options": {"expires": 300.0},
        },
        "demo": {
            "task": "scheduler.tasks.demo_arrivals",
            "schedule": 5.0,
            "options": {"expires": 5.0},
        },
    },
)
app.autodiscover_tasks(["telemetry", "scheduler"])


@heartbeat_sent.connect
def note_worker_beat(**_news: Any) -> None:
    """Note, every few seconds, that a worker is alive; `/readyz` reads it."""
    now_s = timezone.now().timestamp()  # noqa: TID251 - a worker is an outermost layer
    cache.set(WORKER_BEAT_KEY, now_s, timeout=WORKER_BEAT_KEEP_S)
