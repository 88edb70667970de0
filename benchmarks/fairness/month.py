"""A synthetic month: twelve teams in three departments, steady work, bursts, and a deadline rush.

Quotas add up to the cluster. Teams lend and borrow: one team of each department may borrow only as
much again as it owns, one lends only half of what it owns, and the root owns a pool for all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import FlavorSpec, Fleet, JobSpec, QuotaLine, Snapshot, TenantNode
from scheduler.simulate.jobs import SimJob

BEGIN_S = 1_800_000_000.0
DAY_S, HOUR_S = 86_400.0, 3_600.0
FLAVOR = FlavorSpec("a100-80gb", 312.0, 81_920, 400.0)
DEVICES_PER_NODE = 8
CORES_PER_DEVICE, MEMORY_MIB_PER_DEVICE = 8_000, 65_536


@dataclass(frozen=True, slots=True)
class Team:
    """One of the four teams that every department has.

    Attributes:
        owned: devices.
        weight: fair weight.
        borrowing, lending: limits in devices, None = no limit.
    """

    owned: int
    weight: float = 1.0
    borrowing: int | None = None
    lending: int | None = None


TEAMS = (Team(16), Team(12, lending=6), Team(8, weight=2.0), Team(4, borrowing=4))
DEPARTMENTS = 3
POOL = 8
"""Devices that the root owns for everybody."""

NODES = (DEPARTMENTS * sum(team.owned for team in TEAMS) + POOL) // DEVICES_PER_NODE

SIZES = (1, 1, 1, 2, 2, 4, 4, 8)
RUNTIME_MEDIAN_S, RUNTIME_SPREAD, RUNTIME_MOST_S = 1.5 * HOUR_S, 0.8, 12 * HOUR_S
STEADY_LOAD = 0.75
"""Work that a team hands in steadily, in parts of what it owns."""

BURST_EVERY_S, BURST_LASTS_S, BURST_WORK_S = 5 * DAY_S, 4 * HOUR_S, 8 * HOUR_S
"""On average so often, over so long, 1 to 4 times what the team owns for so many seconds."""

RUSH, RUSH_FACTOR = (20 * DAY_S, 22 * DAY_S), 2.0
"""Before a deadline everybody hands in so many times the steady work."""

HIGH_CLASS_PART = 0.1
"""Jobs of the high class, which may not be evicted, as in a new installation."""


def tenants() -> tuple[TenantNode, ...]:
    """Return the tree: the root, three departments, four teams each."""
    none = {FLAVOR.name: QuotaLine(0)}
    tree = [TenantNode("all", None, 1.0, {FLAVOR.name: QuotaLine(1000 * POOL)})]
    tree += [TenantNode(f"dept-{d}", "all", 1.0, none) for d in range(DEPARTMENTS)]
    for d in range(DEPARTMENTS):
        for t, team in enumerate(TEAMS):
            line = QuotaLine(1000 * team.owned, _milli(team.borrowing), _milli(team.lending))
            quotas = {FLAVOR.name: line}
            tree.append(TenantNode(f"team-{d}{t}", f"dept-{d}", team.weight, quotas))
    return tuple(tree)


def _milli(devices: int | None) -> int | None:
    return None if devices is None else 1000 * devices


def world() -> Snapshot:
    """Return the cluster with nothing on it."""
    devices = NODES * DEVICES_PER_NODE
    at = np.repeat(np.arange(NODES, dtype=np.int64), DEVICES_PER_NODE)
    cpu = np.full(NODES, CORES_PER_DEVICE * DEVICES_PER_NODE, dtype=np.int64)
    memory = np.full(NODES, MEMORY_MIB_PER_DEVICE * DEVICES_PER_NODE, dtype=np.int64)
    device_memory = np.full(devices, FLAVOR.memory_mib, dtype=np.int64)
    fleet = Fleet(
        node_names=tuple(f"node-{n:03d}" for n in range(NODES)),
        node_cpu_milli=cpu,
        node_memory_mib=memory,
        node_cpu_free_milli=cpu.copy(),
        node_memory_free_mib=memory.copy(),
        node_ready=np.ones(NODES, dtype=np.bool_),
        node_note=("",) * NODES,
        node_taints=(frozenset[str](),) * NODES,
        node_labels=({},) * NODES,
        device_uids=tuple(f"device-{d:04d}" for d in range(devices)),
        device_node=at,
        device_flavor=np.zeros(devices, dtype=np.int64),
        device_free_milli=np.full(devices, 1000, dtype=np.int64),
        device_free_memory_mib=device_memory,
        device_memory_mib=device_memory,
        device_healthy=np.ones(devices, dtype=np.bool_),
        device_link_group=(np.arange(devices, dtype=np.int64) % DEVICES_PER_NODE) // 4,
        flavors=(FLAVOR,),
    )
    return Snapshot("month", BEGIN_S, fleet, (), (), tenants())


def jobs(seed: int, days: float) -> list[SimJob]:
    """Return the jobs of every team, each from a stream of its own."""
    found: list[SimJob] = []
    for tenant in tenants():
        owned = tenant.quotas[FLAVOR.name].nominal / 1000
        if tenant.slug.startswith("team"):
            rng = np.random.default_rng([seed, int(tenant.slug[-2:])])
            arrivals = sorted([*_steady(owned, days, rng), *_bursts(owned, days, rng)])
            found += [
                _job(f"{tenant.slug}-{k:05d}", tenant.slug, at_s, rng)
                for k, at_s in enumerate(arrivals)
            ]
    return found


def _mean_work_s() -> float:
    """Return the device-seconds of the mean job; the cut of long runtimes is left aside."""
    mean_s = RUNTIME_MEDIAN_S * float(np.exp(RUNTIME_SPREAD**2 / 2))
    return float(np.mean(SIZES)) * mean_s


def _steady(owned: float, days: float, rng: np.random.Generator) -> Iterator[float]:
    at_s, gap_s = 0.0, _mean_work_s() / (STEADY_LOAD * owned)
    while True:
        rushing = RUSH[0] <= at_s < RUSH[1]
        at_s += float(rng.exponential(gap_s / RUSH_FACTOR if rushing else gap_s))
        if at_s >= days * DAY_S:
            return
        yield at_s


def _bursts(owned: float, days: float, rng: np.random.Generator) -> Iterator[float]:
    at_s = float(rng.exponential(BURST_EVERY_S))
    while at_s < days * DAY_S:
        work_s = owned * float(rng.uniform(1, 4)) * BURST_WORK_S
        for offset_s in rng.uniform(0, BURST_LASTS_S, size=round(work_s / _mean_work_s())).tolist():
            if at_s + offset_s < days * DAY_S:
                yield at_s + offset_s
        at_s += float(rng.exponential(BURST_EVERY_S))


def _job(uid: str, tenant: str, at_s: float, rng: np.random.Generator) -> SimJob:
    devices = int(rng.choice(SIZES))
    runs_s = float(RUNTIME_MEDIAN_S * np.exp(RUNTIME_SPREAD * rng.standard_normal()))
    runs_s = min(max(round(runs_s), 300.0), RUNTIME_MOST_S)
    high = bool(rng.random() < HIGH_CLASS_PART)
    spec = JobSpec(
        uid=uid,
        tenant=tenant,
        kind="training",
        shape=ReplicaShape(CORES_PER_DEVICE * devices, MEMORY_MIB_PER_DEVICE * devices, devices),
        replicas_min=1,
        replicas_max=1,
        flavors=(FLAVOR.name,),
        priority=int(high),
        preemptible=not high,
        time_limit_s=round(runs_s * float(rng.uniform(1.1, 3.0))),
        submitted_s=BEGIN_S + round(at_s),
    )
    return SimJob(spec, work=runs_s, checkpoint_every_s=900.0, saves_when_told=rng.random() < 0.5)
