"""A pretended /sys: directories along the PCI tree, and the links that lead to them."""

from pathlib import Path


class Sysfs:
    """Builds the part of it that tells where devices and network cards are."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def device(self, way: str) -> Path:
        """Put a device at the end of a way such as pci0000:00/0000:00:01.0/0000:01:00.0."""
        place = self.root / "sys/devices" / way
        place.mkdir(parents=True, exist_ok=True)
        self._link(self.root / "sys/bus/pci/devices" / place.name, place)
        return place

    def card(self, kind: str, name: str, way: str, *, virtual_function: bool = False) -> None:
        """Put a network interface of a class (infiniband, net) on what a way leads to."""
        owner = self.root / "sys/devices" / way
        place = owner / kind / name
        place.mkdir(parents=True)
        self._link(place / "device", owner)
        self._link(self.root / "sys/class" / kind / name, place)
        if virtual_function:
            self._link(owner / "physfn", owner.parent)

    @staticmethod
    def _link(at: Path, to: Path) -> None:
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(to)
