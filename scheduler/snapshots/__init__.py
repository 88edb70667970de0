"""Database -> Snapshot: the frozen world of one decision, in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
from django.db import connection, transaction
from django.db.models import F, QuerySet

from scheduler.choices import FINAL_STATES
from scheduler.core.policy import Policy
from scheduler.core.resources import CPU_FLAVOR, ReplicaShape
from scheduler.core.snapshot import (
    BoolArray,
    DemandKind,
    FlavorSpec,
    Fleet,
    IntArray,
    QuotaLine,
    Snapshot,
    TenantNode,
)
from scheduler.decide.arrivals import MOST_ARRIVALS, Arrival, demand_mix
from scheduler.decide.scoring import LEARNING
from scheduler.models import Job
from scheduler.selectors.pairings import pairing_table
from scheduler.selectors.throughputs import throughput_table
from scheduler.services.keys import FleetKeys
from scheduler.simulate.usage import HALF_LIFE_S, RATIO_COUNT, most_used
from scheduler.snapshots.expected import expectations
from scheduler.snapshots.jobs import classed, job_spec, pending_jobs, running_jobs
from scheduler.snapshots.policies import policy_of
from telemetry.choices import DeviceHealth, NodeState, Scheduling
from telemetry.models import Cluster, Device, Node
from tenants.models import Quota, Tenant

__all__ = [
    "HALF_LIFE_S",
    "Frozen",
    "arrived",
    "classed",
    "job_spec",
    "one_instant",
    "policy_of",
    "take",
]

NODE_COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "allocated_cpu_milli",
    "allocated_memory_mib",
    "state",
    "scheduling",
    "labels",
    "taints",
)
DEVICE_COLUMNS = (
    "node_id",
    "uid",
    "index",
    "flavor",
    "memory_mib",
    "compute_units",
    "power_limit_w",
    "health",
    "link_group",
    "numa_node",
    "nic",
    "throttled",
    "parent_uid",
    "allocated_milli",
    "allocated_memory_mib",
)
"""All that a decision looks at, of nodes and of devices."""


MIX_COLUMNS = (
    "replicas_max",
    "flavors",
    "cpu_milli",
    "memory_mib",
    "devices",
    "gpu_milli",
    "gpu_memory_mib",
)
"""Replicas and flavors of a job, and the fields of `ReplicaShape`."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """A snapshot, the database keys in the order of its arrays, and the policy of that instant.

    Attributes:
        past_use: (tenant, flavor) -> decayed use; the snapshot has that of the most used flavor.
    """

    snapshot: Snapshot
    keys: FleetKeys
    policy: Policy
    past_use: Mapping[tuple[str, str], float]


def take(*, cluster: Cluster, now: datetime) -> Frozen:
    """Freeze a cluster, as it is at one instant: what commits meanwhile is not seen."""
    with one_instant():
        return _take(cluster, now)


@contextmanager
def one_instant() -> Iterator[None]:
    """Let all queries see the same state; inside another transaction, that one's view holds."""
    nested = connection.in_atomic_block
    with transaction.atomic():
        if not nested:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _take(cluster: Cluster, now: datetime) -> Frozen:
    rows = Node.objects.filter(cluster=cluster).only(*NODE_COLUMNS)
    nodes = sorted(rows, key=lambda node: node.name)
    devices = _devices(cluster, nodes)
    fleet = _fleet(nodes, devices)
    node_index = {node.pk: i for i, node in enumerate(nodes)}
    device_index = {device.pk: i for i, device in enumerate(devices)}
    throughputs = throughput_table()
    running = running_jobs(cluster, node_index, device_index, now)
    specs = classed((job.spec for job in running), throughputs)
    policy, past_use = policy_of(cluster), _past_use(cluster, fleet, now)
    snapshot = Snapshot(
        cluster=cluster.slug,
        now_s=now.timestamp(),
        fleet=fleet,
        pending=classed(pending_jobs(cluster, now), throughputs),
        running=tuple(replace(job, spec=spec) for job, spec in zip(running, specs, strict=True)),
        tenants=_tenants(cluster),
        usage_decayed=most_used(past_use),
        runtime_ratios=_runtime_ratios(cluster, now),
        throughputs=throughputs,
        expectations=expectations(cluster, now),
        demand_mix=arrived(Job.objects.filter(cluster=cluster))
        if policy.placement in LEARNING
        else (),
        pairs=pairing_table(),
    )
    keys = FleetKeys(tuple(n.pk for n in nodes), tuple(d.pk for d in devices))
    return Frozen(snapshot, keys, policy, past_use)


def _devices(cluster: Cluster, nodes: Sequence[Node]) -> list[Device]:
    """Return what can be placed on or holds something: not a device cut into slices (MIG)."""
    order = {node.pk: i for i, node in enumerate(nodes)}
    rows = list(Device.objects.filter(node__cluster=cluster).only(*DEVICE_COLUMNS))
    sliced = _sliced(rows)
    kept = (d for d in rows if (d.node_id, d.uid) not in sliced or d.allocated_milli)
    return sorted(kept, key=lambda d: (order[d.node_id], d.index, d.uid))


def _sliced(devices: Iterable[Device]) -> set[tuple[int, str]]:
    return {(d.node_id, d.parent_uid) for d in devices if d.parent_uid}


def _fleet(nodes: Sequence[Node], devices: Sequence[Device]) -> Fleet:
    names = sorted({device.flavor for device in devices})
    position = {name: i for i, name in enumerate(names)}
    order = {node.pk: i for i, node in enumerate(nodes)}
    first = {device.flavor: device for device in reversed(devices)}
    notes = tuple(_note(node) for node in nodes)
    sliced = _sliced(devices)
    return Fleet(
        node_names=tuple(node.name for node in nodes),
        node_cpu_milli=_ints(n.cpu_milli for n in nodes),
        node_memory_mib=_ints(n.memory_mib for n in nodes),
        node_cpu_free_milli=_ints(n.cpu_milli - n.allocated_cpu_milli for n in nodes),
        node_memory_free_mib=_ints(n.memory_mib - n.allocated_memory_mib for n in nodes),
        node_ready=_bools(note == "" for note in notes),
        node_note=notes,
        node_taints=tuple(frozenset(n.taints) for n in nodes),
        node_labels=tuple(dict(n.labels) for n in nodes),
        device_uids=tuple(f"{d.node_id}/{d.uid}" for d in devices),
        device_node=_ints(order[d.node_id] for d in devices),
        device_flavor=_ints(position[d.flavor] for d in devices),
        device_free_milli=_ints(1000 - d.allocated_milli for d in devices),
        device_free_memory_mib=_ints(d.memory_mib - d.allocated_memory_mib for d in devices),
        device_memory_mib=_ints(d.memory_mib for d in devices),
        device_healthy=_bools(
            d.health == DeviceHealth.HEALTHY and (d.node_id, d.uid) not in sliced for d in devices
        ),
        device_link_group=_ints(d.link_group for d in devices),
        device_numa=_ints(d.numa_node for d in devices),
        device_nic=_numbers(d.nic for d in devices),
        device_throttled=_bools(d.throttled for d in devices),
        flavors=tuple(
            FlavorSpec(
                name=name,
                compute_units=first[name].compute_units,
                memory_mib=first[name].memory_mib,
                power_w=first[name].power_limit_w,
            )
            for name in names
        ),
    )


def _note(node: Node) -> str:
    if node.state != NodeState.READY:
        return str(NodeState(node.state))
    return "" if node.scheduling == Scheduling.OPEN else str(Scheduling(node.scheduling))


def _ints(values: Iterable[int]) -> IntArray:
    array = np.fromiter(values, dtype=np.int64)
    array.setflags(write=False)
    return array


def _numbers(names: Iterable[str]) -> IntArray:
    """Return the place of each name among all of them, -1 for none."""
    named = list(names)
    place = {name: i for i, name in enumerate(sorted(set(named) - {""}))}
    return _ints(place.get(name, -1) for name in named)


def _bools(values: Iterable[bool]) -> BoolArray:
    array = np.fromiter(values, dtype=np.bool_)
    array.setflags(write=False)
    return array


def _tenants(cluster: Cluster) -> tuple[TenantNode, ...]:
    quotas: dict[int, dict[str, QuotaLine]] = defaultdict(dict)
    for quota in Quota.objects.filter(cluster=cluster):
        quotas[quota.tenant_id][quota.flavor] = QuotaLine(
            nominal=quota.nominal,
            borrowing_limit=quota.borrowing_limit,
            lending_limit=quota.lending_limit,
        )
    return tuple(
        TenantNode(
            slug=row.slug,
            parent=row.parent,
            fair_weight=row.fair_weight,
            quotas=quotas[row.pk],
            queue_priority=row.queue_priority,
            created_s=row.created_at.timestamp(),
            preemption_fence=row.preemption_fence,
        )
        for row in _parents_first()
    )


class _TenantRow(NamedTuple):
    pk: int
    slug: str
    fair_weight: float
    queue_priority: int
    created_at: datetime
    preemption_fence: bool
    parent: str | None


def _parents_first() -> list[_TenantRow]:
    rows = Tenant.objects.without_tree_fields().order_by("slug")
    children: dict[str | None, list[_TenantRow]] = defaultdict(list)
    columns = (*_TenantRow._fields[:-1], "parent__slug")
    for values in rows.values_list(*columns):
        row = _TenantRow(*values)
        children[row.parent].append(row)
    ordered: list[_TenantRow] = []
    stack = list(reversed(children[None]))
    while stack:
        row = stack.pop()
        ordered.append(row)
        stack.extend(reversed(children[row.slug]))
    return ordered


_DECAYED = """
SELECT tenant.slug, used.flavor, SUM(used.milli * (
    power(0.5, EXTRACT(epoch FROM %(now)s - LEAST(used.closed_at, %(now)s)) / %(half)s)
    - power(0.5, EXTRACT(epoch FROM %(now)s - LEAST(used.opened_at, %(now)s)) / %(half)s)
))
FROM scheduler_ledgerentry used JOIN tenants_tenant tenant ON tenant.id = used.tenant_id
WHERE used.cluster_id = %(cluster)s AND used.closed_at > %(since)s
GROUP BY tenant.slug, used.flavor
"""


def _past_use(cluster: Cluster, fleet: Fleet, now: datetime) -> dict[tuple[str, str], float]:
    """Return (tenant, flavor) -> past use as a fraction of capacity over one half-life.

    The integral of 0.5^(age / half-life) over the time held, divided by the integral of full
    capacity over all the past, half-life / ln 2.
    Source: Slurm priority_multifactor (decay), KAI time-based fairshare (capacity as the norm).
    """
    capacity = _capacity(fleet)
    with connection.cursor() as cursor:
        cursor.execute(
            _DECAYED,
            {
                "now": now,
                "half": HALF_LIFE_S,
                "cluster": cluster.pk,
                "since": now - timedelta(seconds=8 * HALF_LIFE_S),
            },
        )
        rows = cursor.fetchall()
    return {
        (tenant, flavor): max(0.0, float(decayed)) / capacity[flavor]
        for tenant, flavor, decayed in rows
        if capacity.get(flavor)
    }


def _capacity(fleet: Fleet) -> dict[str, int]:
    count = np.bincount(fleet.device_flavor, minlength=len(fleet.flavors)) * 1000
    capacity = {flavor.name: int(n) for flavor, n in zip(fleet.flavors, count, strict=True)}
    capacity[CPU_FLAVOR] = int(fleet.node_cpu_milli.sum())
    return capacity


def _runtime_ratios(cluster: Cluster, now: datetime) -> tuple[float, ...]:
    """Return how much of its time limit each of the last jobs has really run, ascending."""
    rows = (
        Job.objects.filter(
            cluster=cluster,
            state__in=FINAL_STATES,
            finished_at__gte=F("started_at"),  # neither is null then
            finished_at__lte=now,
        )
        .order_by("-finished_at")
        .values_list("started_at", "finished_at", "time_limit_s")[:RATIO_COUNT]
    )
    ratios = (
        (finished - started).total_seconds() * cluster.clock_scale / limit
        for started, finished, limit in rows
        if finished is not None and started is not None
    )
    return tuple(sorted(min(1.0, ratio) for ratio in ratios))  # more is the grace of a stop


def arrived(jobs: QuerySet[Job]) -> tuple[DemandKind, ...]:
    """Return what the last of some jobs asked for (`scheduler.decide.arrivals`); one query."""
    rows = jobs.order_by("-submitted_at", "-uid").values_list(*MIX_COLUMNS)[:MOST_ARRIVALS]
    return demand_mix(
        Arrival(ReplicaShape(*amounts), tuple(flavors), replicas)
        for replicas, flavors, *amounts in rows
    )
