"""Takes one look at a cluster into the tables: nodes and devices as they are now, and samples.

A handful of statements whatever the size of the fleet. Rows that somebody else holds at this moment
(a placement being written) are left for the next look, so that neither waits for the other and no
deadlock is possible. The allocated columns and what an admin says of a node are never touched.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final

from django.db import connection, transaction

from telemetry import events
from telemetry.choices import DeviceHealth, NodeState
from telemetry.models import Cluster, Device, Node
from telemetry.sense.base import NodeReading
from telemetry.services.readings import DeviceFacts, NodeFacts, clean
from telemetry.services.samples import SampleRow, samples_write

logger = logging.getLogger(__name__)

NAMES_LOGGED: Final = 20
VANISHED: Final = "not reported any more"

_UPDATE_NODES = """
WITH free AS MATERIALIZED (
    SELECT id FROM telemetry_node WHERE cluster_id = %s FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE telemetry_node AS node SET state = r.state, seen_at = r.seen_at,
    cpu_milli = r.cpu_milli, memory_mib = r.memory_mib,
    cpu_utilised_frac = r.cpu_utilised_frac, memory_used_mib = r.memory_used_mib,
    labels = r.labels, taints = r.taints, notes = r.notes
FROM json_to_recordset(%s) AS r(
    id bigint, state text, seen_at timestamptz, cpu_milli bigint, memory_mib bigint,
    cpu_utilised_frac float8, memory_used_mib bigint, labels jsonb, taints text[], notes jsonb
)
WHERE node.id = r.id AND node.id IN (SELECT id FROM free)
"""
_UPDATE_DEVICES = """
WITH free AS MATERIALIZED (
    SELECT device.id FROM telemetry_device device JOIN telemetry_node node ON node.id = node_id
    WHERE cluster_id = %s FOR NO KEY UPDATE OF device SKIP LOCKED
)
UPDATE telemetry_device AS device SET seen_at = r.seen_at, index = r.index, vendor = r.vendor,
    model = r.model, flavor = r.flavor,
    memory_mib = CASE WHEN r.memory_mib = 0 THEN 0
        ELSE GREATEST(r.memory_mib, device.allocated_memory_mib) END,
    compute_units = r.compute_units, power_limit_w = r.power_limit_w, health = r.health,
    health_note = r.health_note, link_group = r.link_group, numa_node = r.numa_node,
    nic = r.nic, throttled = r.throttled, mig_profile = r.mig_profile, parent_uid = r.parent_uid,
    utilised_frac = r.utilised_frac, memory_used_mib = r.memory_used_mib,
    power_w = r.power_w, temperature_c = r.temperature_c
FROM json_to_recordset(%s) AS r(
    id bigint, seen_at timestamptz, index int, vendor text, model text, flavor text,
    memory_mib bigint, compute_units float8, power_limit_w float8, health text, health_note text,
    link_group int, numa_node int, nic text, throttled boolean, mig_profile text, parent_uid text,
    utilised_frac float8, memory_used_mib bigint, power_w float8, temperature_c float8
)
WHERE device.id = r.id AND device.id IN (SELECT id FROM free)
"""

_NODE_COLUMNS: Final = (
    "state",
    "seen_at",
    "cpu_milli",
    "memory_mib",
    "cpu_utilised_frac",
    "memory_used_mib",
    "labels",
    "taints",
    "notes",
)
_NODE_DECIDES: Final = ("state", "cpu_milli", "memory_mib", "labels", "taints")
_NODE_UNKNOWN: Final = {
    "state": NodeState.UNKNOWN,
    "cpu_utilised_frac": None,
    "memory_used_mib": None,
}
_DEVICE_FACTS: Final = tuple(f.name for f in fields(DeviceFacts) if f.name != "uid")
_DEVICE_IDENTITY: Final = ("vendor", "model", "flavor", "compute_units", "power_limit_w")
_DEVICE_DECIDES: Final = (
    "flavor",
    "memory_mib",
    "compute_units",
    "health",
    "link_group",
    "numa_node",
    "nic",
    "throttled",
    "parent_uid",
)
"""Columns on which decisions depend; the others are news for the eye only."""
_DEVICE_LOST: Final = {
    "health": DeviceHealth.LOST,
    "health_note": VANISHED,
    "throttled": False,
    "utilised_frac": None,
    "memory_used_mib": None,
    "power_w": None,
    "temperature_c": None,
}

Row = dict[str, Any]
DeviceKey = tuple[int, str]


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What one look brought.

    Attributes:
        node_count, device_count: seen in it.
        sample_count: rows appended.
        appeared, lost, returned: names of nodes that are new, unknown since now, ready again.
        changed: whether a decision could differ now.
    """

    node_count: int
    device_count: int
    sample_count: int
    appeared: tuple[str, ...]
    lost: tuple[str, ...]
    returned: tuple[str, ...]
    changed: bool


@dataclass(slots=True)
class _Changes:
    """Rows to write, and what is new about them."""

    rows: list[Row] = field(default_factory=list)
    appeared: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    changed: bool = False


def ingest(*, cluster: Cluster, readings: Sequence[NodeReading], now: datetime) -> IngestReport:
    """Make the cluster's rows equal to what was seen, and append its samples.

    A node that is not among the readings, or does not answer, becomes unknown and is never
    deleted: what runs on it may run on. A device that its node no longer reports is lost.

    Args:
        cluster: whose nodes.
        readings: every node of it.
        now: when they were read.
    """
    seen = clean(readings)
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        nodes = {node.name: node for node in Node.objects.filter(cluster=cluster)}
        devices = {
            (device.node_id, device.uid): device
            for device in Device.objects.filter(node__cluster=cluster)
        }
        of_nodes = _take_nodes(cluster, seen, nodes, now)
        of_devices = _take_devices(seen, nodes, devices, now)
        samples = samples_write(rows=_samples(cluster, seen, nodes, devices, now))
        _update(_UPDATE_NODES, cluster, of_nodes.rows)
        _update(_UPDATE_DEVICES, cluster, of_devices.rows)
        Cluster.objects.filter(pk=cluster.pk).update(sampled_at=now, sense_error="")
        changed = of_nodes.changed or of_devices.changed
        _tell(cluster, of_nodes, changed=changed)
    return IngestReport(
        node_count=len(seen),
        device_count=sum(len(facts.devices) for facts in seen.values()),
        sample_count=samples,
        appeared=tuple(of_nodes.appeared),
        lost=tuple(of_nodes.lost),
        returned=tuple(of_nodes.returned),
        changed=changed,
    )


def _take_nodes(
    cluster: Cluster, seen: Mapping[str, NodeFacts], nodes: dict[str, Node], now: datetime
) -> _Changes:
    """Compare nodes with what was seen; new ones are created and added to `nodes`."""
    changes = _Changes()
    for name, node in nodes.items():
        facts = seen.get(name)
        if facts is not None and facts.reachable:
            values = _node_values(facts, now)
            if node.state == NodeState.UNKNOWN:
                changes.returned.append(name)
            changes.changed |= _differs(node, values, _NODE_DECIDES)
            changes.rows.append({"id": node.pk, **values})
        elif node.state != NodeState.UNKNOWN:
            changes.lost.append(name)
            changes.changed = True
            changes.rows.append({**_columns(node, _NODE_COLUMNS), **_NODE_UNKNOWN})
    new = [
        Node(cluster=cluster, name=name, **_node_values(facts, now))
        for name, facts in seen.items()
        if name not in nodes
    ]
    for node in Node.objects.bulk_create(new):
        nodes[node.name] = node
        changes.appeared.append(node.name)
        changes.changed = True
    return changes


def _take_devices(
    seen: Mapping[str, NodeFacts],
    nodes: Mapping[str, Node],
    devices: dict[DeviceKey, Device],
    now: datetime,
) -> _Changes:
    """Compare devices of nodes that answered; new ones are created and added to `devices`."""
    changes = _Changes()
    reported = {
        (nodes[name].pk, uid): facts
        for name, node_facts in seen.items()
        if node_facts.reachable
        for uid, facts in node_facts.devices.items()
    }
    answering = {nodes[name].pk for name, facts in seen.items() if facts.reachable}
    for key, device in devices.items():
        facts = reported.get(key)
        if facts is not None:
            values = _known_device_values(device, facts, now)
        elif device.node_id in answering and device.health != DeviceHealth.LOST:
            values = {**_columns(device, ("seen_at", *_DEVICE_FACTS)), **_DEVICE_LOST}
        else:
            continue
        changes.changed |= _differs(device, values, _DEVICE_DECIDES)
        changes.rows.append({"id": device.pk, **values})
    new = [
        Device(node_id=key[0], uid=key[1], **_device_values(facts, now))
        for key, facts in reported.items()
        if key not in devices
    ]
    for device in Device.objects.bulk_create(new):
        devices[device.node_id, device.uid] = device
        changes.changed = True
    return changes


def _node_values(facts: NodeFacts, now: datetime) -> Row:
    return {
        "state": NodeState.READY if facts.reachable else NodeState.UNKNOWN,
        "seen_at": now if facts.reachable else None,
        "cpu_milli": facts.cpu_milli,
        "memory_mib": facts.memory_mib,
        "cpu_utilised_frac": facts.cpu_utilised_frac,
        "memory_used_mib": facts.memory_used_mib,
        "labels": dict(facts.labels),
        "taints": list(facts.taints),
        "notes": dict(facts.notes),
    }


def _device_values(facts: DeviceFacts, now: datetime) -> Row:
    return {"seen_at": now, **{name: getattr(facts, name) for name in _DEVICE_FACTS}}


def _known_device_values(device: Device, facts: DeviceFacts, now: datetime) -> Row:
    """Return the columns of a device that was known before.

    What a failing driver can't say now stays as it was; and memory that jobs hold stays counted
    until they release it.
    """
    values = _device_values(facts, now)
    if not facts.model:
        values |= {name: getattr(device, name) for name in _DEVICE_IDENTITY}
    memory_mib = facts.memory_mib or device.memory_mib
    values["memory_mib"] = max(memory_mib, device.allocated_memory_mib) if memory_mib else 0
    return values


def _samples(
    cluster: Cluster,
    seen: Mapping[str, NodeFacts],
    nodes: Mapping[str, Node],
    devices: Mapping[DeviceKey, Device],
    now: datetime,
) -> Iterator[SampleRow]:
    for name, facts in seen.items():
        if not facts.reachable:
            continue
        node = nodes[name]
        held = min(node.allocated_cpu_milli / facts.cpu_milli, 1.0) if facts.cpu_milli else None
        busy, used = facts.cpu_utilised_frac, facts.memory_used_mib
        yield (now, cluster.pk, node.pk, None, None, busy, held, used, None, None)
        for uid, it in facts.devices.items():
            device = devices[node.pk, uid]
            held = device.allocated_milli / 1000
            busy, used = it.utilised_frac, it.memory_used_mib
            place = (now, cluster.pk, node.pk, device.pk, None)
            yield (*place, busy, held, used, it.power_w, it.temperature_c)


def _update(statement: str, cluster: Cluster, rows: Sequence[Row]) -> None:
    if rows:
        document = json.dumps(rows, default=datetime.isoformat, allow_nan=False)
        with connection.cursor() as cursor:
            cursor.execute(statement, [cluster.pk, document])


def _tell(cluster: Cluster, nodes: _Changes, *, changed: bool) -> None:
    for event, names in (
        ("nodes_appeared", nodes.appeared),
        ("nodes_lost", nodes.lost),
        ("nodes_returned", nodes.returned),
    ):
        if names:
            logger.info(
                "%s cluster=%s count=%d nodes=%s",
                event,
                cluster.slug,
                len(names),
                ",".join(names[:NAMES_LOGGED]),
            )
    if changed:
        events.nodes_changed.publish(events.NodesChanged(cluster.pk, cluster.slug))
    events.cluster_sampled.publish(events.ClusterSampled(cluster.pk, cluster.slug))


def _columns(row: Node | Device, names: Sequence[str]) -> Row:
    return {"id": row.pk, **{name: getattr(row, name) for name in names}}


def _differs(row: Node | Device, values: Row, names: Sequence[str]) -> bool:
    return any(getattr(row, name) != values[name] for name in names)
