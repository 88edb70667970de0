"""The network card nearest to each device, by pretended PCI trees."""

from pathlib import Path

import pytest

from telemetry.sense.pci import nearest_cards
from tests.telemetry.sense.sysfs import Sysfs

GPUS = {0: "00000000:07:00.0", 1: "00000000:08:00.0", 2: "00000000:4A:00.0"}
PORT = "pci0000:00/0000:00:01.0"
SWITCH = f"{PORT}/0000:01:00.0"
"""A root port and the upstream end of a switch; every downstream port has one device below it."""


@pytest.fixture
def tree(tmp_path: Path) -> Sysfs:
    """Devices 0 and 1 below one switch of host bridge 00, device 2 on host bridge 40."""
    tree = Sysfs(tmp_path)
    tree.device(f"{SWITCH}/0000:02:00.0/0000:07:00.0")
    tree.device(f"{SWITCH}/0000:02:01.0/0000:08:00.0")
    tree.device("pci0000:40/0000:40:01.0/0000:4a:00.0")
    return tree


def near(tree: Sysfs) -> dict[int, str]:
    return nearest_cards(tree.root, GPUS)


def test_a_card_below_the_same_switch_is_nearer_than_one_on_the_same_host_bridge(
    tree: Sysfs,
) -> None:
    """In common: with b bridge, root port, upstream end (PIX) = 3; with a the bridge (PHB) = 1."""
    tree.card("infiniband", "a", "pci0000:00/0000:00:00.1/0000:03:00.0")
    tree.card("infiniband", "b", f"{SWITCH}/0000:02:02.0/0000:09:00.0")
    assert near(tree) == {0: "b", 1: "b"}


def test_below_two_switches_the_nearer_of_two_cards_is_that_of_the_own_switch(
    tree: Sysfs,
) -> None:
    """A switch below the switch: device 0 has 3 in common with both, and b is nearer by a switch.

    Device 3, below the lower switch, has 5 in common with a.
    """
    below = f"{SWITCH}/0000:02:03.0/0000:0a:00.0"
    tree.device(f"{below}/0000:0b:00.0/0000:0c:00.0")
    tree.card("infiniband", "a", f"{below}/0000:0b:01.0/0000:0d:00.0")
    tree.card("infiniband", "b", f"{SWITCH}/0000:02:04.0/0000:0e:00.0")
    found = nearest_cards(tree.root, {0: GPUS[0], 3: "0000:0c:00.0"})
    assert found == {0: "b", 3: "a"}


def test_each_host_bridge_has_its_own_card(tree: Sysfs) -> None:
    tree.card("infiniband", "mlx5_0", "pci0000:40/0000:40:02.0/0000:4b:00.0")
    tree.card("infiniband", "mlx5_1", "pci0000:00/0000:00:02.0/0000:05:00.0")
    assert near(tree) == {0: "mlx5_1", 1: "mlx5_1", 2: "mlx5_0"}


def test_no_card_on_the_host_bridge_is_no_near_card(tree: Sysfs) -> None:
    tree.card("infiniband", "mlx5_0", "pci0000:80/0000:80:01.0/0000:81:00.0")
    assert near(tree) == {}


def test_of_two_ports_of_a_card_it_is_the_first(tree: Sysfs) -> None:
    tree.card("infiniband", "mlx5_0", f"{SWITCH}/0000:02:02.0/0000:09:00.1")
    tree.card("infiniband", "mlx5_1", f"{SWITCH}/0000:02:02.0/0000:09:00.0")
    assert near(tree) == {0: "mlx5_1", 1: "mlx5_1"}


def test_ethernet_counts_where_there_is_no_infiniband_alone(tree: Sysfs) -> None:
    tree.card("net", "eth0", f"{SWITCH}/0000:02:02.0/0000:09:00.0")
    assert near(tree) == {0: "eth0", 1: "eth0"}
    tree.card("infiniband", "mlx5_0", "pci0000:40/0000:40:02.0/0000:4b:00.0")
    assert near(tree) == {2: "mlx5_0"}


def test_in_a_virtual_machine_the_card_is_a_virtio_device(tree: Sysfs) -> None:
    tree.card("net", "eth0", "pci0000:00/0000:00:03.0/virtio2")
    assert near(tree) == {0: "eth0", 1: "eth0"}


def test_what_is_no_card_of_the_pci_bus_does_not_count(tree: Sysfs) -> None:
    tree.card("net", "usb0", "pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0")  # of the board's keeper
    tree.card("net", "vf0", f"{SWITCH}/0000:02:02.0/0000:09:00.2", virtual_function=True)
    (tree.root / "sys/devices/virtual/net/lo").mkdir(parents=True)
    (tree.root / "sys/class/net/lo").symlink_to(tree.root / "sys/devices/virtual/net/lo")
    assert near(tree) == {}


def test_a_domain_beyond_four_digits_keeps_them(tmp_path: Path) -> None:
    tree = Sysfs(tmp_path)
    tree.device("pci10000:00/10000:00:01.0/10000:01:00.0")
    tree.card("infiniband", "mlx5_0", "pci10000:00/10000:00:02.0/10000:02:00.0")
    assert nearest_cards(tmp_path, {0: "00010000:01:00.0"}) == {0: "mlx5_0"}


@pytest.mark.parametrize("address", ["", "0000:ff:00.0", "../../net/lo", "0000:07:00.0\n", "é"])
def test_an_address_of_no_device_has_no_near_card(tree: Sysfs, address: str) -> None:
    tree.card("infiniband", "mlx5_0", f"{SWITCH}/0000:02:02.0/0000:09:00.0")
    assert nearest_cards(tree.root, {0: address}) == {}


def test_where_there_is_no_sysfs_nothing_is_known(tmp_path: Path) -> None:
    assert nearest_cards(tmp_path, GPUS) == {}
