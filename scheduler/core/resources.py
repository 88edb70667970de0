"""What a replica asks for and what a job asks for: the nouns of demand."""

from dataclasses import dataclass

WHOLE_MILLI = 1000
"""A whole device, in `gpu_milli`."""

CPU_FLAVOR = "cpu"
"""The flavor under which CPU is quoted: every job is charged its `cpu_milli` here."""

ONE_PER_NODE = "one_per_node"
"""Placement wish: no two replicas of the job on one node (anti-affinity, hard)."""

PLACEMENT_WISHES = ("", "pack", "spread", ONE_PER_NODE)
"""What a job may wish of its placement; "" = as the policy says."""


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
