"""Wires a cluster to its executor from the settings."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from scheduler.execute.base import Executor
from scheduler.execute.registry import executor_for
from telemetry.choices import ClusterKind
from telemetry.models import Cluster


class ScaledClock:
    """Simulated epoch seconds from real ones, running `scale` times as fast since 2020.

    A pure function of the real clock, so that every process sees the same simulated time.
    """

    START_S = 1_577_836_800.0

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, real_s: float) -> float:
        return self.START_S + (real_s - self.START_S) * self.scale


@lru_cache(maxsize=64)
def _clock(scale: float) -> ScaledClock:
    return ScaledClock(scale)


def cluster_executor(cluster: Cluster) -> Executor:
    """Return the executor of a cluster."""
    return executor_for(cluster.kind, cluster.slug, _options(cluster))


def _options(cluster: Cluster) -> dict[str, Any]:
    folder = Path(settings.DATA) / "jobs" / cluster.slug
    if cluster.kind == ClusterKind.SIMULATED:
        return {"folder": folder, "clock": _clock(cluster.clock_scale)}
    options: dict[str, Any] = {
        "folder": folder,
        "log_cap_bytes": settings.LOG_CAP_MIB * 1024 * 1024,
        "hidden": tuple(settings.PRIVATE_FOLDERS),
    }
    if settings.LOCAL_RUN_AS:
        options["run_as"] = settings.LOCAL_RUN_AS
    return options
