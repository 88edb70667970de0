"""From what a collector saw to what the tables take.

Drivers and clusters are not to be trusted: numbers may be NaN or absurd, texts endless or with NUL
characters, names doubled. What can't be is dropped or cut here, and nowhere else. Pure.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from telemetry.choices import DeviceHealth
from telemetry.recognise import recognise
from telemetry.sense.base import DeviceReading, NodeReading

logger = logging.getLogger(__name__)

HEALTHS: Final = frozenset(DeviceHealth.values)
CPU_MILLI_MOST: Final = 10_000_000
MEMORY_MIB_MOST: Final = 67_108_864
"""Bounds of a node as in `telemetry.units`: ten thousand cores, 64 TiB."""
POWER_W_MOST: Final = 100_000.0
TEMPERATURE_C_LEAST: Final = -100.0
TEMPERATURE_C_MOST: Final = 500.0
ANY_MOST: Final = 1e300
"""Numbers beyond are noise; infinity too."""
INDEX_MOST: Final = 2_147_483_647
LABELS_MOST: Final = 200
TAINTS_MOST: Final = 50
NOTES_MOST: Final = 20
NODE_NAME_LIMIT: Final = 253
KEY_LIMIT: Final = 317
TEXT_LIMIT: Final = 500
UID_LIMIT: Final = 200
VENDOR_LIMIT: Final = 40
NIC_LIMIT: Final = 64


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """A device as its row takes it; `memory_mib` 0 = not known, None of the others = not known."""

    uid: str
    index: int
    vendor: str
    model: str
    flavor: str
    memory_mib: int
    compute_units: float | None
    power_limit_w: float | None
    health: str
    health_note: str
    link_group: int
    numa_node: int
    nic: str
    throttled: bool
    mig_profile: str
    parent_uid: str
    utilised_frac: float | None
    memory_used_mib: int | None
    power_w: float | None
    temperature_c: float | None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node as its row takes it, with its devices by uid."""

    name: str
    reachable: bool
    cpu_milli: int
    memory_mib: int
    cpu_utilised_frac: float | None
    memory_used_mib: int | None
    labels: Mapping[str, str]
    taints: tuple[str, ...]
    notes: Mapping[str, str]
    devices: Mapping[str, DeviceFacts]


def clean(readings: Sequence[NodeReading]) -> dict[str, NodeFacts]:
    """Return the nodes by name; of two with one name the first, which is logged."""
    nodes: dict[str, NodeFacts] = {}
    for reading in readings:
        facts = _node(reading)
        if not facts.name or facts.name in nodes:
            logger.warning("node_reading_dropped name=%r: empty or doubled", facts.name)
            continue
        nodes[facts.name] = facts
    return nodes


def _node(reading: NodeReading) -> NodeFacts:
    name = _text(reading.name, NODE_NAME_LIMIT)
    memory_mib = _whole(reading.memory_mib, MEMORY_MIB_MOST) or 0
    return NodeFacts(
        name=name,
        reachable=reading.reachable,
        cpu_milli=_whole(reading.cpu_milli, CPU_MILLI_MOST) or 0,
        memory_mib=memory_mib,
        cpu_utilised_frac=_frac(reading.cpu_utilised_frac),
        memory_used_mib=_whole(reading.memory_used_mib, MEMORY_MIB_MOST),
        labels=_texts(reading.labels, LABELS_MOST),
        taints=tuple(_text(taint, KEY_LIMIT) for taint in reading.taints[:TAINTS_MOST]),
        notes=_texts(reading.notes, NOTES_MOST),
        devices=_devices(name, reading.devices),
    )


def _devices(node: str, readings: Iterable[DeviceReading]) -> dict[str, DeviceFacts]:
    devices: dict[str, DeviceFacts] = {}
    for reading in readings:
        facts = _device(reading)
        if not facts.uid or facts.uid in devices:
            logger.warning(
                "device_reading_dropped node=%r uid=%r: empty or doubled", node, facts.uid
            )
            continue
        devices[facts.uid] = facts
    return devices


def _device(reading: DeviceReading) -> DeviceFacts:
    vendor, model = _text(reading.vendor, VENDOR_LIMIT), _text(reading.model, UID_LIMIT)
    mig_profile = _text(reading.mig_profile, VENDOR_LIMIT)
    slug, entry = recognise(vendor, model, mig_profile)
    memory_mib = _whole(reading.memory_mib, MEMORY_MIB_MOST) or 0
    return DeviceFacts(
        uid=_text(reading.uid, UID_LIMIT),
        index=_whole(reading.index, INDEX_MOST) or 0,
        vendor=vendor,
        model=model,
        flavor=slug,
        memory_mib=memory_mib,
        compute_units=None if entry is None else entry.fp16_tflops or None,
        power_limit_w=None if entry is None else entry.power_w,
        health=reading.health if reading.health in HEALTHS else DeviceHealth.UNKNOWN,
        health_note=_text(reading.health_note, TEXT_LIMIT),
        link_group=_whole(reading.link_group, INDEX_MOST, absent=-1),
        numa_node=_whole(reading.numa_node, INDEX_MOST, absent=-1),
        nic=_text(reading.nic, NIC_LIMIT),
        throttled=reading.throttled is True,
        mig_profile=mig_profile,
        parent_uid=_text(reading.parent_uid, UID_LIMIT),
        utilised_frac=_frac(reading.utilised_frac),
        memory_used_mib=_whole(reading.memory_used_mib, memory_mib or MEMORY_MIB_MOST),
        power_w=_number(reading.power_w, 0.0, POWER_W_MOST),
        temperature_c=_number(reading.temperature_c, TEMPERATURE_C_LEAST, TEMPERATURE_C_MOST),
    )


def _frac(value: object) -> float | None:
    """Return 0..1; a little above, as counters over short spans give, is 1."""
    number = _number(value, 0.0, ANY_MOST)
    return None if number is None else min(number, 1.0)


def _number(value: object, least: float, most: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if least <= value <= most else None  # NaN is in no range


def _whole(value: object, most: int, *, absent: Any = None) -> Any:
    """Return an integer from 0 to `most`, more than that as `most`, else `absent`."""
    number = _number(value, 0.0, ANY_MOST)
    return absent if number is None else min(int(number), most)


def _text(value: object, limit: int) -> str:
    """Return text that a column of `limit` characters takes: no NUL, no half characters."""
    text = str(value).replace("\x00", "")[:limit]
    return text.encode("utf-8", "replace").decode("utf-8")


def _texts(values: Mapping[str, str], most: int) -> dict[str, str]:
    pairs = sorted(values.items())[:most]
    return {_text(key, KEY_LIMIT): _text(value, TEXT_LIMIT) for key, value in pairs}
