"""Random worlds with every feature at once: small, crowded, and as odd as a valid snapshot can be.

What runs holds places that are free, so that a world never contradicts itself; quotas are not
asked, as they may have been cut since.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from scheduler.core.policy import ObjectiveWeights, Policy, PreemptionPolicy, PriorityWeights
from scheduler.core.snapshot import (
    DemandKind,
    Expectation,
    JobSpec,
    ReplicaPlacement,
    RunningJob,
    Snapshot,
    TenantNode,
)
from scheduler.decide.scoring import SCORES
from tests.builders import NOW_S, FleetBuilder, world
from tests.properties.worlds import jobs, lines, reservations

FLAVORS = {
    "a100": (312.0, 80_000, 400.0),
    "h100": (989.0, 80_000, 700.0),
    "odd": (None, 16_000, None),
    "a100-mig-1g.10gb": (40.0, 10_000, 60.0),
}
SHAPES: dict[str, dict[str, str | None]] = {
    "flat": {"left": None, "right": None, "inner": None},
    "deep": {"all": None, "left": "all", "inner": "left", "right": "all"},
    "forest": {"left": None, "right": None, "inner": "right"},
}
CLASSES = ("", "lm", "cv")
RATES = st.sampled_from([0.2, 0.49, 0.5, 0.9])
MOMENTS = st.sampled_from([-90_000.0, -700.0, -61.0, 0.0, 40.0])


@st.composite
def trees(draw: st.DrawFn) -> list[TenantNode]:
    flavors = sorted(draw(st.sets(st.sampled_from([*FLAVORS, "cpu"]), max_size=3)))
    return [
        TenantNode(
            slug,
            parent,
            draw(st.sampled_from([0.0, 1.0, 1.0, 2.5])),
            {name: draw(lines()) for name in flavors if draw(st.integers(0, 4))},
            preemption_fence=draw(st.integers(0, 5)) == 5,
            queue_priority=draw(st.sampled_from([0, 0, 0, 2])),
            created_s=draw(st.sampled_from([0.0, NOW_S])),
        )
        for slug, parent in SHAPES[draw(st.sampled_from(sorted(SHAPES)))].items()
    ]


@dataclass
class _Room:
    """What is free of one node while it is filled."""

    node: int
    first: int
    cpu: int
    memory: int
    flavor: str
    milli: list[int] = field(default_factory=list)
    device_memory: list[int] = field(default_factory=list)

    def take(self, spec: JobSpec) -> ReplicaPlacement | None:
        """Hold the first devices that have room for one replica."""
        shape, has = spec.shape, FLAVORS[self.flavor][1]
        share = has if shape.gpu_milli == 1000 else has * shape.gpu_milli // 1000
        share = shape.gpu_memory_mib if shape.gpu_milli < 1000 and shape.gpu_memory_mib else share
        roomy = [
            i
            for i, milli in enumerate(self.milli)
            if milli >= shape.gpu_milli and self.device_memory[i] >= share
        ][: shape.devices]
        short = self.cpu < shape.cpu_milli or self.memory < shape.memory_mib
        if short or len(roomy) < shape.devices:
            return None
        self.cpu -= shape.cpu_milli
        self.memory -= shape.memory_mib
        for i in roomy:
            self.milli[i] -= shape.gpu_milli
            self.device_memory[i] -= share
        if not shape.devices:
            return ReplicaPlacement(self.node, (), 0, 0)
        devices = tuple(self.first + i for i in roomy)
        return ReplicaPlacement(self.node, devices, shape.gpu_milli, share)


@st.composite
def fleets(draw: st.DrawFn) -> FleetBuilder:
    fleet = FleetBuilder()
    for name, (cu, memory, watts) in FLAVORS.items():
        fleet.flavor(name, cu=cu, memory_mib=memory, power_w=watts)
    for i in range(draw(st.integers(0, 4))):
        devices = draw(st.sampled_from([0, 1, 2, 2, 4, 8]))
        fleet.node(
            f"n{i}",
            cpu=draw(st.integers(1, 16)),
            memory_mib=draw(st.sampled_from([4_000, 64_000])),
            devices=devices,
            flavor=draw(st.sampled_from(sorted(FLAVORS))),
            ready=draw(st.integers(0, 5)) > 0,
            note="cordoned",
            taints=draw(st.sampled_from([(), (), (), ("gpu",)])),
            sick=sorted(draw(st.sets(st.integers(0, 7), max_size=1))),
            groups=[k // 2 for k in range(devices)] if draw(st.booleans()) else (),
            numa=[k // 4 for k in range(devices)] if draw(st.booleans()) else (),
            nics=[k // 2 for k in range(devices)] if draw(st.booleans()) else (),
            rack=draw(st.sampled_from(["r0", "r1", ""])),
            block=draw(st.sampled_from(["x", "y", ""])),
        )
    return fleet


@st.composite
def specs(draw: st.DrawFn, uid: str, tenants: list[str]) -> JobSpec:
    spec = draw(jobs(uid))
    flavors = draw(st.sampled_from([spec.flavors, spec.flavors, ("1g.10gb",), ("none",)]))
    return replace(
        spec,
        tenant=draw(st.sampled_from([*tenants, *tenants, "gone"])),
        kind=draw(st.sampled_from(["batch", "training", "notebook", "inference"])),
        flavors=flavors,
        submitted_s=NOW_S + draw(MOMENTS),
        not_before_s=draw(st.sampled_from([0.0, 0.0, 0.0, NOW_S - 30, NOW_S + 50])),
        promised_s=draw(st.sampled_from([0.0, 0.0, 0.0, NOW_S - 10, NOW_S - 100])),
        preempted_count=draw(st.sampled_from([0, 0, 0, 2, 3])),
        min_throughput=draw(st.sampled_from([0.0, 0.0, 0.0, 0.3, 1.0])),
        job_class=draw(st.sampled_from(CLASSES)),
        interference=draw(st.sampled_from(CLASSES)),
    )


@st.composite
def busy(draw: st.DrawFn, fleet: FleetBuilder, tenants: list[str]) -> list[RunningJob]:
    """Fill the fleet with some gangs; a gang is of one flavor."""
    rooms, first = [], 0
    for n, node in enumerate(fleet.nodes):  # named in order already
        memory = FLAVORS[node.flavor][1]
        room = _Room(n, first, node.cpu_milli, node.memory_mib, node.flavor)
        room.milli, room.device_memory = [1000] * node.devices, [memory] * node.devices
        rooms.append(room)
        first += node.devices
    held = []
    for i in range(draw(st.integers(0, 5)) if rooms else 0):
        spec = replace(draw(specs(f"run{i}", tenants)), hold="")
        flavor = draw(st.sampled_from(rooms)).flavor
        mine = [room for room in rooms if room.flavor == flavor or not spec.shape.devices]
        wanted = draw(st.integers(spec.replicas_min, spec.replicas_max))
        found = (room.take(spec) for room in mine for _ in range(wanted))
        replicas = [one for one in found if one][:wanted]
        if replicas:
            held.append(draw(running(spec, tuple(replicas))))
    return held


@st.composite
def running(draw: st.DrawFn, spec: JobSpec, replicas: tuple[ReplicaPlacement, ...]) -> RunningJob:
    """Some were told to end or to shrink; some overrun, and some began in the future."""
    told = draw(st.sampled_from([None, None, None, -5.0, 0.0, 25.0]))
    kept = draw(st.integers(0, len(replicas) - 1)) if told is not None else 0
    return RunningJob(
        spec,
        replicas,
        NOW_S + draw(st.sampled_from([-5000.0, -1000.0, -100.0, 0.0, 30.0])),
        checkpointed_s=draw(st.sampled_from([None, None, NOW_S - 50, NOW_S + 10])),
        ending_s=None if told is None else NOW_S + told,
        keeps=replicas[:kept],
    )


@st.composite
def expectations(draw: st.DrawFn) -> list[Expectation]:
    """None, or as many as are believed."""
    waits = st.sampled_from([0.0, 60.0, 600.0, 86_400.0])
    one = st.builds(Expectation, waits, waits, waits, st.booleans(), st.booleans())
    size = draw(st.sampled_from([0, 0, 25]))
    return draw(st.lists(one, min_size=size, max_size=size))


@st.composite
def wide_worlds(draw: st.DrawFn, max_jobs: int = 7) -> Snapshot:
    fleet, tenants = draw(fleets()), draw(trees())
    slugs = [tenant.slug for tenant in tenants]
    held = draw(busy(fleet, slugs))
    queue = [draw(specs(f"j{i}", slugs)) for i in range(draw(st.integers(0, max_jobs)))]
    snapshot = world(fleet, queue, running=held, tenants=tenants)
    devices = len(snapshot.fleet.device_uids)
    hot = draw(st.sets(st.integers(0, devices), max_size=2))
    names = [name for name in CLASSES if name]
    pairs = st.dictionaries(
        st.tuples(st.sampled_from(names), st.sampled_from(names)), st.tuples(RATES, RATES)
    )
    speeds = st.dictionaries(
        st.tuples(st.sampled_from([*names, "batch"]), st.sampled_from(sorted(FLAVORS))),
        st.sampled_from([0.1, 0.3, 1.0]),
        max_size=4,
    )
    kinds = [DemandKind(one.shape, one.flavors, 1.0 + i) for i, one in enumerate(queue[:2])]
    return replace(
        snapshot,
        fleet=replace(snapshot.fleet, device_throttled=np.isin(np.arange(devices), sorted(hot))),
        usage_decayed={slug: draw(st.sampled_from([0.0, 0.25, 1.0])) for slug in slugs},
        runtime_ratios=draw(st.sampled_from([(), (0.0,) * 12, tuple(k / 20 for k in range(21))])),
        reservations=tuple(draw(reservations(fleet))),
        throughputs=draw(speeds),
        expectations=tuple(draw(expectations())),
        demand_mix=tuple(kinds),
        pairs=draw(pairs),
    )


@st.composite
def policies(draw: st.DrawFn, strategy: str = "rules") -> Policy:
    weights = st.sampled_from([0.0, 1.0, 500.0])
    law = PreemptionPolicy(
        by_priority=draw(st.booleans()),
        by_reclaim=draw(st.integers(0, 3)) > 0,
        delay_s=draw(st.sampled_from([0.0, 60.0])),
        min_runtime_s=draw(st.sampled_from([0.0, 600.0])),
        most_evictions=draw(st.sampled_from([0, 3])),
        grace_s=draw(st.sampled_from([0.0, 30.0])),
    )
    return Policy(
        strategy=strategy,
        placement=draw(st.sampled_from(sorted(SCORES))),
        order=PriorityWeights(
            draw(weights), draw(weights), draw(weights), draw(weights), qos=draw(weights)
        ),
        objective=ObjectiveWeights(*(draw(st.sampled_from([0.0, 1.0])) for _ in range(4))),
        preemption=law,
        backfill_depth=draw(st.sampled_from([0, 1, 100])),
        remedy_depth=draw(st.sampled_from([0, 10])),
        kinds=draw(st.sampled_from([(), (("notebook", "rules"),)])),
        power_cap_w=draw(st.none() | st.integers(0, 40).map(lambda n: n * 100.0)),
    )
