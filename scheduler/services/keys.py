"""Which rows the arrays of a snapshot speak of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FleetKeys:
    """Database keys in the order of the snapshot's arrays.

    Attributes:
        nodes: (nodes,) primary keys.
        devices: (devices,) primary keys.
    """

    nodes: tuple[int, ...]
    devices: tuple[int, ...]
