"""This machine as a cluster of one node: CPU and memory by psutil, NVIDIA devices by NVML."""

import os
import platform
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from telemetry import flavors
from telemetry.sense import cgroup, nvml
from telemetry.sense.base import CollectorUnavailableError, NodeReading

MIB: Final = 1024 * 1024
ARM_CORES: Final = {
    ("0x41", "0xd0c"): "Neoverse-N1",
    ("0x41", "0xd4f"): "Neoverse-V2",
    ("0x48", "0xd01"): "Kunpeng-920",
}
"""(implementer, part) of /proc/cpuinfo -> name; Arm processors have no "model name" there."""


@dataclass(frozen=True, slots=True)
class Options:
    """What may be set for the local cluster.

    Attributes:
        name: of the node; "" = the host's name.
        reserve_cpu_milli: kept for the portal and the system, not offered to jobs.
        reserve_memory_mib: likewise.
    """

    name: str = ""
    reserve_cpu_milli: int = 0
    reserve_memory_mib: int = 0

    @classmethod
    def read(cls, options: Mapping[str, object]) -> "Options":
        """Return the options.

        Raises:
            ValueError: an option is unknown, of another type, or negative.
        """
        known = {"name": str, "reserve_cpu_milli": int, "reserve_memory_mib": int}
        for key, value in options.items():
            wanted = known.get(key)
            if wanted is None:
                raise ValueError(f"unknown option {key!r}; known: {', '.join(known)}")
            if type(value) is not wanted or (isinstance(value, int) and value < 0):
                raise ValueError(f"option {key} is {value!r}, not a {wanted.__name__} >= 0")
        return cls(**options)  # type: ignore[arg-type]  # checked just above


class HostCollector:
    """Reads this machine; holds the last CPU times, so that no call waits for a second look."""

    def __init__(self, options: Options, devices: nvml.NvmlReader, root: Path = Path("/")) -> None:
        self._options = options
        self._devices = devices
        self._root = root
        self._name = options.name or hostname()
        self._labels = _labels(root)
        self._last_cpu: tuple[float, float] | None = None

    def collect(self, /, *, now_s: float) -> Sequence[NodeReading]:  # noqa: ARG002 the contract's
        """Return the one node. CPU utilisation is that since the last call, None at the first.

        Raises:
            CollectorUnavailableError: psutil cannot read the machine.
        """
        import psutil  # noqa: PLC0415 only the function that asks a vendor imports its client

        try:
            memory, times = psutil.virtual_memory(), psutil.cpu_times()
        except (OSError, RuntimeError) as exc:
            raise CollectorUnavailableError(f"psutil cannot read this machine: {exc}") from exc
        devices, note = self._devices.read()
        limits = cgroup.read_limits(self._root)
        total, used = int(memory.total), int(memory.total - memory.available)
        if limits.memory_bytes is not None and limits.memory_bytes < total:
            total = limits.memory_bytes
            used = used if limits.memory_used_bytes is None else limits.memory_used_bytes
        reading = NodeReading(
            name=self._name,
            cpu_milli=max(_usable_cpu_milli(limits) - self._options.reserve_cpu_milli, 0),
            memory_mib=max(total // MIB - self._options.reserve_memory_mib, 0),
            cpu_utilised_frac=self._utilised(*_busy_and_idle(times)),
            memory_used_mib=used // MIB,
            devices=devices,
            labels=self._labels,
            notes={"nvml": note} if note else {},
        )
        return (reading,)

    def _utilised(self, busy_s: float, idle_s: float) -> float | None:
        last, self._last_cpu = self._last_cpu, (busy_s, idle_s)
        if last is None:
            return None
        busy, idle = max(busy_s - last[0], 0.0), max(idle_s - last[1], 0.0)
        return busy / (busy + idle) if busy + idle > 0 else None


def build(cluster_slug: str, options: Mapping[str, object]) -> HostCollector:  # noqa: ARG001
    """Return a collector for this machine; see `Options` for what may be set.

    Raises:
        ValueError: an option is unknown or wrong.
    """
    chosen = Options.read(options)
    return HostCollector(chosen, nvml.NvmlReader(chosen.name or hostname()))


def hostname() -> str:
    """Return this machine's name, `localhost` where it has none."""
    return socket.gethostname() or "localhost"


def _usable_cpu_milli(limits: cgroup.Limits) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    milli = (cores or 1) * 1000
    return milli if limits.cpu_milli is None else min(milli, limits.cpu_milli)


def _busy_and_idle(times: object) -> tuple[float, float]:
    """Return busy and idle seconds; guest time is part of user time already."""
    parts = {name: float(getattr(times, name)) for name in getattr(times, "_fields", ())}
    idle = parts.pop("idle", 0.0) + parts.pop("iowait", 0.0)
    parts.pop("guest", None)
    parts.pop("guest_nice", None)
    return sum(parts.values()), idle


def _labels(root: Path) -> dict[str, str]:
    labels = {"kilter/arch": platform.machine(), "kilter/os": platform.system().lower()}
    model = cpu_model(root)
    if model:
        labels["kilter/cpu-model"] = model
        labels["kilter/cpu-flavor"] = flavors.flavor_slug("cpu", model)
    return labels


def cpu_model(root: Path = Path("/")) -> str:
    """Return the processor's name as the system gives it, "" where it gives none."""
    try:
        text = (root / "proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return platform.processor()
    fields: dict[str, str] = {}
    for line in text.split("\n\n", 1)[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    arm = (fields.get("CPU implementer", ""), fields.get("CPU part", ""))
    return fields.get("model name") or ARM_CORES.get(arm, "")
