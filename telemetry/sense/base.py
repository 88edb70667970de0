"""The contract of a collector: looks at hardware, says what it saw, never guesses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class CollectorUnavailableError(Exception):
    """The source can't be asked (no driver, no answer); says why and whether to try again."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One accelerator as it is now. None = the driver does not say.

    Attributes:
        uid: the vendor's unique id, or one made from node and index where it has none.
        index: as the vendor's tool counts.
        vendor: nvidia, amd, ascend, intel, ... lower case.
        model: the vendor's name of it, untouched.
        memory_mib: total memory.
        health: healthy, unhealthy, lost or unknown.
        health_note: why, in the vendor's words.
        utilised_frac: 0..1.
        memory_used_mib, power_w, temperature_c: now.
        process_ids: of the processes that use it.
        mig_profile: e.g. 1g.10gb for a MIG slice, "" else.
        parent_uid: the physical device of a MIG slice, "" else.
        link_group: NVLink or HCCS island on the node, -1 = not known.
        numa_node: NUMA node that its memory traffic goes through, -1 = not known.
        nic: nearest network card, as the system names it (mlx5_0, eth0), "" = not known.
        throttled: its hardware slows it down for heat now.
    """

    uid: str
    index: int
    vendor: str
    model: str
    memory_mib: int | None
    health: str = "healthy"
    health_note: str = ""
    utilised_frac: float | None = None
    memory_used_mib: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    process_ids: tuple[int, ...] = ()
    mig_profile: str = ""
    parent_uid: str = ""
    link_group: int = -1
    numa_node: int = -1
    nic: str = ""
    throttled: bool = False


@dataclass(frozen=True, slots=True)
class NodeReading:
    """One node as it is now.

    Attributes:
        name: unique in the cluster.
        cpu_milli, memory_mib: capacity that jobs may use.
        cpu_utilised_frac: 0..1 of all cores.
        memory_used_mib: now.
        reachable: False = it is listed but does not answer.
        devices: its accelerators.
        labels, taints: as the cluster says.
        notes: collectors that could not look, and why: name -> sentence.
    """

    name: str
    cpu_milli: int
    memory_mib: int
    cpu_utilised_frac: float | None = None
    memory_used_mib: int | None = None
    reachable: bool = True
    devices: tuple[DeviceReading, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)


class Collector(Protocol):
    """Reads one cluster's hardware."""

    def collect(self, /, *, now_s: float) -> Sequence[NodeReading]:
        """Return every node of the cluster; never some of them silently.

        Raises:
            CollectorUnavailableError: nothing is known now.
        """
        ...


COLLECTORS: dict[str, str] = {
    "local": "telemetry.sense.host.build",
    "simulated": "telemetry.sense.synthetic.build",
}
"""Kind of cluster -> import path of `build(cluster_slug, options) -> Collector`."""
