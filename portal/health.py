"""Probes for machines: is the process alive, and would a request succeed?

They answer without a session and say nothing but whether each part answers, how old the last cycle
of each cluster is, and how often the rules had to answer for its strategy.
"""

import logging
from http import HTTPStatus
from typing import Any

import redis
from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.celery import WORKER_BEAT_KEY
from scheduler.loop import beat_key
from scheduler.selectors.policies import policy_budgets
from scheduler.selectors.strategies import strategy_alarms
from telemetry.selectors import cluster_list

logger = logging.getLogger(__name__)

OLDEST_S = 30.0
ASK_S = 2.0
OK = "ok"


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Answer that this process is alive; asks nobody else."""
    return HttpResponse("alive", content_type="text/plain; charset=utf-8")


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:  # noqa: ARG001
    """Answer 200 where database, broker and worker answer and every cluster's cycle is recent.

    A failing strategy is told, too; it makes nothing unready, for the rules answer for it.
    """
    now_s = timezone.now().timestamp()  # noqa: TID251 - the outermost layer
    report: dict[str, Any] = {"database": OK, "broker": OK, "worker": OK}
    report |= {"cycles": {}, "alarms": {}}
    limits = _cycle_limits(report)
    if _broker_answers(report):
        _look_at_worker(report, now_s)
        _look_at_cycles(report, limits, now_s)
    report["ready"] = "problems" not in report
    status = HTTPStatus.OK if report["ready"] else HTTPStatus.SERVICE_UNAVAILABLE
    response = JsonResponse(report, status=status)
    response["Cache-Control"] = "no-store"
    return response


def _problem(report: dict[str, Any], text: str) -> None:
    report.setdefault("problems", []).append(text)


def _cycle_limits(report: dict[str, Any]) -> dict[str, float]:
    """Return cluster -> seconds that its last cycle may be ago, and so ask the database."""
    try:
        slugs = list(cluster_list(enabled=True).values_list("slug", flat=True))
        budgets = policy_budgets()
        report["alarms"] = {
            alarm.cluster.slug: {"status": alarm.status, "count": alarm.count}
            for alarm in strategy_alarms()
        }
    except DatabaseError as exc:
        connection.close()
        logger.warning("readyz database error=%s", exc)
        report["database"] = "unavailable"
        _problem(report, "The database does not answer.")
        return {}
    wait_s = max(OLDEST_S, 3 * settings.CYCLE_TIMER_S)
    return {slug: wait_s + budgets.get(slug, 0.0) for slug in slugs}


def _broker_answers(report: dict[str, Any]) -> bool:
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=ASK_S, socket_connect_timeout=ASK_S
    )
    try:
        client.ping()
    except redis.RedisError as exc:
        logger.warning("readyz broker error=%s", exc)
        report |= {"broker": "unavailable", "worker": "unknown"}
        _problem(report, "The broker does not answer.")
        return False
    finally:
        client.close()
    return True


def _look_at_worker(report: dict[str, Any], now_s: float) -> None:
    seen_s = cache.get(WORKER_BEAT_KEY)
    if seen_s is None or now_s - seen_s > OLDEST_S:
        report["worker"] = "silent"
        _problem(report, "No worker has been heard of lately.")


def _look_at_cycles(report: dict[str, Any], limits: dict[str, float], now_s: float) -> None:
    beats = cache.get_many([beat_key(slug) for slug in limits])
    for slug, limit_s in limits.items():
        at_s = beats.get(beat_key(slug))
        age_s = None if at_s is None else round(max(0.0, now_s - at_s), 1)
        report["cycles"][slug] = age_s
        if age_s is None:
            _problem(report, f"{slug}: no cycle yet.")
        elif age_s > limit_s:
            _problem(report, f"{slug}: the last cycle is {age_s:.0f} s ago.")
