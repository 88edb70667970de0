"""Which network card is nearest to a device, by the PCI tree that Linux shows in sysfs.

Nearest is what has most of the way from the host bridge down in common: one switch below another
(PIX and PXB of `nvidia-smi topo -m`), then no more than the host bridge (PHB). What hangs on
another host bridge (NODE, SYS) is not near: what they exchange crosses the processor.

Source: Linux, Documentation/ABI/testing/sysfs-bus-pci and sysfs-class-infiniband; NVIDIA,
`nvidia-smi topo -m`, legend.
"""

import re
from collections.abc import Mapping
from itertools import dropwhile, takewhile
from os.path import realpath
from pathlib import Path
from typing import Final

HOST_BRIDGE: Final = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}")
FUNCTION: Final = re.compile(r"([0-9a-f]{4,}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")

Way = tuple[str, ...]
"""From a host bridge down to a device, as sysfs names what lies between; () = on no PCI bus."""


def nearest_cards(root: Path, addresses: Mapping[int, str]) -> dict[int, str]:
    """Return device index -> nearest network card, without those that have none.

    Of cards with as much in common it is the one with the shortest way, then the lowest address, so
    that devices below one switch have the same. InfiniBand and RoCE cards count where there are
    any, Ethernet else: a port for administration is none to send gradients through.

    Args:
        root: where the machine's file system begins.
        addresses: device index -> PCI address, its domain in four digits or more.
    """
    cards = _cards(root / "sys/class/infiniband") or _cards(root / "sys/class/net")
    found = {}
    for index, address in addresses.items():
        way = _way_of_address(root, address)
        near = [
            (-shared, len(card), card, name)
            for name, card in cards.items()
            if (shared := _in_common(way, card))
        ]
        if near:
            found[index] = min(near)[-1]
    return found


def _cards(folder: Path) -> dict[str, Way]:
    """Return name -> way of the interfaces in a class: not of virtual functions, nor of USB."""
    try:
        entries = list(folder.iterdir())
    except OSError:
        return {}
    found = {}
    for entry in entries:
        device = entry / "device"
        way, rest = _way(device)
        if way and (not rest or rest[0].startswith("virtio")) and not (device / "physfn").exists():
            found[entry.name] = way
    return found


def _way_of_address(root: Path, address: str) -> Way:
    told = FUNCTION.fullmatch(address.lower())
    if told is None:
        return ()
    name = f"{int(told[1], 16):04x}:{told[2]}"  # drivers write eight digits of the domain
    return _way(root / "sys/bus/pci/devices" / name)[0]


def _way(link: Path) -> tuple[Way, Way]:
    """Return the way to what a link leads to, and what comes after its part on the PCI bus."""
    parts = dropwhile(lambda part: not HOST_BRIDGE.fullmatch(part), realpath(link).split("/"))
    below = tuple(parts)
    way = tuple(
        takewhile(lambda part: HOST_BRIDGE.fullmatch(part) or FUNCTION.fullmatch(part), below)
    )
    return way, below[len(way) :]


def _in_common(one: Way, other: Way) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
