"""The probes: no session, no secrets, and not ready before everything is."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.test import Client

from portal import health
from portal.celery import WORKER_BEAT_KEY, note_worker_beat
from scheduler.loop import beat_key
from scheduler.models import StrategyAlarm
from telemetry.models import Cluster
from tests import factories


@pytest.fixture
def now_s(db: None) -> float:
    del db
    cache.clear()
    factories.cluster("demo")
    factories.cluster("off", enabled=False)
    return datetime.now(UTC).timestamp()


def ready() -> tuple[int, dict[str, Any]]:
    answer = Client().get("/readyz")
    return answer.status_code, answer.json()


def test_the_process_is_alive_without_asking_anybody() -> None:
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"alive")


def test_nothing_is_ready_before_the_first_cycle(now_s: float) -> None:
    del now_s
    status, report = ready()
    assert status == 503
    assert report["cycles"] == {"demo": None}
    assert report["problems"] == ["No worker has been heard of lately.", "demo: no cycle yet."]


def test_all_is_ready_once_worker_and_cycles_are_heard_of(now_s: float) -> None:
    note_worker_beat()
    cache.set(beat_key("demo"), now_s - 3, timeout=None)
    status, report = ready()
    assert (status, report["ready"]) == (200, True)
    assert report["database"] == report["broker"] == report["worker"] == "ok"
    assert 3 <= report["cycles"]["demo"] < 10


def test_an_old_cycle_and_a_silent_worker_are_named(now_s: float) -> None:
    cache.set(WORKER_BEAT_KEY, now_s - 45, timeout=None)
    cache.set(beat_key("demo"), now_s - 99, timeout=None)
    status, report = ready()
    assert (status, report["worker"]) == (503, "silent")
    assert report["problems"][1].startswith("demo: the last cycle is ")


def test_a_clock_that_stepped_back_is_no_alarm(now_s: float) -> None:
    note_worker_beat()
    cache.set(beat_key("demo"), now_s + 3600, timeout=None)
    assert ready()[1]["cycles"]["demo"] == 0.0


def test_a_broker_that_is_away_is_named_without_its_address(now_s: float, settings: Any) -> None:
    del now_s
    settings.REDIS_URL = "redis://:s3cret@127.0.0.1:1/0"
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["broker"] == "unavailable"
    assert b"s3cret" not in answer.content


def test_a_database_that_is_away_is_named(now_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    del now_s

    def away(**_arguments: object) -> None:
        raise DatabaseError("no route to host=secret")

    monkeypatch.setattr(health, "cluster_list", away)
    monkeypatch.setattr(connection, "close", lambda: None)
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()["database"]) == (503, "unavailable")
    assert b"secret" not in answer.content


def test_a_probe_takes_no_post() -> None:
    assert Client().post("/readyz").status_code == 405


def test_a_failing_strategy_is_told_and_makes_nothing_unready(now_s: float) -> None:
    at = datetime.fromtimestamp(now_s, UTC)
    StrategyAlarm.objects.create(
        cluster=Cluster.objects.get(slug="demo"),
        strategy="optimising",
        status="late",
        count=4,
        since=at,
        last_at=at,
    )
    _, report = ready()
    assert report["alarms"] == {"demo": {"status": "late", "count": 4}}
    assert not [text for text in report["problems"] if "optimising" in text]
