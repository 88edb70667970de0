"""Readings as collectors would give them, and what becomes of them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any

import pytest

from telemetry import events, services
from telemetry.models import Cluster
from telemetry.sense.base import DeviceReading, NodeReading
from telemetry.services import IngestReport
from tests.factories import NOW

LATER = NOW + timedelta(seconds=5)
JOB = "6f1c1d0e-6d3c-4a52-9b3b-0d7f1f6f3a10"

OnCommit = Callable[..., AbstractContextManager[list[Callable[[], None]]]]


def gpu(uid: str = "GPU-0", **values: Any) -> DeviceReading:
    known: dict[str, Any] = {
        "uid": uid,
        "index": 0,
        "vendor": "nvidia",
        "model": "NVIDIA A100-SXM4-80GB",
        "memory_mib": 81_920,
        "utilised_frac": 0.5,
        "memory_used_mib": 1024,
        "power_w": 300.0,
        "temperature_c": 60.0,
    }
    return DeviceReading(**{**known, **values})


def machine(name: str = "n1", *devices: DeviceReading, **values: Any) -> NodeReading:
    known: dict[str, Any] = {
        "cpu_milli": 8000,
        "memory_mib": 16_384,
        "cpu_utilised_frac": 0.25,
        "memory_used_mib": 4096,
    }
    return NodeReading(name=name, devices=devices, **{**known, **values})


def take(cluster: Cluster, *readings: NodeReading, now: datetime = NOW) -> IngestReport:
    return services.ingest(cluster=cluster, readings=readings, now=now)


def heard(monkeypatch: pytest.MonkeyPatch, topic: events.Topic[Any]) -> list[Any]:
    news: list[Any] = []
    monkeypatch.setattr(topic, "_listeners", [])
    topic.subscribe(news.append)
    return news


def fleet(nodes: int, devices: int) -> list[NodeReading]:
    return [
        machine(f"n{n}", *(gpu(f"GPU-{n}-{index}", index=index) for index in range(devices)))
        for n in range(nodes)
    ]
