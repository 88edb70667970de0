"""Synthetic fleets and queues for the benchmarks: one seed, one world."""

from dataclasses import dataclass, replace

import numpy as np

from scheduler.core.plan import Plan
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
from scheduler.simulate.holdings import Holdings

NOW_S = 1_800_000_000.0
TENANTS = 12
FLAVORS = (
    FlavorSpec("a100-80gb", 312.0, 81_920, 400.0),
    FlavorSpec("h100-sxm", 989.0, 81_920, 700.0),
    FlavorSpec("v100-32gb", 125.0, 32_768, 300.0),
)
RUNTIME_RATIOS = tuple(k / 200 for k in range(1, 201))
"""Two hundred jobs that ended anywhere within their time limits, as the product reads them."""

MIX = np.array([0.5, 0.2, 0.2])
"""Parts of the nodes with each flavor; the rest has CPUs only."""


@dataclass(frozen=True, slots=True)
class _Kinds:
    devices: tuple[int, ...] = (0, 1, 1, 1, 1, 2, 2, 4, 8, 8)
    limits_s: tuple[float, ...] = (1800.0, 3600.0, 4 * 3600.0, 12 * 3600.0, 86400.0)
    replicas: tuple[int, ...] = (1, 1, 1, 1, 1, 1, 2, 4)
    shares: tuple[int, ...] = (100, 250, 500)


KINDS = _Kinds()

LENT_BUSY = 0.98
"""Chance that a node goes on being filled where everything is lent."""


def world(nodes: int, pending: int, seed: int, *, busy: float = 0.5) -> Snapshot:
    """Return a cluster of which about a `busy` part is held, and a queue."""
    rng = np.random.default_rng(seed)
    fleet = _fleet(nodes, rng)
    running = _running(fleet, rng, busy)
    jobs = tuple(_job(f"job-{i:06d}", rng, wait_s=86400.0) for i in range(pending))
    return Snapshot(
        "bench", NOW_S, fleet, jobs, running, _tenants(fleet), runtime_ratios=RUNTIME_RATIOS
    )


def lent(nodes: int, pending: int, seed: int) -> Snapshot:
    """Return a full cluster that six teams own, who all wait, and the six others hold."""
    snapshot, half = world(nodes, pending, seed, busy=LENT_BUSY), TENANTS // 2

    def moved(job: JobSpec, first: int) -> JobSpec:
        return replace(job, tenant=f"team-{first + int(job.tenant[-2:]) % half:02d}", priority=0)

    owners = {f"team-{t:02d}" for t in range(half)}
    tenants = [
        replace(
            tenant,
            quotas={
                name: QuotaLine(2 * line.nominal if tenant.slug in owners else 0)
                for name, line in tenant.quotas.items()
            },
        )
        for tenant in snapshot.tenants
    ]
    return replace(
        snapshot,
        pending=tuple(moved(job, 0) for job in snapshot.pending),
        running=tuple(replace(job, spec=moved(job.spec, half)) for job in snapshot.running),
        tenants=tuple(tenants),
    )


def after(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the world once a plan's starts run; nothing else has happened."""
    jobs = {job.uid: job for job in snapshot.pending}
    held = Holdings(snapshot.fleet)
    begun = []
    for start in plan.starts:
        job = jobs.pop(start.uid)
        held.take(job.shape, start.replicas, job.uid)
        begun.append(RunningJob(job, start.replicas, plan.now_s))
    return replace(
        snapshot,
        fleet=held.freeze(),
        pending=tuple(jobs.values()),
        running=(*snapshot.running, *begun),
    )


def _fleet(nodes: int, rng: np.random.Generator) -> Fleet:
    kind = rng.choice(len(FLAVORS) + 1, size=nodes, p=[*MIX, 1 - MIX.sum()])
    per_node = np.where(kind < len(FLAVORS), 8, 0)
    device_node = np.repeat(np.arange(nodes), per_node)
    flavor = kind[device_node]
    memory = np.array([f.memory_mib for f in FLAVORS])[flavor]
    cpu = np.full(nodes, 128_000, dtype=np.int64)
    ram = np.full(nodes, 1_048_576, dtype=np.int64)
    ready = rng.random(nodes) > 0.01
    return Fleet(
        node_names=tuple(f"node-{i:05d}" for i in range(nodes)),
        node_cpu_milli=cpu,
        node_memory_mib=ram,
        node_cpu_free_milli=cpu.copy(),
        node_memory_free_mib=ram.copy(),
        node_ready=ready,
        node_note=tuple("" if ok else "cordoned" for ok in ready),
        node_taints=(frozenset[str](),) * nodes,
        node_labels=({},) * nodes,
        device_uids=tuple(f"dev-{i:06d}" for i in range(len(device_node))),
        device_node=device_node.astype(np.int64),
        device_flavor=flavor.astype(np.int64),
        device_free_milli=np.full(len(device_node), 1000, dtype=np.int64),
        device_free_memory_mib=memory.astype(np.int64),
        device_memory_mib=memory.astype(np.int64),
        device_healthy=rng.random(len(device_node)) > 0.002,
        device_link_group=(np.arange(len(device_node)) % 8 // 4).astype(np.int64),
        flavors=FLAVORS,
    )


def _running(fleet: Fleet, rng: np.random.Generator, busy: float) -> tuple[RunningJob, ...]:
    """Hold whole devices of random nodes, in blocks of 1 to 8."""
    jobs: list[RunningJob] = []
    for node in np.unique(fleet.device_node):
        devices = np.flatnonzero(fleet.device_node == node)
        while len(devices) and rng.random() < busy:
            size = min(int(rng.choice([1, 2, 4, 8])), len(devices))
            block, devices = devices[:size], devices[size:]
            spec = _job(f"run-{len(jobs):06d}", rng, devices=size)
            jobs.append(_hold(fleet, spec, int(node), block, rng))
    return tuple(jobs)


def _hold(
    fleet: Fleet,
    spec: JobSpec,
    node: int,
    block: np.ndarray[tuple[int], np.dtype[np.int64]],
    rng: np.random.Generator,
) -> RunningJob:
    memory = int(fleet.device_memory_mib[block].min())
    fleet.node_cpu_free_milli[node] -= spec.shape.cpu_milli
    fleet.node_memory_free_mib[node] -= spec.shape.memory_mib
    fleet.device_free_milli[block] = 0
    fleet.device_free_memory_mib[block] = 0
    place = ReplicaPlacement(node, tuple(int(d) for d in block), 1000, memory)
    return RunningJob(spec, (place,), NOW_S - float(rng.random()) * spec.time_limit_s)


def _job(
    uid: str, rng: np.random.Generator, *, devices: int | None = None, wait_s: float = 0.0
) -> JobSpec:
    running = devices is not None
    asked = int(rng.choice(KINDS.devices)) if devices is None else devices
    share = asked == 1 and not running and rng.random() < 0.3
    replicas = 1 if running or asked == 0 else int(rng.choice(KINDS.replicas))
    flavors = () if running or asked == 0 or rng.random() < 0.4 else _flavors(rng)
    shape = ReplicaShape(
        cpu_milli=4000 * max(asked, 1),
        memory_mib=32_768 * max(asked, 1),
        devices=asked,
        gpu_milli=int(rng.choice(KINDS.shares)) if share else 1000,
    )
    return JobSpec(
        uid=uid,
        tenant=f"team-{int(rng.integers(TENANTS)):02d}",
        kind="training",
        shape=shape,
        replicas_min=1 if share else replicas,
        replicas_max=1 if share else replicas,
        flavors=flavors,
        priority=int(rng.choice([0, 0, 0, 1])),
        preemptible=True,
        time_limit_s=float(rng.choice(KINDS.limits_s)),
        submitted_s=NOW_S - float(np.floor(rng.random() * wait_s)),
    )


def _flavors(rng: np.random.Generator) -> tuple[str, ...]:
    names = [flavor.name for flavor in FLAVORS]
    count = int(rng.integers(1, len(names) + 1))
    return tuple(names[i] for i in rng.permutation(len(names))[:count])


def _tenants(fleet: Fleet) -> tuple[TenantNode, ...]:
    """Give twelve teams in three departments equal nominal quotas that add up to the fleet."""
    owned = {
        flavor.name: QuotaLine(1000 * int((fleet.device_flavor == i).sum()) // TENANTS)
        for i, flavor in enumerate(fleet.flavors)
    }
    named = {name: QuotaLine(0) for name in owned}
    root = TenantNode("all", None, 1.0, named)
    departments = [TenantNode(f"dept-{d}", "all", 1.0, named) for d in range(3)]
    teams = [
        TenantNode(f"team-{t:02d}", f"dept-{t % 3}", 1.0 + t % 2, owned) for t in range(TENANTS)
    ]
    return (root, *departments, *teams)
