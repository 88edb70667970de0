"""Random worlds for the properties of the engine: small, contended, and sometimes odd."""

from dataclasses import replace

from hypothesis import strategies as st

from scheduler.core.snapshot import (
    JobSpec,
    QuotaLine,
    Reservation,
    RunningJob,
    Snapshot,
    TenantNode,
)
from tests.builders import NOW_S, FleetBuilder, job, running, world

FLAVORS = {"a100": (312.0, 80_000), "h100": (989.0, 80_000), "odd": (None, 16_000)}
TENANTS = ("all", "left", "right", "inner")
PARENTS = {"all": None, "left": "all", "right": "all", "inner": "left"}


@st.composite
def fleets(draw: st.DrawFn) -> FleetBuilder:
    fleet = FleetBuilder()
    for name, (cu, memory) in FLAVORS.items():
        fleet.flavor(name, cu=cu, memory_mib=memory)
    sick = st.sets(st.integers(0, 7), max_size=1).map(sorted)
    for i in range(draw(st.integers(0, 5))):
        devices = draw(st.sampled_from([0, 1, 2, 4, 8]))
        fleet.node(
            f"n{i}",
            cpu=draw(st.integers(1, 16)),
            memory_mib=draw(st.sampled_from([4_000, 64_000])),
            devices=devices,
            flavor=draw(st.sampled_from(sorted(FLAVORS))),
            ready=draw(st.integers(0, 5)) > 0,
            note="cordoned",
            taints=draw(st.sampled_from([(), (), (), ("gpu",)])),
            sick=draw(sick),
            groups=[k // 2 for k in range(devices)],
            nics=[k // 3 for k in range(devices)] if draw(st.booleans()) else (),
            numa=[k // 4 for k in range(devices)] if draw(st.booleans()) else (),
            rack=draw(st.sampled_from(["r0", "r1", ""])),
            block=draw(st.sampled_from(["x", "y", ""])),
        )
    return fleet


@st.composite
def lines(draw: st.DrawFn) -> QuotaLine:
    limit = st.none() | st.integers(0, 8).map(lambda n: n * 1000)
    return QuotaLine(draw(st.integers(0, 12)) * 1000, draw(limit), draw(limit))


@st.composite
def trees(draw: st.DrawFn) -> list[TenantNode]:
    flavors = draw(st.sets(st.sampled_from([*FLAVORS, "cpu"]), max_size=3))
    return [
        TenantNode(
            slug,
            PARENTS[slug],
            float(draw(st.integers(0, 3))),
            {name: draw(lines()) for name in sorted(flavors) if draw(st.integers(0, 4))},
        )
        for slug in TENANTS
    ]


@st.composite
def jobs(draw: st.DrawFn, uid: str) -> JobSpec:
    devices = draw(st.sampled_from([0, 0, 1, 1, 1, 2, 4]))
    replicas = draw(st.integers(1, 3))
    level = draw(st.sampled_from(["", "", "", "node", "rack", "block", "link", "nic", "numa"]))
    hard = draw(st.booleans())
    spec = job(
        uid,
        tenant=draw(st.sampled_from(TENANTS)),
        devices=devices,
        cpu=draw(st.integers(1, 4)),
        memory_mib=draw(st.sampled_from([500, 3_000])),
        milli=draw(st.sampled_from([1000, 1000, 300, 500])) if devices == 1 else 1000,
        gpu_memory_mib=draw(st.sampled_from([0, 0, 10_000])),
        replicas=replicas,
        replicas_max=replicas + draw(st.integers(0, 2)),
        flavors=draw(st.sampled_from([(), ("a100",), ("h100", "a100"), ("odd",)])),
        priority=draw(st.integers(0, 2)),
        limit_s=draw(st.sampled_from([600.0, 1800.0, 3600.0])),
        submitted_s=NOW_S - draw(st.sampled_from([0, 0, 500, 90_000])),
        tolerations=draw(st.sampled_from([(), ("gpu",)])),
        within=level if hard else "",
        near="" if hard else level,
        placement=draw(st.sampled_from(["", "", "", "pack", "spread", "one_per_node"])),
        hold=draw(st.sampled_from([""] * 8 + ["on_hold", "awaiting_approval"])),
    )
    group = draw(st.sampled_from(["", "", "", "g"]))
    return replace(spec, preemptible=draw(st.integers(0, 3)) > 0, anti_affinity=group)


@st.composite
def busy(draw: st.DrawFn, fleet: FleetBuilder) -> list[RunningJob]:
    """Hold the first devices of some nodes; quotas are not asked, as they may have been cut."""
    found = []
    for n, node in enumerate(sorted(fleet.nodes, key=lambda node: node.name)):
        size = draw(st.integers(0, node.devices))
        if size and node.cpu_milli >= 1000 and draw(st.booleans()):
            first = sum(m.devices for m in sorted(fleet.nodes, key=lambda m: m.name)[:n])
            spec = job(
                f"run{n}",
                tenant=draw(st.sampled_from(TENANTS)),
                devices=size,
                limit_s=draw(st.sampled_from([100.0, 900.0, 5000.0])),
            )
            spec = replace(spec, anti_affinity=draw(st.sampled_from(["", "g"])))
            memory = FLAVORS[node.flavor][1]
            devices = range(first, first + size)
            started_s = NOW_S - draw(st.sampled_from([200, 700]))  # protected, and open to others
            found.append(running(spec, n, devices, started_s=started_s, gpu_memory_mib=memory))
    return found


@st.composite
def reservations(draw: st.DrawFn, fleet: FleetBuilder) -> list[Reservation]:
    """Set some nodes aside: for nobody, for one tenant, or for one job."""
    found = []
    nodes = st.sets(st.integers(0, len(fleet.nodes) - 1)) if fleet.nodes else st.just(set())
    for i in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        begin_s = NOW_S + draw(st.sampled_from([-100.0, 0.0, 300.0, 900.0]))
        found.append(
            Reservation(
                f"r{i}",
                begin_s,
                begin_s + draw(st.sampled_from([50.0, 600.0, 5000.0])),
                tuple(sorted(draw(nodes))),
                frozenset(draw(st.sampled_from([(), (), ("left",)]))),
                frozenset(draw(st.sampled_from([(), (), ("j0", "j1")]))),
            )
        )
    return found


@st.composite
def many_ends(draw: st.DrawFn, node: int) -> list[RunningJob]:
    """Hold a node of 64 cores by 60 jobs that all end at other times."""
    first_s, step_s = draw(st.sampled_from([(45.0, 1.0), (90.0, 61.0), (3600.0, 0.5)]))
    tenant = draw(st.sampled_from(TENANTS))
    return [
        running(job(f"end{i:02}", tenant=tenant, limit_s=first_s + i * i * step_s), node, ())
        for i in range(60)
    ]


@st.composite
def many_windows(draw: st.DrawFn, fleet: FleetBuilder) -> list[Reservation]:
    """Set the same nodes aside again and again."""
    nodes = tuple(sorted(draw(st.sets(st.integers(0, len(fleet.nodes) - 1)))))
    every_s, lasts_s = draw(st.sampled_from([(3600.0, 600.0), (1800.0, 900.0), (86400.0, 60.0)]))
    first_s = NOW_S + draw(st.sampled_from([-100.0, 300.0, 2000.0]))
    begins = [first_s + k * every_s for k in range(draw(st.integers(17, 40)))]
    return [Reservation(f"w{k:02}", at, at + lasts_s, nodes) for k, at in enumerate(begins)]


@st.composite
def worlds(draw: st.DrawFn, max_jobs: int = 8, *, eventful: bool = False) -> Snapshot:
    """Draw a world; an eventful one has more ends and windows than the time profile has rows."""
    fleet = draw(fleets())
    held = draw(busy(fleet))
    windows: list[Reservation] = []
    if eventful:
        held += draw(many_ends(len(fleet.nodes)))
        fleet.node("z", cpu=64)
        windows = draw(many_windows(fleet))
    queue = [draw(jobs(f"j{i}")) for i in range(draw(st.integers(0, max_jobs)))]
    snapshot = world(fleet, queue, running=held, tenants=draw(trees()))
    usage = {slug: draw(st.floats(0, 1)) for slug in TENANTS}
    ratios = draw(st.sampled_from([(), (0.0,) * 12, tuple(k / 20 for k in range(1, 21))]))
    calendar = (*draw(reservations(fleet)), *windows)
    return replace(snapshot, usage_decayed=usage, runtime_ratios=ratios, reservations=calendar)
