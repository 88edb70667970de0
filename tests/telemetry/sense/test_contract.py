"""What every collector keeps, whatever it looks at."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from telemetry import flavors
from telemetry.sense.base import COLLECTORS, Collector, NodeReading

ROOT = Path(__file__).resolve().parents[3]
HEALTH = {"healthy", "unhealthy", "lost", "unknown"}
KINDS = ("local", "simulated")


def built(kind: str) -> Collector:
    module, _, name = COLLECTORS[kind].rpartition(".")
    collector: Collector = getattr(import_module(module), name)("some-cluster", {})
    return collector


def readings(kind: str) -> list[NodeReading]:
    collector = built(kind)
    return [*collector.collect(now_s=1_800_000_000.0), *collector.collect(now_s=1_800_000_005.0)]


@pytest.mark.parametrize("kind", KINDS)
def test_nodes_and_devices_are_the_same_at_every_call(kind: str) -> None:
    collector = built(kind)
    calls = [collector.collect(now_s=1_800_000_000.0 + 5 * at) for at in range(3)]
    names = [[node.name for node in nodes] for nodes in calls]
    uids = [[device.uid for node in nodes for device in node.devices] for nodes in calls]
    assert names[0] == names[1] == names[2]
    assert uids[0] == uids[1] == uids[2]
    assert len(set(names[0])) == len(names[0]) > 0
    assert len(set(uids[0])) == len(uids[0])


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_within_their_range(kind: str) -> None:
    for node in readings(kind):
        assert node.cpu_milli > 0
        assert node.memory_mib > 0
        assert node.cpu_utilised_frac is None or 0.0 <= node.cpu_utilised_frac <= 1.0
        assert node.memory_used_mib is None or 0 <= node.memory_used_mib <= node.memory_mib
        for device in node.devices:
            assert device.health in HEALTH
            assert device.utilised_frac is None or 0.0 <= device.utilised_frac <= 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_names_fit_their_columns(kind: str) -> None:
    for node in readings(kind):
        assert len(node.name) <= 253
        assert all(len(key) <= 63 and len(value) <= 200 for key, value in node.labels.items())
        for device in node.devices:
            assert len(device.uid) <= 200
            assert len(flavors.flavor_slug(device.vendor, device.model, device.mig_profile)) <= 80


def test_every_device_of_the_simulated_fleet_has_known_compute_units() -> None:
    for node in readings("simulated"):
        for device in node.devices:
            entry = flavors.lookup(device.vendor, device.model)
            assert entry is not None
            assert entry.fp16_tflops


def test_neither_django_nor_a_vendors_client_is_imported_before_it_is_asked() -> None:
    script = (
        "import sys, telemetry.units, telemetry.flavors, telemetry.sense.host,"
        " telemetry.sense.synthetic\n"
        "print(sorted({'django', 'psutil', 'pynvml', 'socket'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.strip() == "['socket']"  # of the standard library, for the host's name
