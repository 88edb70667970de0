"""The baseline: jobs in submit order, each replica on the first node that has room.

Plain loops, as one would write them first, but that nodes which had no room for a kind of replica
are not looked at again for it: nothing frees within a cycle. It keeps quota, gangs, flavors, taints
and health, so its starts are legal, but it plans nothing, reserves nothing and explains nothing.
"""

from dataclasses import dataclass

from scheduler.core.plan import Start
from scheduler.core.resources import WHOLE_MILLI, ReplicaShape
from scheduler.core.snapshot import JobSpec, ReplicaPlacement, Snapshot
from scheduler.decide.quota import QuotaLedger, QuotaTree, charges_of


@dataclass(slots=True)
class _Room:
    """What is left, as plain lists."""

    cpu: list[int]
    memory: list[int]
    milli: list[int]
    device_memory: list[int]
    devices_of: list[list[int]]
    first: dict[tuple[ReplicaShape, frozenset[str], int], int]


def first_fit(snapshot: Snapshot) -> list[Start]:
    """Return the starts of one pass."""
    room, ledger = _room(snapshot), QuotaLedger(QuotaTree(snapshot.tenants))
    names = [flavor.name for flavor in snapshot.fleet.flavors]
    for held in snapshot.running:
        flavor = snapshot.fleet.flavor_held(held.replicas)
        for charge in charges_of(held.spec, len(held.replicas), flavor):
            ledger.add(held.spec.tenant, charge)
    starts = []
    for job in sorted(snapshot.pending, key=lambda job: (job.submitted_s, job.uid)):
        start = _try(snapshot, room, ledger, job, names)
        if start:
            starts.append(start)
    return starts


def _room(snapshot: Snapshot) -> _Room:
    fleet = snapshot.fleet
    devices_of: list[list[int]] = [[] for _ in fleet.node_names]
    for device, node in enumerate(fleet.device_node.tolist()):
        if fleet.device_healthy[device]:
            devices_of[node].append(device)
    return _Room(
        fleet.node_cpu_free_milli.tolist(),
        fleet.node_memory_free_mib.tolist(),
        fleet.device_free_milli.tolist(),
        fleet.device_free_memory_mib.tolist(),
        devices_of,
        {},
    )


def _try(
    snapshot: Snapshot, room: _Room, ledger: QuotaLedger, job: JobSpec, names: list[str]
) -> Start | None:
    flavors = list(job.flavors or names) if job.shape.devices else [""]
    for flavor in flavors:
        charges = charges_of(job, job.replicas_min, flavor)
        if any(ledger.available(job.tenant, c.flavor) < c.amount for c in charges):
            continue
        placed: list[ReplicaPlacement] = []
        before = dict(room.first)
        for _ in range(job.replicas_min):
            place = _place(snapshot, room, job, names.index(flavor) if flavor else -1)
            if place is None:
                break
            placed.append(place)
            _hold(room, job, place, 1)
        if len(placed) == job.replicas_min:
            for charge in charges:
                ledger.add(job.tenant, charge)
            return Start(job.uid, tuple(placed), flavor)
        for place in placed:
            _hold(room, job, place, -1)
        room.first = before
    return None


def _place(snapshot: Snapshot, room: _Room, job: JobSpec, flavor: int) -> ReplicaPlacement | None:
    fleet, shape = snapshot.fleet, job.shape
    kind = (shape, job.tolerations, flavor)
    for node in range(room.first.get(kind, 0), len(room.cpu)):
        room.first[kind] = node
        if room.cpu[node] < shape.cpu_milli or room.memory[node] < shape.memory_mib:
            continue
        if not fleet.node_ready[node] or not fleet.node_taints[node] <= job.tolerations:
            continue
        found: list[int] = []
        for device in room.devices_of[node] if shape.devices else ():
            memory = _memory(snapshot, job, device)
            fits = room.milli[device] >= shape.gpu_milli and room.device_memory[device] >= memory
            if fits and fleet.device_flavor[device] == flavor:
                found.append(device)
                if len(found) == shape.devices:
                    break
        if len(found) == shape.devices:
            memory = min((_memory(snapshot, job, device) for device in found), default=0)
            return ReplicaPlacement(node, tuple(found), shape.gpu_milli if found else 0, memory)
    room.first[kind] = len(room.cpu)
    return None


def _memory(snapshot: Snapshot, job: JobSpec, device: int) -> int:
    whole = int(snapshot.fleet.device_memory_mib[device])
    if not job.shape.is_fraction:
        return whole
    return job.shape.gpu_memory_mib or whole * job.shape.gpu_milli // WHOLE_MILLI


def _hold(room: _Room, job: JobSpec, place: ReplicaPlacement, sign: int) -> None:
    room.cpu[place.node] -= sign * job.shape.cpu_milli
    room.memory[place.node] -= sign * job.shape.memory_mib
    for device in place.devices:
        room.milli[device] -= sign * place.gpu_milli
        room.device_memory[device] -= sign * place.gpu_memory_mib
