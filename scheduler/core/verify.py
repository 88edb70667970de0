"""An independent check of a plan: it shares no code with the engine that made it."""

from collections import Counter
from dataclasses import replace

import numpy as np

from scheduler.core.disruptions import check_disruptions, growth
from scheduler.core.errors import InvalidPlanError
from scheduler.core.firm import check_firm
from scheduler.core.held import charge, upwards
from scheduler.core.plan import Plan, Start
from scheduler.core.policy import Policy
from scheduler.core.resources import (
    CPU_FLAVOR,
    ONE_PER_NODE,
    WHOLE_MILLI,
    ReplicaShape,
    may_be_given,
)
from scheduler.core.snapshot import Fleet, JobSpec, ReplicaPlacement, Snapshot
from scheduler.core.topology import Level, domain_of

HALF = 0.5
"""What a job has of a device on which it takes turns."""


def verify(
    snapshot: Snapshot, plan: Plan, policy: Policy | None = None, *, now_s: float | None = None
) -> None:
    """Check a plan against the snapshot it was made on.

    Args:
        snapshot: the frozen world, valid.
        plan: what is to be carried out.
        policy: whose power cap and rules of preemption are to be kept; None = no such rules.
        now_s: when it was made, epoch seconds; None = whenever the plan says.

    Raises:
        InvalidPlanError: names the invariant that is broken and the job, node or tenant.
    """
    _require(plan.cluster == snapshot.cluster, f"the plan is of cluster {plan.cluster!r}")
    _require(now_s is None or plan.now_s == now_s, f"the plan is of {plan.now_s}")
    jobs = {job.uid: job for job in snapshot.pending}
    answered = Counter([s.uid for s in plan.starts] + [p.uid for p in plan.pending])
    for uid in jobs.keys() | answered.keys():
        _require(uid in jobs, f"job {uid!r} is not pending")
        _require(answered[uid] == 1, f"job {uid!r} is answered {answered[uid]} times")
    _check_places(snapshot.fleet, plan)
    check_disruptions(snapshot, plan, policy.preemption if policy else None)
    for start in plan.starts:
        _check_may_start(snapshot, plan.now_s, jobs[start.uid], start)
    check_firm(snapshot, jobs, plan)
    for spec, more in growth(snapshot, plan):  # what is added must have room as a start must
        jobs[more.uid], plan = spec, replace(plan, starts=(*plan.starts, more))
    specs = {job.spec.uid: job.spec for job in snapshot.running}
    for one in plan.resizes:
        if not one.beneficiary:
            _check_wishes(snapshot.fleet, specs[one.uid], Start(one.uid, one.replicas, ""))
    for start in plan.starts:
        _check_start(snapshot.fleet, jobs[start.uid], start)
        _check_reserved(snapshot, plan.now_s, jobs[start.uid], start)
    _check_capacity(snapshot.fleet, jobs, plan)
    _check_sharing(snapshot, jobs, plan)
    _check_apart(snapshot, jobs, plan)
    _check_quota(snapshot, jobs, plan)
    if policy and policy.power_cap_w is not None:
        _check_power(snapshot.fleet, plan, policy.power_cap_w)


def _require(condition: bool | np.bool_, message: str) -> None:
    if not condition:
        raise InvalidPlanError(message)


def _check_places(fleet: Fleet, plan: Plan) -> None:
    """Nodes and devices are those of the fleet: a negative index would count from the end."""
    placed = [(one.uid, one.replicas) for one in plan.starts]
    placed += [(one.uid, one.replicas) for one in plan.resizes]
    for uid, replicas in placed:
        for replica in replicas:
            known = 0 <= replica.node < len(fleet.node_names)
            _require(known, f"job {uid!r} is on no known node")
            good = all(0 <= device < len(fleet.device_uids) for device in replica.devices)
            _require(good, f"job {uid!r} holds no known device")


def _check_may_start(snapshot: Snapshot, now_s: float, job: JobSpec, start: Start) -> None:
    """What keeps a job from any start: its tenant, a hold, a back-off, a flavor too slow for it."""
    uid, name = job.uid, start.flavor
    known = any(tenant.slug == job.tenant for tenant in snapshot.tenants)
    _require(known, f"job {uid!r} is of no known tenant")
    _require(not job.hold, f"job {uid!r} is on hold")
    _require(job.not_before_s <= now_s, f"job {uid!r} backs off until {job.not_before_s}")
    if job.min_throughput and job.shape.devices:
        units = {flavor.name: flavor.compute_units or 0.0 for flavor in snapshot.fleet.flavors}
        of_units = units.get(name, 0.0) / max(*units.values(), 1e-9)
        speed = snapshot.throughputs.get((job.job_class or job.kind, name), of_units)
        _require(speed >= job.min_throughput, f"job {uid!r} is too slow on {name!r}: {speed}")


def _check_start(fleet: Fleet, job: JobSpec, start: Start) -> None:
    """Gang bounds, one allowed flavor, health, taints, and each replica's own shape."""
    uid, shape = job.uid, job.shape
    count = len(start.replicas)
    _require(job.replicas_min <= count <= job.replicas_max, f"job {uid!r} has {count} replicas")
    allowed = not shape.devices or may_be_given(start.flavor, job.flavors, shape.devices)
    _require(allowed, f"job {uid!r} may not use flavor {start.flavor!r}")
    _check_wishes(fleet, job, start)
    for replica in start.replicas:
        node, devices = replica.node, replica.devices
        _require(bool(fleet.node_ready[node]), f"job {uid!r} is on a node that is not ready")
        _require(fleet.node_taints[node] <= job.tolerations, f"job {uid!r} is on a tainted node")
        whole = len(set(devices)) == len(devices) == shape.devices
        _require(whole, f"a replica of job {uid!r} has {len(devices)} devices")
        if devices:
            _require(replica.gpu_milli == shape.gpu_milli, f"job {uid!r} holds other milli")
        for device in devices:
            flavor = _flavor(fleet, device)
            _require(fleet.device_node[device] == node, f"job {uid!r} mixes nodes in a replica")
            _require(flavor == start.flavor, f"job {uid!r} mixes flavors")
            _require(bool(fleet.device_healthy[device]), f"job {uid!r} is on a sick device")
            hot = len(fleet.device_throttled) and fleet.device_throttled[device]
            _require(not hot, f"job {uid!r} is on a throttled device")
            has = int(fleet.device_memory_mib[device])
            _require(has >= shape.gpu_memory_mib, f"job {uid!r} needs more memory than {has} MiB")


def _check_reserved(snapshot: Snapshot, now_s: float, job: JobSpec, start: Start) -> None:
    """No job runs, by its time limit, on a node while that is reserved for others."""
    used = {replica.node for replica in start.replicas}
    for one in snapshot.reservations:
        meets = one.start_s < now_s + job.time_limit_s and one.end_s > now_s
        if meets and not used.isdisjoint(one.nodes):
            may = job.uid in one.jobs or not one.tenants.isdisjoint(upwards(snapshot, job.tenant))
            _require(may, f"job {job.uid!r} is in the way of reservation {one.id!r}")


def _check_wishes(fleet: Fleet, job: JobSpec, start: Start) -> None:
    """One domain of the level that is required, and one replica a node where that is asked."""
    nodes = [replica.node for replica in start.replicas]
    if job.placement_wish == ONE_PER_NODE:
        _require(len(set(nodes)) == len(nodes), f"job {job.uid!r} has two replicas on one node")
    if job.topology is None or not job.topology.required:
        return
    level = job.topology.level
    domains = {_domain(fleet, level, replica) for replica in start.replicas}
    near = len(domains) == 1 and () not in domains
    _require(near, f"job {job.uid!r} is not in one {level}")


def _domain(fleet: Fleet, level: Level, replica: ReplicaPlacement) -> tuple[int | str, ...]:
    """Return the domain that a replica is in as a whole, () where it is in none."""
    node, devices = replica.node, replica.devices
    if level in {Level.RACK, Level.BLOCK}:
        return domain_of(fleet.node_labels[node], level)
    if level is Level.NODE:
        return (node,)
    tables = {Level.LINK: fleet.device_link_group, Level.NIC: fleet.device_nic}
    table = tables.get(level, fleet.device_numa)
    groups = {int(table[device]) for device in devices} if len(table) else {-1}
    if len(groups) == 1 and -1 not in groups:
        return (node, *groups)
    alone = level is Level.LINK and len(devices) == 1  # no links: an island of its own
    return (node, -1, devices[0]) if alone else ()


def _check_capacity(fleet: Fleet, jobs: dict[str, JobSpec], plan: Plan) -> None:
    """No node and no device gives more than it has free."""
    cpu, memory = Counter[int](), Counter[int]()
    milli, device_memory = Counter[int](), Counter[int]()
    for start in plan.starts:
        shape = jobs[start.uid].shape
        for replica in start.replicas:
            cpu[replica.node] += shape.cpu_milli
            memory[replica.node] += shape.memory_mib
            for device in replica.devices:
                milli[device] += replica.gpu_milli
                least = _least_memory(shape, int(fleet.device_memory_mib[device]))
                device_memory[device] += max(replica.gpu_memory_mib, least)
    checks = (
        ("cpu of node", cpu, fleet.node_cpu_free_milli),
        ("memory of node", memory, fleet.node_memory_free_mib),
        ("milli of device", milli, fleet.device_free_milli),
        ("memory of device", device_memory, fleet.device_free_memory_mib),
    )
    for what, taken, free in checks:
        for index, amount in taken.items():
            _require(amount <= free[index], f"{what} {index}: {amount} taken, {free[index]} free")


def _least_memory(shape: ReplicaShape, has_mib: int) -> int:
    """Return what a replica takes of a device's memory: all, what it asks for, or its part."""
    part = shape.gpu_memory_mib or has_mib * shape.gpu_milli // WHOLE_MILLI
    return part if shape.gpu_milli < WHOLE_MILLI else has_mib


def _check_apart(snapshot: Snapshot, jobs: dict[str, JobSpec], plan: Plan) -> None:
    """Nothing starts on a node where another job of its tenant and group is or starts."""
    there: dict[tuple[str, str, int], set[str]] = {}
    held = [(job.spec, job.replicas) for job in snapshot.running]
    for job, replicas in [*held, *((jobs[s.uid], s.replicas) for s in plan.starts)]:
        for replica in replicas if job.anti_affinity else ():
            key = (job.tenant, job.anti_affinity, replica.node)
            there.setdefault(key, set()).add(job.uid)
    for start in plan.starts:
        job = jobs[start.uid]
        for replica in start.replicas if job.anti_affinity else ():
            others = there[job.tenant, job.anti_affinity, replica.node] - {job.uid}
            _require(not others, f"job {job.uid!r} shares a node with {sorted(others)}")


def _check_sharing(snapshot: Snapshot, jobs: dict[str, JobSpec], plan: Plan) -> None:
    """Nothing starts on a device beside a class with which either runs below one half."""
    slow = {pair for pair, rates in snapshot.pairs.items() if rates[0] < HALF or rates[1] < HALF}
    if not slow:
        return
    on_device: dict[int, list[str]] = {}
    held = [(job.spec, job.replicas) for job in snapshot.running]
    for number, (job, replicas) in enumerate(
        [*held, *((jobs[start.uid], start.replicas) for start in plan.starts)]
    ):
        for device in (d for r in replicas if r.gpu_milli < WHOLE_MILLI for d in r.devices):
            others = on_device.setdefault(device, [])
            for other in others if number >= len(held) else ():
                pair = (job.interference, other)
                good = pair not in slow and pair[::-1] not in slow
                _require(good, f"job {job.uid!r} shares device {device} with class {other!r}")
            others.append(job.interference)


def _check_quota(snapshot: Snapshot, jobs: dict[str, JobSpec], plan: Plan) -> None:
    """Wherever something started, no tenant on the way up passes what it may hold."""
    usage = Counter[tuple[str, str]]()
    for job in snapshot.running:
        charge(usage, job.spec, snapshot.fleet.flavor_held(job.replicas), len(job.replicas))
    started = set()
    for start in plan.starts:
        job_spec = jobs[start.uid]
        charge(usage, job_spec, start.flavor, len(start.replicas))
        started |= {(job_spec.tenant, CPU_FLAVOR), (job_spec.tenant, start.flavor)}
    for flavor in sorted({name for tenant in snapshot.tenants for name in tenant.quotas}):
        tenants = {tenant for tenant, name in started if name == flavor}
        if tenants:
            _check_flavor(snapshot, flavor, usage, tenants)


def _flavor(fleet: Fleet, device: int) -> str:
    return fleet.flavors[int(fleet.device_flavor[device])].name


def _check_flavor(
    snapshot: Snapshot, flavor: str, usage: Counter[tuple[str, str]], started: set[str]
) -> None:
    """Walk the tree from the leaves, carrying what each lends up and what each takes from above."""
    owned, concerned = Counter[str](), set(started)
    used = Counter({tenant: usage[tenant, flavor] for tenant, name in usage if name == flavor})
    for tenant in reversed(snapshot.tenants):
        slug, line = tenant.slug, tenant.quotas.get(flavor)
        owned[slug] += line.nominal if line else 0
        limit = line.borrowing_limit if line else None
        lends = line.lending_limit if line else None
        kept = 0 if lends is None else max(0, owned[slug] - lends)
        from_above = max(0, used[slug] - kept)
        if slug in started:
            named = line is not None or usage[slug, flavor] == 0
            _require(named, f"{slug!r} may not use {flavor!r}")
        if slug in concerned:
            if tenant.parent is None:
                _require(used[slug] <= owned[slug], f"{slug!r} passes its quota of {flavor!r}")
            elif from_above and limit is not None:
                most = owned[slug] + limit
                _require(used[slug] <= most, f"{slug!r} borrows too much {flavor!r}")
        if tenant.parent is not None:
            owned[tenant.parent] += owned[slug] - kept
            used[tenant.parent] += from_above
            if slug in concerned and from_above:
                concerned.add(tenant.parent)


def _check_power(fleet: Fleet, plan: Plan, cap_w: float) -> None:
    """What starts raises the board power of what is allocated to the cap at most."""
    known = [flavor.power_w for flavor in fleet.flavors if flavor.power_w is not None]
    most = max(known, default=0.0)
    board = [round(1000 * (most if f.power_w is None else f.power_w)) for f in fleet.flavors]
    board_mw = np.array([*board, 0], dtype=np.int64)[fleet.device_flavor]
    held = int(((WHOLE_MILLI - fleet.device_free_milli) * board_mw).sum())
    added = sum(
        replica.gpu_milli * int(board_mw[device])
        for start in plan.starts
        for replica in start.replicas
        for device in replica.devices
    )
    watts = (held + added) / 1e6
    _require(not added or watts <= cap_w, f"{watts} W pass the power cap of {cap_w} W")
