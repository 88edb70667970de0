import math
from typing import Any

import pytest

from telemetry.choices import DeviceHealth
from telemetry.models import Cluster, Device, Node, Sample
from tests.telemetry.services.readings import LATER, gpu, machine, take

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, -0.1, 10**400, "0.5", True])
def test_a_number_that_can_not_be_is_not_known(cluster: Cluster, wrong: Any) -> None:
    hot = {"utilised_frac": wrong, "memory_used_mib": wrong, "power_w": wrong}
    take(cluster, machine("n1", gpu(**hot), cpu_utilised_frac=wrong, memory_used_mib=wrong))
    node, device = Node.objects.get(), Device.objects.get()
    assert (node.cpu_utilised_frac, node.memory_used_mib) == (None, None)
    assert (device.utilised_frac, device.memory_used_mib, device.power_w) == (None, None, None)
    values = Sample.objects.values_list("utilised_frac", "memory_used_mib", "power_w")
    assert set(values) == {(None, None, None)}


def test_absurd_numbers_are_cut_to_what_is_possible(cluster: Cluster) -> None:
    take(
        cluster,
        machine(
            "n1",
            gpu(
                utilised_frac=1.7, memory_used_mib=10**12, power_w=1e9, temperature_c=1e5, index=-4
            ),
            cpu_milli=10**15,
            memory_mib=10**15,
        ),
    )
    node, device = Node.objects.get(), Device.objects.get()
    assert (node.cpu_milli, node.memory_mib) == (10_000_000, 67_108_864)
    assert (device.utilised_frac, device.memory_used_mib) == (1.0, 81_920)
    assert (device.power_w, device.temperature_c, device.index) == (None, None, 0)


def test_texts_are_cut_to_their_columns_and_lose_what_they_can_not_hold(cluster: Cluster) -> None:
    device = gpu(
        "u\x00id" + "x" * 300,
        model="m" * 300,
        vendor="v" * 90,
        health="on fire",
        health_note="\x00" + "n" * 900,
        mig_profile="p" * 90,
        parent_uid="q" * 900,
    )
    node = machine(
        "n\x00" + "1" * 400,
        device,
        labels={"k" * 400: "v\x00" * 900},
        taints=("t" * 400,),
        notes={"half": "\ud800"},
    )
    take(cluster, node)
    take(cluster, node, now=LATER)
    row, seen = Device.objects.get(), Node.objects.get()
    assert (row.uid, len(row.uid), len(row.model)) == ("uid" + "x" * 197, 200, 200)
    assert (row.health, row.health_note) == (DeviceHealth.UNKNOWN, "n" * 500)
    assert (len(row.vendor), len(row.mig_profile), len(row.parent_uid)) == (40, 40, 200)
    assert (seen.name[:2], len(seen.name), len(seen.taints[0])) == ("n1", 253, 317)
    assert seen.labels == {"k" * 317: "v" * 500}
    assert seen.notes == {"half": "?"}


def test_of_two_readings_with_one_name_the_first_counts(cluster: Cluster) -> None:
    report = take(
        cluster,
        machine("n1", gpu("A", index=1), gpu("A", index=2), gpu("")),
        machine("n1", cpu_milli=1),
        machine(""),
    )
    assert Node.objects.get().cpu_milli == 8000
    assert Device.objects.get().index == 1
    assert (report.node_count, report.device_count) == (1, 1)
