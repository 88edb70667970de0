"""Random worlds with every feature at once: small, crowded, and as odd as a valid snapshot can be.

Made from a seed, not drawn piece by piece: most worlds are then busy ones in which most jobs are
ordinary, and a hundred take a second. What runs holds places that are free, so that a world never
contradicts itself; quotas are not asked, as they may have been cut since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from scheduler.core.policy import ObjectiveWeights, Policy, PreemptionPolicy, PriorityWeights
from scheduler.core.snapshot import (
    DemandKind,
    Expectation,
    JobSpec,
    QuotaLine,
    ReplicaPlacement,
    Reservation,
    RunningJob,
    Snapshot,
    TenantNode,
)
from scheduler.decide.scoring import SCORES
from tests.builders import NOW_S, FleetBuilder, job, world

T = TypeVar("T")

FLAVORS = {
    "a100": (312.0, 80_000, 400.0),
    "h100": (989.0, 80_000, 700.0),
    "odd": (None, 16_000, None),
    "a100-mig-1g.10gb": (40.0, 10_000, 60.0),
}
TREES: tuple[Mapping[str, str | None], ...] = (
    {"left": None, "right": None, "inner": None},
    {"all": None, "left": "all", "inner": "left", "right": "all"},
    {"left": None, "right": None, "inner": "right"},
)
CLASSES = ("", "", "lm", "cv")


class Dice(Random):
    """A random generator that says how often things are odd."""

    def rarely(self, odd: Sequence[T], usual: T, often: float = 0.08) -> T:
        """Return something odd now and then."""
        return self.choice(odd) if self.random() < often else usual


def wide_worlds(max_jobs: int = 9) -> st.SearchStrategy[Snapshot]:
    return st.integers(0, 2**40).map(lambda seed: wide_world(seed, max_jobs))


def policies(strategy: str = "rules") -> st.SearchStrategy[Policy]:
    return st.integers(0, 2**40).map(lambda seed: a_policy(seed, strategy))


def wide_world(seed: int, max_jobs: int = 9) -> Snapshot:
    """Return the world of a seed."""
    dice = Dice(seed)
    fleet, tenants = _fleet(dice), _trees(dice)
    slugs = [tenant.slug for tenant in tenants]
    held = _running(dice, fleet, slugs)
    queue = [_spec(dice, f"j{i}", slugs) for i in range(dice.randint(0, max_jobs))]
    snapshot = world(fleet, queue, running=held, tenants=tenants)
    devices = len(snapshot.fleet.device_uids)
    hot = np.array([dice.random() < 0.03 for _ in range(devices)], dtype=np.bool_)
    names = ("lm", "cv")
    pairs = [(dice.choice(names), dice.choice(names)) for _ in range(dice.choice([0, 0, 2]))]
    speeds = [(dice.choice([*names, "batch"]), dice.choice(sorted(FLAVORS))) for _ in range(3)]
    rates = (0.2, 0.49, 0.5, 0.9)
    return replace(
        snapshot,
        fleet=replace(snapshot.fleet, device_throttled=hot),
        usage_decayed={slug: dice.choice([0.0, 0.25, 1.0]) for slug in slugs},
        runtime_ratios=dice.choice([(), (0.0,) * 12, tuple(k / 20 for k in range(21))]),
        reservations=tuple(_reservations(dice, len(fleet.nodes))),
        throughputs=dice.choice([{}, {pair: dice.choice([0.1, 0.3, 1.0]) for pair in speeds}]),
        expectations=tuple(_expectations(dice)),
        demand_mix=tuple(
            DemandKind(*kind, 1.0 + i)
            for i, kind in enumerate(dict.fromkeys((one.shape, one.flavors) for one in queue[:2]))
        ),
        pairs={pair: (dice.choice(rates), dice.choice(rates)) for pair in pairs},
    )


def a_policy(seed: int, strategy: str = "rules") -> Policy:
    """Return the policy of a seed."""
    dice, weights = Dice(seed), (0.0, 1.0, 500.0)
    law = PreemptionPolicy(
        by_priority=dice.random() < 0.5,
        by_reclaim=dice.random() < 0.8,
        delay_s=dice.choice([0.0, 60.0]),
        min_runtime_s=dice.choice([0.0, 600.0]),
        most_evictions=dice.rarely([0, 1], 3),
        grace_s=dice.choice([0.0, 30.0]),
    )
    order = PriorityWeights(*(dice.choice(weights) for _ in range(4)))
    return Policy(
        strategy=strategy,
        placement=dice.rarely(sorted(SCORES), dice.choice(["pack", "spread"]), 0.3),
        order=replace(order, qos=dice.choice(weights)),
        objective=ObjectiveWeights(*(dice.choice([0.0, 1.0, 1.0]) for _ in range(4))),
        preemption=law,
        backfill_depth=dice.choice([0, 1, 100, 100]),
        remedy_depth=dice.choice([0, 10, 10]),
        kinds=dice.choice([(), (("notebook", "rules"),)]),
        power_cap_w=dice.rarely([100.0 * k for k in range(60)], None, 0.3),
    )


def _trees(dice: Dice) -> list[TenantNode]:
    flavors = dice.choice([["a100", "h100"], ["a100"], ["a100", "cpu"], ["cpu"], [], [*FLAVORS]])

    def line() -> QuotaLine:
        limits = (None, None, None, 0, 1000, 4000)
        owned = dice.choice([0, 2000, 4000, 8000, 20_000])
        return QuotaLine(owned, dice.choice(limits), dice.choice(limits))

    return [
        TenantNode(
            slug,
            parent,
            dice.choice([0.0, 1.0, 1.0, 2.5]),
            {name: line() for name in flavors if dice.random() < 0.85},
            preemption_fence=dice.random() < 0.1,
            queue_priority=dice.choice([0, 0, 0, 2]),
            created_s=dice.choice([0.0, NOW_S]),
        )
        for slug, parent in dice.choice(TREES).items()
    ]


def _fleet(dice: Dice) -> FleetBuilder:
    fleet = FleetBuilder()
    for name, (cu, memory, watts) in FLAVORS.items():
        fleet.flavor(name, cu=cu, memory_mib=memory, power_w=watts)
    for i in range(dice.rarely([0, 1], dice.randint(2, 5))):
        devices = dice.choice([0, 2, 4, 4, 8])
        islands = [k // 2 for k in range(devices)]
        fleet.node(
            f"n{i}",
            cpu=dice.rarely([1, 2], 16, 0.2),
            memory_mib=dice.rarely([4_000], 64_000),
            devices=devices,
            flavor=dice.rarely(sorted(FLAVORS), dice.choice(["a100", "a100", "h100"]), 0.3),
            ready=dice.random() > 0.08,
            note="cordoned",
            taints=dice.rarely([("gpu",)], ()),
            sick=[k for k in range(devices) if dice.random() < 0.03],
            groups=dice.choice([islands, ()]),
            numa=dice.choice([[k // 4 for k in range(devices)], ()]),
            nics=dice.choice([islands, ()]),
            rack=dice.choice(["r0", "r1", ""]),
            block=dice.choice(["x", "y", ""]),
        )
    return fleet


def _spec(dice: Dice, uid: str, tenants: Sequence[str]) -> JobSpec:
    devices = dice.choice([0, 1, 1, 1, 1, 2, 2, 4])
    replicas = dice.choice([1, 1, 1, 1, 2, 3])
    level = dice.rarely(["node", "rack", "block", "link", "nic", "numa"], "", 0.25)
    level = "" if level in {"link", "nic", "numa"} and not devices else level
    hard, share = dice.random() < 0.5, devices == 1 and dice.random() < 0.4
    flavors = [("a100",), ("h100", "a100"), ("odd",), ("1g.10gb",), ("none",)]
    spec = job(
        uid,
        tenant=dice.rarely(["gone"], dice.choice(tenants), 0.02),
        devices=devices,
        cpu=dice.choice([1, 1, 2]),
        memory_mib=dice.choice([500, 3_000]),
        milli=dice.choice([300, 500]) if share else 1000,
        gpu_memory_mib=dice.rarely([10_000, 60_000], 0, 0.2) if devices else 0,
        replicas=replicas,
        replicas_max=replicas + dice.choice([0, 0, 1, 2]),
        flavors=dice.rarely(flavors, (), 0.4),
        priority=dice.choice([0, 0, 1, 2]),
        limit_s=dice.choice([600.0, 1800.0, 3600.0]),
        submitted_s=NOW_S + dice.choice([-90_000.0, -700.0, -700.0, -61.0, 0.0, 40.0]),
        tolerations=dice.choice([(), ("gpu",)]),
        hold=dice.rarely(["on_hold", "awaiting_approval"], "", 0.04),
        not_before_s=dice.rarely([NOW_S - 30, NOW_S + 50], 0.0),
        min_throughput=dice.rarely([0.3, 1.0], 0.0),
        within=level if hard else "",
        near="" if hard else level,
        placement=dice.rarely(["pack", "spread", "one_per_node"], "", 0.2),
        interference=dice.choice(CLASSES),
    )
    return replace(
        spec,
        kind=dice.choice(["batch", "batch", "training", "notebook", "inference"]),
        preemptible=dice.random() < 0.85,
        promised_s=dice.rarely([NOW_S - 10, NOW_S - 100], 0.0, 0.1),
        preempted_count=dice.rarely([1, 2, 3], 0, 0.2),
        job_class=dice.choice(CLASSES),
        anti_affinity=dice.rarely(["g", "h"], "", 0.2),
    )


@dataclass
class _Room:
    """What is free of one node while it is filled."""

    node: int
    first: int
    cpu: int
    memory: int
    flavor: str
    milli: list[int]
    device_memory: list[int]

    def take(self, spec: JobSpec) -> ReplicaPlacement | None:
        """Hold the first devices that have room for one replica."""
        shape, has = spec.shape, FLAVORS[self.flavor][1]
        part = shape.gpu_memory_mib or has * shape.gpu_milli // 1000
        part = part if shape.gpu_milli < 1000 else has
        roomy = [
            i
            for i, milli in enumerate(self.milli)
            if milli >= shape.gpu_milli and self.device_memory[i] >= part
        ][: shape.devices]
        short = self.cpu < shape.cpu_milli or self.memory < shape.memory_mib
        if short or len(roomy) < shape.devices:
            return None
        self.cpu -= shape.cpu_milli
        self.memory -= shape.memory_mib
        for i in roomy:
            self.milli[i] -= shape.gpu_milli
            self.device_memory[i] -= part
        if not shape.devices:
            return ReplicaPlacement(self.node, (), 0, 0)
        devices = tuple(self.first + i for i in roomy)
        return ReplicaPlacement(self.node, devices, shape.gpu_milli, part)


def _running(dice: Dice, fleet: FleetBuilder, tenants: Sequence[str]) -> list[RunningJob]:
    """Fill the fleet with some gangs; a gang is of one flavor."""
    rooms, first = [], 0
    for n, node in enumerate(fleet.nodes):  # named in order already
        milli, memory = [1000] * node.devices, [FLAVORS[node.flavor][1]] * node.devices
        room = _Room(n, first, node.cpu_milli, node.memory_mib, node.flavor, milli, memory)
        rooms.append(room)
        first += node.devices
    held = []
    for i in range(dice.randint(0, 14) if rooms else 0):
        spec = replace(_spec(dice, f"run{i}", tenants), hold="")
        flavor = dice.choice(rooms).flavor
        mine = [room for room in rooms if room.flavor == flavor or not spec.shape.devices]
        wanted = dice.randint(spec.replicas_min, spec.replicas_max)
        found = (room.take(spec) for room in mine for _ in range(wanted))
        replicas = [one for one in found if one][:wanted]
        if replicas:
            held.append(_run(dice, spec, tuple(replicas)))
    return held


def _run(dice: Dice, spec: JobSpec, replicas: tuple[ReplicaPlacement, ...]) -> RunningJob:
    """Return it as it runs: some were told to end or to shrink, overrun, or began in the future."""
    told = dice.rarely([-5.0, 0.0, 25.0], None, 0.15)
    kept = dice.randint(0, len(replicas) - 1) if told is not None else 0
    return RunningJob(
        spec,
        replicas,
        NOW_S + dice.choice([-5000.0, -1000.0, -1000.0, -700.0, -100.0, 0.0, 30.0]),
        checkpointed_s=dice.choice([None, NOW_S - 50, NOW_S - 1, NOW_S + 10]),
        ending_s=None if told is None else NOW_S + told,
        keeps=replicas[:kept],
    )


def _reservations(dice: Dice, nodes: int) -> list[Reservation]:
    """Set some nodes aside: for nobody, for one tenant, or for one job."""
    found = []
    for i in range(dice.choice([0, 0, 0, 1, 2])):
        begin_s = NOW_S + dice.choice([-100.0, 0.0, 300.0, 900.0])
        end_s = begin_s + dice.choice([50.0, 600.0, 5000.0])
        aside = tuple(n for n in range(nodes) if dice.random() < 0.5)
        tenants = frozenset(dice.choice([(), (), ("left",)]))
        found.append(
            Reservation(
                f"r{i}", begin_s, end_s, aside, tenants, frozenset(dice.choice([(), ("j0",)]))
            )
        )
    return found


def _expectations(dice: Dice) -> list[Expectation]:
    """Return none, or as many as are believed."""
    waits = (0.0, 60.0, 600.0, 86_400.0)
    return [
        Expectation(
            dice.choice(waits),
            dice.choice(waits),
            dice.choice(waits),
            dice.random() < 0.7,
            dice.random() < 0.3,
        )
        for _ in range(dice.choice([0, 0, 25]))
    ]
