"""What a replica asks for and what a job asks for: the nouns of demand."""

from collections.abc import Sequence
from dataclasses import dataclass

WHOLE_MILLI = 1000
"""A whole device, in `gpu_milli`."""

MIG = "-mig-"
"""Stands before the profile in the name of the flavor that a MIG slice is."""

CPU_FLAVOR = "cpu"
"""The flavor under which CPU is quoted: every job is charged its `cpu_milli` here."""

ONE_PER_NODE = "one_per_node"
"""Placement wish: no two replicas of the job on one node (anti-affinity, hard)."""

SPREAD = "spread"
"""Placement wish: as many nodes as there are to be had, as a score."""

PLACEMENT_WISHES = ("", "pack", SPREAD, ONE_PER_NODE)
"""What a job may wish of its placement; "" = as the policy says."""


def is_flavor(flavor: str, asked: str) -> bool:
    """Return whether a flavor is what was asked for: by its name, or by its MIG profile.

    A slice is a flavor of its own, such as `nvidia-a100-mig-1g.10gb`; `1g.10gb` asks for that
    profile of any model. Any slice with enough memory is asked for by `gpu_memory_mib` alone.
    """
    return flavor == asked or flavor.endswith(f"{MIG}{asked}")


def is_slice(flavor: str) -> bool:
    """Return whether a flavor is a MIG slice, not a whole device."""
    return MIG in flavor


def may_be_given(flavor: str, asked: Sequence[str], devices: int) -> bool:
    """Return whether a replica of so many devices may get a flavor.

    Several slices only where they are asked for: one process sees one of them.

    Args:
        flavor: name of a flavor.
        asked: flavors or MIG profiles that its job names; none = any.
        devices: of a replica, >= 1.

    Source: NVIDIA MIG User Guide, CUDA device enumeration.
    """
    if asked:
        return any(is_flavor(flavor, one) for one in asked)
    return devices == 1 or not is_slice(flavor)


@dataclass(frozen=True, slots=True)
class ReplicaShape:
    """What one replica of a job takes on one node.

    Attributes:
        cpu_milli: thousandths of a core, >= 1.
        memory_mib: host memory in MiB, >= 1.
        devices: number of accelerators, >= 0.
        gpu_milli: thousandths taken of each device, 1 to 1000; below 1000 only with devices == 1.
        gpu_memory_mib: device memory taken of a shared device, 0 = in proportion to gpu_milli.
    """

    cpu_milli: int
    memory_mib: int
    devices: int = 0
    gpu_milli: int = WHOLE_MILLI
    gpu_memory_mib: int = 0

    @property
    def device_milli(self) -> int:
        """Return the thousandths of devices that one replica holds."""
        return self.devices * self.gpu_milli

    @property
    def is_fraction(self) -> bool:
        """Return whether the replica shares a device with others."""
        return self.devices == 1 and self.gpu_milli < WHOLE_MILLI
