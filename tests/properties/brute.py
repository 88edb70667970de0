"""What a plan must keep, each rule by its definition: slow, and sharing nothing with the verifier.

Places are counted replica by replica on a copy of what is free, quotas walked up from each tenant.
"""

from collections.abc import Iterator
from dataclasses import replace

from scheduler.core.plan import Plan, Start
from scheduler.core.policy import Policy
from scheduler.core.snapshot import Fleet, JobSpec, ReplicaPlacement, Snapshot
from tests.builders import BLOCK, RACK
from tests.properties.laws import Tree, broken_laws, broken_shrinks, charges, flavor_of


def wrongs(snapshot: Snapshot, plan: Plan, policy: Policy) -> list[str]:
    """Return what is wrong with a plan, [] where all is well."""
    found = list(_answers(snapshot, plan)) or list(_resizes(snapshot, plan))
    found = found or [w for start in plan.starts for w in _places(snapshot.fleet, start)]
    if found:
        return found  # nothing more can be asked of a plan that names what is not there
    found = list(_unlawful(snapshot, plan, policy))
    jobs = {job.uid: job for job in snapshot.pending}
    grown = list(_grown(snapshot, plan))
    for start in plan.starts:
        found += _may_not_start(snapshot, plan.now_s, jobs[start.uid], start)
        found += _shape(snapshot.fleet, jobs[start.uid], start)
        found += _wishes(snapshot.fleet, jobs[start.uid], start)
        found += _reserved(snapshot, plan.now_s, jobs[start.uid], start)
    for job, start, limit_s, whole in grown:
        found += _shape(snapshot.fleet, job, start)
        found += _wishes(snapshot.fleet, job, replace(start, replicas=whole))
        found += _reserved(snapshot, plan.now_s, job, start, limit_s)
    begun = [(jobs[s.uid], s) for s in plan.starts] + [(job, start) for job, start, *_ in grown]
    found += _room(snapshot, begun)
    found += _neighbours(snapshot, begun)
    found += _apart(snapshot, begun)
    found += _quota(snapshot, begun)
    found += _firm(snapshot, [(job, start) for job, start in begun if start in plan.starts])
    return found + _power(snapshot.fleet, begun, policy.power_cap_w)


def _apart(snapshot: Snapshot, begun: list[tuple[JobSpec, Start]]) -> Iterator[str]:
    there = [(job.spec, r.node) for job in snapshot.running for r in job.replicas]
    there += [(job, replica.node) for job, start in begun for replica in start.replicas]
    for job, start in begun:
        for other, node in there:
            near = node in {replica.node for replica in start.replicas}
            same = (job.tenant, job.anti_affinity) == (other.tenant, other.anti_affinity)
            if near and same and job.anti_affinity and job.uid != other.uid:
                yield "beside one of its group"


def _answers(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    if plan.cluster != snapshot.cluster or plan.now_s != snapshot.now_s:
        yield "another cluster or time"
    answered = sorted([s.uid for s in plan.starts] + [p.uid for p in plan.pending])
    if answered != sorted(job.uid for job in snapshot.pending):
        yield "not every job is answered once"


def _places(fleet: Fleet, start: Start) -> Iterator[str]:
    for replica in start.replicas:
        if replica.node not in range(len(fleet.node_names)):
            yield "no such node"
        elif any(device not in range(len(fleet.device_uids)) for device in replica.devices):
            yield "no such device"


def _resizes(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    running = {job.spec.uid: job for job in snapshot.running}
    named = [p.uid for p in plan.preempts] + [r.uid for r in plan.resizes]
    if len(set(named)) < len(named) or not set(named) <= running.keys():
        yield "told twice, or does not run"
        return
    if any(running[uid].ending_s is not None for uid in named):
        yield "told already"
    for one in plan.resizes:
        job, has = running[one.uid], list(running[one.uid].replicas)
        yield from _places(snapshot.fleet, Start(one.uid, one.replicas, ""))
        if not job.spec.replicas_min <= len(one.replicas) <= job.spec.replicas_max:
            yield "resized beyond its bounds"
        less, more = (list(one.replicas), has) if one.beneficiary else (has, list(one.replicas))
        if len(less) >= len(more) or any(less.count(r) > more.count(r) for r in less):
            yield "does not keep its replicas"


def _unlawful(snapshot: Snapshot, plan: Plan, policy: Policy) -> Iterator[str]:
    codes = {p.uid: p.code for p in plan.pending}
    takers = [p.beneficiary for p in plan.preempts]
    takers += [r.beneficiary for r in plan.resizes if r.beneficiary]
    if any(codes.get(uid) != "waiting_for_preempted_jobs" for uid in takers):
        yield "for one that does not wait for it"
        return
    jobs = {job.uid: job for job in snapshot.pending} | {
        job.spec.uid: job.spec for job in snapshot.running
    }
    known = {tenant.slug for tenant in snapshot.tenants}
    named = [p.uid for p in plan.preempts] + [r.uid for r in plan.resizes if r.beneficiary]
    if any(jobs[uid].tenant not in known for uid in (*takers, *named)):
        yield "of no tenant"
        return
    yield from broken_laws(snapshot, plan, policy.preemption)
    yield from broken_shrinks(snapshot, plan, policy.preemption)


def _grown(
    snapshot: Snapshot, plan: Plan
) -> Iterator[tuple[JobSpec, Start, float, tuple[ReplicaPlacement, ...]]]:
    running = {job.spec.uid: job for job in snapshot.running}
    for one in plan.resizes:
        if one.beneficiary:
            continue
        job, added = running[one.uid], list(one.replicas)
        for replica in job.replicas:
            added.remove(replica)
        left_s = max(0.0, job.started_s + job.spec.time_limit_s - plan.now_s)
        held = flavor_of(snapshot, job.replicas)
        spec = replace(job.spec, flavors=())  # it goes on with the one that it has
        yield spec, Start(one.uid, tuple(added), held), left_s, one.replicas


def _may_not_start(snapshot: Snapshot, now_s: float, job: JobSpec, start: Start) -> Iterator[str]:
    fleet = snapshot.fleet
    if job.tenant not in {tenant.slug for tenant in snapshot.tenants}:
        yield "of no tenant"
    if job.hold or job.not_before_s > now_s:
        yield "on hold, or backs off"
    if not job.replicas_min <= len(start.replicas) <= job.replicas_max:
        yield "gang"
    if job.shape.devices:
        units = {f.name: f.compute_units or 0.0 for f in fleet.flavors}
        speed = snapshot.throughputs.get((job.job_class or job.kind, start.flavor))
        if speed is None:
            speed = units.get(start.flavor, 0.0) / (max(units.values()) or 1.0)
        if speed < job.min_throughput:
            yield "too slow"


def _shape(fleet: Fleet, job: JobSpec, start: Start) -> Iterator[str]:
    shape = job.shape
    for replica in start.replicas:
        if not fleet.node_ready[replica.node]:
            yield "node not ready"
        if not fleet.node_taints[replica.node] <= job.tolerations:
            yield "taint"
        if len(replica.devices) != shape.devices or len(set(replica.devices)) != shape.devices:
            yield "devices"
        if replica.devices and replica.gpu_milli != shape.gpu_milli:
            yield "milli"
        yield from _devices(fleet, job, start, replica)


def _devices(fleet: Fleet, job: JobSpec, start: Start, replica: ReplicaPlacement) -> Iterator[str]:
    for device in replica.devices:
        name = fleet.flavors[int(fleet.device_flavor[device])].name
        if job.flavors and not any(
            name == asked or name.endswith(f"-mig-{asked}") for asked in job.flavors
        ):
            yield "flavor that was not asked for"
        if name != start.flavor or fleet.device_node[device] != replica.node:
            yield "another flavor or node"
        hot = len(fleet.device_throttled) > 0 and bool(fleet.device_throttled[device])
        if not fleet.device_healthy[device] or hot:
            yield "sick or hot"
        if fleet.device_memory_mib[device] < job.shape.gpu_memory_mib:
            yield "memory of the device"


def _wishes(fleet: Fleet, job: JobSpec, start: Start) -> Iterator[str]:
    nodes = [replica.node for replica in start.replicas]
    if job.placement_wish == "one_per_node" and len(nodes) != len(set(nodes)):
        yield "two on a node"
    if job.topology is None or not job.topology.required:
        return
    homes = {_home(fleet, job.topology.level.value, replica) for replica in start.replicas}
    if len(homes) != 1 or None in homes:
        yield "not near to each other"


def _home(fleet: Fleet, level: str, replica: ReplicaPlacement) -> object:
    labels = fleet.node_labels[replica.node]
    if level == "node":
        return replica.node
    if level == "block":
        return labels.get(BLOCK)
    if level == "rack":
        return (labels.get(BLOCK), labels[RACK]) if RACK in labels else None
    return _island(fleet, level, replica) if replica.devices else None


def _island(fleet: Fleet, level: str, replica: ReplicaPlacement) -> object:
    named = {"link": fleet.device_link_group, "nic": fleet.device_nic, "numa": fleet.device_numa}
    groups = named[level]
    where = {int(groups[device]) if len(groups) else -1 for device in replica.devices}
    if len(where) > 1:
        return None
    if where == {-1}:
        lonely = level == "link" and len(replica.devices) == 1
        return ("alone", replica.devices[0]) if lonely else None
    return (replica.node, *where)


def _reserved(
    snapshot: Snapshot, now_s: float, job: JobSpec, start: Start, limit_s: float | None = None
) -> Iterator[str]:
    ends_s = now_s + (job.time_limit_s if limit_s is None else limit_s)
    tree = Tree(snapshot.tenants, "cpu")
    line = tree.line(job.tenant) if job.tenant in tree.tenants else []
    for one in snapshot.reservations:
        mine = job.uid in one.jobs or any(slug in one.tenants for slug in line)
        meets = one.start_s < ends_s and now_s < one.end_s
        if meets and not mine and any(replica.node in one.nodes for replica in start.replicas):
            yield "reserved"


def _room(snapshot: Snapshot, begun: list[tuple[JobSpec, Start]]) -> list[str]:
    fleet = snapshot.fleet
    cpu, memory = fleet.node_cpu_free_milli.copy(), fleet.node_memory_free_mib.copy()
    milli, mib = fleet.device_free_milli.copy(), fleet.device_free_memory_mib.copy()
    used_nodes, used_devices = set[int](), set[int]()
    for job, start in begun:
        for replica in start.replicas:
            used_nodes.add(replica.node)
            cpu[replica.node] -= job.shape.cpu_milli
            memory[replica.node] -= job.shape.memory_mib
            for device in replica.devices:
                used_devices.add(device)
                milli[device] -= replica.gpu_milli
                has = int(fleet.device_memory_mib[device])
                asks = job.shape.gpu_memory_mib or has * job.shape.gpu_milli // 1000
                asks = has if job.shape.gpu_milli == 1000 else asks
                mib[device] -= max(asks, replica.gpu_memory_mib)
    short = any(cpu[n] < 0 or memory[n] < 0 for n in used_nodes)
    return ["room"] if short or any(milli[d] < 0 or mib[d] < 0 for d in used_devices) else []


def _neighbours(snapshot: Snapshot, begun: list[tuple[JobSpec, Start]]) -> list[str]:
    there = [
        (device, job.spec.interference, False)
        for job in snapshot.running
        for replica in job.replicas
        if replica.gpu_milli < 1000
        for device in replica.devices
    ]
    there += [
        (device, job.interference, True)
        for job, start in begun
        for replica in start.replicas
        if replica.gpu_milli < 1000
        for device in replica.devices
    ]
    for i, (device, one, new) in enumerate(there):
        for other_device, other, other_new in there[:i]:
            if device == other_device and (new or other_new):
                told = snapshot.pairs.get((one, other), (1, 1))
                turned = snapshot.pairs.get((other, one), (1, 1))
                if min(*told, *turned) < 0.5:
                    return ["a pair that is slow together"]
    return []


def _held(snapshot: Snapshot, begun: list[tuple[JobSpec, Start]]) -> dict[tuple[str, str], int]:
    held: dict[tuple[str, str], int] = {}
    all_of = [(j.spec, flavor_of(snapshot, j.replicas), len(j.replicas)) for j in snapshot.running]
    all_of += [(job, start.flavor, len(start.replicas)) for job, start in begun]
    for job, flavor, count in all_of:
        for name, amount in charges(job, flavor, count).items():
            held[job.tenant, name] = held.get((job.tenant, name), 0) + amount
    return held


def _quota(snapshot: Snapshot, begun: list[tuple[JobSpec, Start]]) -> list[str]:
    held, found = _held(snapshot, begun), []
    limited = {name for tenant in snapshot.tenants for name in tenant.quotas}
    for job, start in begun:
        if job.tenant not in {tenant.slug for tenant in snapshot.tenants}:
            continue
        for flavor in charges(job, start.flavor, 1).keys() & limited:
            tree, slug = Tree(snapshot.tenants, flavor), job.tenant
            if flavor not in tree.tenants[slug].quotas and held.get((slug, flavor), 0):
                found.append("a flavor that it may not use")
            while True:
                tenant, use = tree.tenants[slug], tree.use(slug, held)
                if tenant.parent is None:
                    found += ["quota"] if use > tree.guarantee(slug) else []
                    break
                line = tenant.quotas.get(flavor)
                if use <= tree.kept(slug):
                    break
                if line and line.borrowing_limit is not None:
                    most = tree.guarantee(slug) + line.borrowing_limit
                    found += ["borrows too much"] if use > most else []
                slug = tenant.parent
    return found


def _firm(snapshot: Snapshot, begun: list[tuple[JobSpec, Start]]) -> list[str]:
    firm = [(job, start) for job, start in begun if not job.preemptible]
    held = [job for job in snapshot.running if not job.spec.preemptible]
    held_all = _held(replace(snapshot, running=tuple(held)), firm)
    limited = {name for tenant in snapshot.tenants for name in tenant.quotas}
    tenants = {tenant.slug: tenant for tenant in snapshot.tenants}
    for job, start in firm:
        wants = charges(job, start.flavor, 1)
        for flavor in (name for name in wants if wants[name] and name in limited):
            line = tenants[job.tenant].quotas.get(flavor) if job.tenant in tenants else None
            if held_all[job.tenant, flavor] > (line.nominal if line else 0):
                return ["firm beyond its own"]
    return []


def _power(fleet: Fleet, begun: list[tuple[JobSpec, Start]], cap_w: float | None) -> list[str]:
    if cap_w is None:
        return []
    known = [f.power_w for f in fleet.flavors if f.power_w is not None]
    watts = [max(known, default=0.0) if f.power_w is None else f.power_w for f in fleet.flavors]
    of_device = [watts[int(flavor)] for flavor in fleet.device_flavor]
    held = sum(
        w * (1000 - int(free)) / 1000
        for w, free in zip(of_device, fleet.device_free_milli, strict=True)
    )
    added = sum(
        of_device[device] * replica.gpu_milli / 1000
        for _, start in begun
        for replica in start.replicas
        for device in replica.devices
    )
    return ["power"] if added and held + added > cap_w + 1e-6 else []
