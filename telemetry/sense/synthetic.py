"""The simulated fleet: nodes that do not exist, whose load follows what the scheduler placed.

Everything is a function of the seed, the time and what is held: the same three give the same
readings, on any machine. Every node carries the label `kilter/simulated=true`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, NamedTuple

from telemetry import flavors
from telemetry.sense.base import DeviceReading, NodeReading

NODES: Final = 14
MOST_NODES: Final = 10_000
NODES_PER_RACK: Final = 4
SOCKETS: Final = 2
DEVICES_PER_NIC: Final = 2
"""A switch of the PCI bus has two devices and a network card below it, as in a DGX A100."""
DAY_S: Final = 86_400.0
SIMULATED: Final = {"kilter/simulated": "true"}
TAINT: Final = "dedicated"
MIB_PER_GIB: Final = 1024
IDLE_POWER_FRAC: Final = 0.15
"""An idle data-centre GPU draws about this part of its limit (A100: 50 to 60 of 400 W)."""
FALLBACK_POWER_W: Final = 400.0


class Held(NamedTuple):
    """What a device, or a node's CPU, is held for.

    Attributes:
        milli: thousandths of it that are held, 0 to 1000.
        kind: training, inference, batch or notebook.
    """

    milli: int
    kind: str


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of node in the fleet.

    Attributes:
        name: part of the node's name.
        vendor, model: of its devices, as a driver names them; "" for a node of CPUs only.
        devices: how many.
        linked: its devices reach each other by NVLink, Infinity Fabric or HCCS.
        cpu_cores, memory_gib: of the node.
        cpu: its processor's name.
    """

    name: str
    vendor: str
    model: str
    devices: int
    linked: bool
    cpu_cores: int
    memory_gib: int
    cpu: str


H100: Final = Template(
    "h100", "nvidia", "NVIDIA H100 80GB HBM3", 8, True, 112, 2048, "Intel(R) Xeon(R) Platinum 8480+"
)
A100: Final = Template(
    "a100", "nvidia", "NVIDIA A100-SXM4-80GB", 8, True, 128, 2048, "AMD EPYC 7742 64-Core Processor"
)
L40S: Final = Template(
    "l40s", "nvidia", "NVIDIA L40S", 4, False, 64, 512, "AMD EPYC 9654 96-Core Processor"
)
MI300X: Final = Template(
    "mi300x", "amd", "AMD Instinct MI300X", 8, True, 192, 2304, "AMD EPYC 9654 96-Core Processor"
)
ASCEND: Final = Template("910b3", "ascend", "Ascend910B3", 8, True, 192, 1536, "Kunpeng-920")
CPU: Final = Template("cpu", "", "", 0, False, 192, 768, "AMD EPYC 9654 96-Core Processor")

FLEET: Final = (
    H100, A100, L40S, MI300X, ASCEND, CPU, H100, A100, L40S, MI300X, ASCEND, CPU, H100, A100,
)  # fmt: skip
"""Kinds of node in order; a larger fleet begins again."""
TAINTED: Final = 8
"""Position in the fleet of the node with a taint (the second of L40S)."""
UNHEALTHY: Final = (7, 5)
"""Position of the node and index of the device that is not well (the second of A100)."""


@dataclass(frozen=True, slots=True)
class Load:
    """How a device looks while a kind of job holds it, all as parts 0..1.

    Attributes:
        level: mean utilisation.
        swing: how far it moves about that.
        daily: how much of the level follows the hours of the day.
        memory: of the held device memory in use.
    """

    level: float
    swing: float
    daily: float
    memory: float


LOADS: Final = {
    "training": Load(level=0.91, swing=0.06, daily=0.0, memory=0.88),
    "inference": Load(level=0.45, swing=0.08, daily=0.75, memory=0.70),
    "batch": Load(level=0.75, swing=0.15, daily=0.0, memory=0.60),
    "notebook": Load(level=0.04, swing=0.0, daily=0.0, memory=0.30),
}
"""Kind of job -> how it loads a device; a notebook also has bursts. Shapes after the public traces:
training is steady, inference follows its users, notebooks mostly wait for theirs."""


class SyntheticCollector:
    """Makes up the readings of the simulated fleet."""

    def __init__(
        self, cluster_slug: str, nodes: int, seed: int, held: Callable[[], Mapping[str, Held]]
    ) -> None:
        self._nodes = tuple(_Node.make(cluster_slug, number, seed) for number in range(nodes))
        self._held = held

    def collect(self, /, *, now_s: float) -> Sequence[NodeReading]:
        """Return every node as it would be at that time under what is held now."""
        held = self._held()
        return tuple(node.read(held, now_s) for node in self._nodes)


def build(cluster_slug: str, options: Mapping[str, object]) -> SyntheticCollector:
    """Return the simulated fleet.

    Args:
        cluster_slug: part of the device uids.
        options: `nodes` (1 to 10,000; 14), `seed` (0), and `held`: a callable that returns device
            uid -> `Held`; for the CPU of a node, the node's name -> `Held`. Without it all is idle.

    Raises:
        ValueError: an option is unknown or wrong.
        TypeError: `held` cannot be called.
    """
    unknown = set(options) - {"nodes", "seed", "held"}
    if unknown:
        raise ValueError(f"unknown options {sorted(unknown)}; known: nodes, seed, held")
    nodes, seed = options.get("nodes", NODES), options.get("seed", 0)
    if type(nodes) is not int or not 1 <= nodes <= MOST_NODES:
        raise ValueError(f"option nodes is {nodes!r}, not an integer from 1 to {MOST_NODES}")
    if type(seed) is not int:
        raise ValueError(f"option seed is {seed!r}, not an integer")
    held = options.get("held", _nothing_held)
    if not callable(held):
        raise TypeError(f"option held is {held!r}, not a callable")
    return SyntheticCollector(cluster_slug, nodes, seed, held)


def _nothing_held() -> Mapping[str, Held]:
    return {}


@dataclass(frozen=True, slots=True)
class _Node:
    """One made-up node: all of it that does not change."""

    name: str
    template: Template
    labels: Mapping[str, str]
    taints: tuple[str, ...]
    devices: tuple["_Device", ...]
    phase: float

    @classmethod
    def make(cls, cluster_slug: str, number: int, seed: int) -> "_Node":
        template = FLEET[number % len(FLEET)]
        name = f"{template.name}-{number + 1:02d}"
        return cls(
            name=name,
            template=template,
            labels=_labels(template, number),
            taints=(TAINT,) if number == TAINTED else (),
            devices=tuple(
                _Device.make(template, index, f"SIM-{cluster_slug}-{name}-{index}", seed, number)
                for index in range(template.devices)
            ),
            phase=_phase(seed, name),
        )

    def read(self, held: Mapping[str, Held], now_s: float) -> NodeReading:
        devices = tuple(device.read(held.get(device.uid), now_s) for device in self.devices)
        busy = self._cpu_utilised_frac(held.get(self.name), devices, now_s)
        memory_mib = self.template.memory_gib * MIB_PER_GIB
        return NodeReading(
            name=self.name,
            cpu_milli=self.template.cpu_cores * 1000,
            memory_mib=memory_mib,
            cpu_utilised_frac=busy,
            memory_used_mib=int(memory_mib * (0.03 + 0.6 * busy)),
            devices=devices,
            labels=self.labels,
            taints=self.taints,
        )

    def _cpu_utilised_frac(
        self, held: Held | None, devices: Sequence[DeviceReading], now_s: float
    ) -> float:
        """Return the load by jobs on the CPU, and the feeding of busy devices, and a little."""
        own = _utilised_frac(held, now_s, self.phase)
        feeding = sum(device.utilised_frac or 0.0 for device in devices) / max(len(devices), 1)
        idle = 0.02 + 0.01 * _wave(now_s, self.phase)
        return min(own + 0.3 * feeding + idle, 1.0)


@dataclass(frozen=True, slots=True)
class _Device:
    """One made-up device: all of it that does not change."""

    uid: str
    index: int
    template: Template
    memory_mib: int
    power_limit_w: float
    health: str
    phase: float

    @classmethod
    def make(cls, template: Template, index: int, uid: str, seed: int, number: int) -> "_Device":
        entry = flavors.lookup(template.vendor, template.model)
        if entry is None or entry.memory_mib is None:
            raise ValueError(f"{template.model} is not in the catalogue")
        return cls(
            uid=uid,
            index=index,
            template=template,
            memory_mib=entry.memory_mib,
            power_limit_w=entry.power_w or FALLBACK_POWER_W,
            health="unhealthy" if (number, index) == UNHEALTHY else "healthy",
            phase=_phase(seed, uid),
        )

    def read(self, held: Held | None, now_s: float) -> DeviceReading:
        busy = _utilised_frac(held, now_s, self.phase)
        wave = _wave(now_s, self.phase + 1.0)
        power_frac = IDLE_POWER_FRAC + (0.95 - IDLE_POWER_FRAC) * busy
        return DeviceReading(
            uid=self.uid,
            index=self.index,
            vendor=self.template.vendor,
            model=self.template.model,
            memory_mib=self.memory_mib,
            health=self.health,
            health_note="" if self.health == "healthy" else "simulated: memory rows worn out",
            utilised_frac=busy,
            memory_used_mib=int(self.memory_mib * _memory_frac(held, wave)),
            power_w=round(self.power_limit_w * (power_frac + 0.01 * wave), 1),
            temperature_c=round(32.0 + 40.0 * busy + 1.5 * wave, 1),
            link_group=0 if self.template.linked else -1,
            numa_node=SOCKETS * self.index // self.template.devices,
            nic=f"mlx5_{self.index // DEVICES_PER_NIC}",
        )


def _labels(template: Template, number: int) -> dict[str, str]:
    rack = number // NODES_PER_RACK + 1
    labels = {
        **SIMULATED,
        "kilter/rack": f"rack-{rack:02d}",
        "kilter/arch": "aarch64" if "Kunpeng" in template.cpu else "x86_64",
        "kilter/os": "linux",
        "kilter/cpu-model": template.cpu,
        "kilter/cpu-flavor": flavors.flavor_slug("cpu", template.cpu),
    }
    if template.model:
        labels["kilter/flavor"] = flavors.flavor_slug(template.vendor, template.model)
    return labels


def _utilised_frac(held: Held | None, now_s: float, phase: float) -> float:
    """Return 0..1 of the whole device: what its part's kind of job makes of the time."""
    if held is None or held.milli <= 0:
        return round(0.004 + 0.004 * _wave(now_s, phase), 4)
    load = LOADS.get(held.kind, LOADS["batch"])
    level = load.level * (1.0 + load.daily * _day(now_s)) + load.swing * _wave(now_s, phase)
    if held.kind == "notebook":
        level += _burst(now_s, phase)
    return round(min(max(level, 0.0), 1.0) * min(held.milli, 1000) / 1000, 4)


def _memory_frac(held: Held | None, wave: float) -> float:
    """Return 0..1 of the device's memory: the driver's part, and the job's."""
    if held is None or held.milli <= 0:
        return 0.006
    load = LOADS.get(held.kind, LOADS["batch"])
    return min((load.memory + 0.02 * wave) * min(held.milli, 1000) / 1000, 1.0)


def _day(now_s: float) -> float:
    """Return -1..1: least at 04:00 UTC, most at 16:00."""
    return -math.cos(2 * math.pi * (now_s / DAY_S - 4 / 24))


def _wave(now_s: float, phase: float) -> float:
    """Return -1..1, smooth: three sines of some minutes each that do not repeat together."""
    return (
        0.5 * math.sin(2 * math.pi * now_s / 97.0 + phase)
        + 0.3 * math.sin(2 * math.pi * now_s / 241.0 + 2.0 * phase)
        + 0.2 * math.sin(2 * math.pi * now_s / 613.0 + 3.0 * phase)
    )


def _burst(now_s: float, phase: float) -> float:
    """Return 0..0.6: somebody runs a cell now and then, a tenth of the time, and waits again."""
    crest = math.sin(2 * math.pi * now_s / 420.0 + phase)
    return 0.6 * max(crest - 0.95, 0.0) / 0.05


def _phase(seed: int, name: str) -> float:
    """Return 0..2 pi, the same on every machine (the built-in hash is not)."""
    digest = blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return 2 * math.pi * int.from_bytes(digest, "big") / 2**64
