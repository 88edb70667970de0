"""Fluent builders of core values, for tests of pure code.

fleet = FleetBuilder().node("n1", cpu=8, devices=4, flavor="a100").build()
snapshot = world(fleet, [job("a", tenant="t", devices=2)], tenants=[tenant("t", a100=4)])
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import (
    FlavorSpec,
    Fleet,
    JobSpec,
    QuotaLine,
    ReplicaPlacement,
    RunningJob,
    Snapshot,
    TenantNode,
)
from scheduler.core.topology import BLOCK_LABELS, RACK_LABELS, Level, TopologyWish

NOW_S = 1_000_000.0
RACK, BLOCK = RACK_LABELS[0], BLOCK_LABELS[0]


@dataclass
class _Node:
    name: str
    cpu_milli: int
    memory_mib: int
    devices: int
    flavor: str
    ready: bool
    note: str
    taints: frozenset[str]
    sick: frozenset[int]
    groups: tuple[int, ...]
    numa: tuple[int, ...]
    nics: tuple[int, ...]
    labels: dict[str, str]


@dataclass
class FleetBuilder:
    """Builds a fleet node by node; nodes are sorted by name at the end."""

    nodes: list[_Node] = field(default_factory=list)
    flavors: dict[str, FlavorSpec] = field(default_factory=dict)

    def flavor(
        self,
        name: str,
        *,
        cu: float | None = 100.0,
        memory_mib: int = 80_000,
        power_w: float | None = 400.0,
    ) -> "FleetBuilder":
        self.flavors[name] = FlavorSpec(name, cu, memory_mib, power_w)
        return self

    def node(
        self,
        name: str,
        *,
        cpu: int = 64,
        memory_mib: int = 512_000,
        devices: int = 0,
        flavor: str = "a100",
        ready: bool = True,
        note: str = "",
        taints: Sequence[str] = (),
        sick: Sequence[int] = (),
        groups: Sequence[int] = (),
        numa: Sequence[int] = (),
        nics: Sequence[int] = (),
        rack: str = "",
        block: str = "",
    ) -> "FleetBuilder":
        if devices and flavor not in self.flavors:
            self.flavor(flavor)
        self.nodes.append(
            _Node(
                name,
                cpu * 1000,
                memory_mib,
                devices,
                flavor,
                ready,
                note,
                frozenset(taints),
                frozenset(sick),
                tuple(groups),
                tuple(numa),
                tuple(nics),
                {name: at for name, at in ((RACK, rack), (BLOCK, block)) if at},
            )
        )
        return self

    def build(self, running: Sequence[RunningJob] = ()) -> Fleet:
        nodes = sorted(self.nodes, key=lambda node: node.name)
        flavors = tuple(self.flavors[name] for name in sorted(self.flavors))
        index = {flavor.name: i for i, flavor in enumerate(flavors)}
        places = [(n, i) for n, node in enumerate(nodes) for i in range(node.devices)]
        of = [index[nodes[n].flavor] for n, _ in places]
        memory = np.array([flavors[f].memory_mib for f in of], dtype=np.int64)
        cpu = np.array([node.cpu_milli for node in nodes], dtype=np.int64)
        ram = np.array([node.memory_mib for node in nodes], dtype=np.int64)
        fleet = Fleet(
            node_names=tuple(node.name for node in nodes),
            node_cpu_milli=cpu,
            node_memory_mib=ram,
            node_cpu_free_milli=cpu.copy(),
            node_memory_free_mib=ram.copy(),
            node_ready=np.array([node.ready for node in nodes], dtype=np.bool_),
            node_note=tuple(node.note for node in nodes),
            node_taints=tuple(node.taints for node in nodes),
            node_labels=tuple(node.labels for node in nodes),
            device_uids=tuple(f"{nodes[n].name}/{i}" for n, i in places),
            device_node=np.array([n for n, _ in places], dtype=np.int64),
            device_flavor=np.array(of, dtype=np.int64),
            device_free_milli=np.full(len(places), 1000, dtype=np.int64),
            device_free_memory_mib=memory.copy(),
            device_memory_mib=memory,
            device_healthy=np.array([i not in nodes[n].sick for n, i in places], dtype=np.bool_),
            device_link_group=np.array(
                [nodes[n].groups[i] if nodes[n].groups else -1 for n, i in places], dtype=np.int64
            ),
            flavors=flavors,
            device_numa=np.array(
                [nodes[n].numa[i] if nodes[n].numa else -1 for n, i in places], dtype=np.int64
            ),
            device_nic=np.array(
                [nodes[n].nics[i] if nodes[n].nics else -1 for n, i in places], dtype=np.int64
            ),
        )
        for job in running:
            _hold(fleet, job)
        return fleet


def _hold(fleet: Fleet, job: RunningJob) -> None:
    for replica in job.replicas:
        fleet.node_cpu_free_milli[replica.node] -= job.spec.shape.cpu_milli
        fleet.node_memory_free_mib[replica.node] -= job.spec.shape.memory_mib
        for device in replica.devices:
            fleet.device_free_milli[device] -= replica.gpu_milli
            fleet.device_free_memory_mib[device] -= replica.gpu_memory_mib


def job(
    uid: str,
    *,
    tenant: str = "t",
    devices: int = 0,
    cpu: int = 1,
    memory_mib: int = 1000,
    milli: int = 1000,
    gpu_memory_mib: int = 0,
    replicas: int = 1,
    replicas_max: int | None = None,
    flavors: Sequence[str] = (),
    priority: int = 0,
    limit_s: float = 3600.0,
    submitted_s: float = NOW_S,
    tolerations: Sequence[str] = (),
    hold: str = "",
    not_before_s: float = 0.0,
    min_throughput: float = 0.0,
    within: str = "",
    near: str = "",
    placement: str = "",
    interference: str = "",
) -> JobSpec:
    """`within` is a level that is required, `near` one that is preferred."""
    return JobSpec(
        uid=uid,
        tenant=tenant,
        kind="batch",
        shape=ReplicaShape(cpu * 1000, memory_mib, devices, milli, gpu_memory_mib),
        replicas_min=replicas,
        replicas_max=replicas_max or replicas,
        flavors=tuple(flavors),
        priority=priority,
        preemptible=True,
        time_limit_s=limit_s,
        submitted_s=submitted_s,
        tolerations=frozenset(tolerations),
        hold=hold,
        not_before_s=not_before_s,
        min_throughput=min_throughput,
        topology=TopologyWish(Level(within or near), bool(within)) if within or near else None,
        placement_wish=placement,
        interference=interference,
    )


def running(
    spec: JobSpec,
    node: int,
    devices: Sequence[int] = (),
    *,
    started_s: float = NOW_S,
    gpu_memory_mib: int = 80_000,
) -> RunningJob:
    held = ReplicaPlacement(node, tuple(devices), spec.shape.gpu_milli, gpu_memory_mib)
    if not devices:
        held = ReplicaPlacement(node, (), 0, 0)
    return RunningJob(spec, (held,), started_s)


def tenant(
    slug: str, *, under: str | None = None, weight: float = 1.0, **devices: int | QuotaLine
) -> TenantNode:
    """Quotas are whole devices (or cores, for `cpu`), or a ready line."""
    quotas = {
        flavor: line if isinstance(line, QuotaLine) else QuotaLine(line * 1000)
        for flavor, line in devices.items()
    }
    return TenantNode(slug, under, weight, quotas)


def world(
    fleet: FleetBuilder,
    pending: Sequence[JobSpec] = (),
    *,
    running: Sequence[RunningJob] = (),
    tenants: Sequence[TenantNode] | None = None,
    now_s: float = NOW_S,
) -> Snapshot:
    owners = sorted({spec.tenant for spec in [*pending, *(r.spec for r in running)]})
    return Snapshot(
        cluster="c",
        now_s=now_s,
        fleet=fleet.build(running),
        pending=tuple(pending),
        running=tuple(running),
        tenants=tuple(tenants) if tenants is not None else tuple(tenant(o) for o in owners),
    )


def with_pending(snapshot: Snapshot, pending: Sequence[JobSpec]) -> Snapshot:
    return replace(snapshot, pending=tuple(pending))
