"""This machine as a node."""

import os
import platform
from pathlib import Path

import psutil
import pytest

from telemetry.sense import host
from telemetry.sense.base import CollectorUnavailableError, DeviceReading
from telemetry.sense.host import HostCollector, Options
from telemetry.sense.nvml import NvmlReader

MIB = 1024 * 1024
GPU = DeviceReading(uid="GPU-1", index=0, vendor="nvidia", model="NVIDIA L4", memory_mib=24576)


class Devices(NvmlReader):
    """A reader that answers what the test says."""

    def __init__(self, *devices: DeviceReading, note: str = "") -> None:
        self.answer = (devices, note)

    def read(self) -> tuple[tuple[DeviceReading, ...], str]:
        return self.answer


def collector(
    root: Path, *devices: DeviceReading, note: str = "", **options: object
) -> HostCollector:
    return HostCollector(Options.read(options), Devices(*devices, note=note), root)


def test_this_machine_is_one_node_with_its_real_size(tmp_path: Path) -> None:
    (node,) = collector(tmp_path).collect(now_s=0.0)
    assert node.name
    assert node.cpu_milli == 1000 * len(os.sched_getaffinity(0))
    assert node.memory_mib == psutil.virtual_memory().total // MIB
    assert node.reachable
    assert node.memory_used_mib is not None
    assert 0 < node.memory_used_mib <= node.memory_mib
    assert node.labels["kilter/arch"] == platform.machine()
    assert node.labels["kilter/os"] == platform.system().lower()
    assert "kilter/simulated" not in node.labels


def test_cpu_utilisation_is_that_since_the_last_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = ["user", "system", "idle", "iowait", "guest"]
    times = type("Times", (), {"_fields": tuple(fields)})
    seen = iter([(10.0, 5.0, 80.0, 5.0, 4.0), (13.0, 6.0, 85.0, 6.0, 9.0)])

    def cpu_times() -> object:
        now = times()
        for name, value in zip(fields, next(seen), strict=True):
            setattr(now, name, value)
        return now

    monkeypatch.setattr(psutil, "cpu_times", cpu_times)
    watch = collector(tmp_path)
    first, second = watch.collect(now_s=0.0)[0], watch.collect(now_s=5.0)[0]
    assert first.cpu_utilised_frac is None
    # busy 3 + 1 of 3 + 1 + 5 + 1 seconds; guest time is part of user time
    assert second.cpu_utilised_frac == 0.4


def test_two_calls_at_once_do_not_divide_by_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = psutil.cpu_times()
    monkeypatch.setattr(psutil, "cpu_times", lambda: now)
    watch = collector(tmp_path)
    watch.collect(now_s=0.0)
    assert watch.collect(now_s=0.0)[0].cpu_utilised_frac is None


def test_a_containers_limits_bind(tmp_path: Path) -> None:
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (group / "cgroup.controllers").write_text("cpu memory\n")
    (group / "cpu.max").write_text("50000 100000\n")
    (group / "memory.max").write_text(f"{256 * MIB}\n")
    (group / "memory.current").write_text(f"{100 * MIB}\n")
    (node,) = collector(tmp_path).collect(now_s=0.0)
    assert (node.cpu_milli, node.memory_mib, node.memory_used_mib) == (500, 256, 100)


def test_reserves_are_not_offered_and_capacity_is_never_below_zero(tmp_path: Path) -> None:
    whole = collector(tmp_path).collect(now_s=0.0)[0]
    less = collector(tmp_path, reserve_cpu_milli=300, reserve_memory_mib=100).collect(now_s=0.0)[0]
    assert less.cpu_milli == whole.cpu_milli - 300
    assert less.memory_mib == whole.memory_mib - 100
    none = collector(tmp_path, reserve_cpu_milli=10**9, reserve_memory_mib=10**9)
    assert none.collect(now_s=0.0)[0].cpu_milli == 0
    assert none.collect(now_s=0.0)[0].memory_mib == 0


def test_the_name_can_be_set(tmp_path: Path) -> None:
    assert collector(tmp_path, name="desk-7").collect(now_s=0.0)[0].name == "desk-7"


def test_devices_and_the_note_are_passed_on(tmp_path: Path) -> None:
    (node,) = collector(tmp_path, GPU, note="slow").collect(now_s=0.0)
    assert node.devices == (GPU,)
    assert node.notes == {"nvml": "slow"}


def test_without_a_note_there_are_no_notes(tmp_path: Path) -> None:
    assert collector(tmp_path, GPU).collect(now_s=0.0)[0].notes == {}


def test_a_machine_that_cannot_be_read_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise PermissionError("hidden")

    monkeypatch.setattr(psutil, "virtual_memory", refuse)
    with pytest.raises(CollectorUnavailableError, match="hidden") as refused:
        collector(tmp_path).collect(now_s=0.0)
    assert refused.value.retryable


WRONG: dict[str, dict[str, object]] = {
    "an unknown option": {"reserve_gpu": 1},
    "a negative reserve": {"reserve_cpu_milli": -1},
    "text for a number": {"reserve_memory_mib": "1Gi"},
    "a boolean for a number": {"reserve_memory_mib": True},
    "a number for a name": {"name": 7},
}


@pytest.mark.parametrize("options", WRONG.values(), ids=WRONG.keys())
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="option"):
        host.build("this-machine", options)


def test_a_real_collector_reads_this_machine_without_a_gpu_driver_or_with() -> None:
    (node,) = host.build("this-machine", {}).collect(now_s=0.0)
    assert node.cpu_milli > 0
    assert bool(node.devices) != (node.notes.get("nvml") == "no NVIDIA driver")


CPUINFO = {
    "an x86 processor": (
        "processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\n\nprocessor\t: 1\n",
        "AMD EPYC 9654 96-Core Processor",
    ),
    "an Arm processor": (
        "processor\t: 0\nCPU implementer\t: 0x48\nCPU part\t: 0xd01\n",
        "Kunpeng-920",
    ),
    "another Arm processor": ("processor\t: 0\nCPU implementer\t: 0x99\nCPU part\t: 0x1\n", ""),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("text", "expected"), CPUINFO.values(), ids=CPUINFO.keys())
def test_the_processors_name(text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(text)
    assert host.cpu_model(tmp_path) == expected


def test_the_processor_becomes_labels(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("model name\t: AMD EPYC 9654 96-Core Processor\n")
    labels = collector(tmp_path).collect(now_s=0.0)[0].labels
    assert labels["kilter/cpu-model"] == "AMD EPYC 9654 96-Core Processor"
    assert labels["kilter/cpu-flavor"] == "amd-epyc-9654"
