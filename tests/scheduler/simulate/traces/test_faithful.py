"""A trace carries every field that decisions look at: new ones, too, or these tests fail."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from scheduler.core.policy import (
    ObjectiveWeights,
    Policy,
    PreemptionPolicy,
    PriorityWeights,
    QosFactors,
)
from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import (
    DemandKind,
    Expectation,
    Fleet,
    QuotaLine,
    Reservation,
    Snapshot,
)
from scheduler.decide import cycle
from scheduler.simulate.jobs import SimJob
from scheduler.simulate.traces.exported import Trace, read_trace, write_trace
from tests.builders import FleetBuilder, job, tenant, world

RUN_TIME_ONLY: Mapping[type, Mapping[str, str]] = {
    Snapshot: {
        "pending": "they arrive: the jobs of the trace",
        "running": "a simulation begins with nothing running",
        "expectations": "of jobs that are not in the trace; they change no start",
    },
    Fleet: {"device_uids": "a device is named by its node and its number"},
}
"""Type -> field -> why it is not in a trace."""

BEGIN_S = 1000.0


def rich() -> Trace:
    """Return a trace in which every field differs from its default somewhere."""
    fleet = FleetBuilder().flavor("v100", cu=125.0, memory_mib=32_000, power_w=300.0)
    fleet.node(
        "a",
        devices=4,
        groups=[0, 0, 1, 1],
        numa=[0, 0, 1, 1],
        nics=[1, 1, 0, 0],
        sick=[3],
        taints=["gpu"],
        rack="r1",
        block="b1",
    )
    fleet.node("b", devices=2, flavor="v100", rack="r2", block="b1")
    fleet.node("c", devices=2, ready=False, note="cordoned")
    root = replace(
        tenant("all", a100=QuotaLine(4000, 1000, 2000), v100=2, cpu=64),
        queue_priority=1,
        created_s=50.0,
    )
    team = replace(
        tenant("team", under="all", weight=2.5, a100=2, v100=1, cpu=8), preemption_fence=True
    )
    made = world(fleet, tenants=[root, team], now_s=BEGIN_S)
    memory = made.fleet.device_memory_mib.copy()
    memory[1] = 40_000
    hot = np.zeros(len(memory), dtype=np.bool_)
    hot[5] = True
    snapshot = replace(
        made,
        fleet=replace(
            made.fleet,
            device_memory_mib=memory,
            device_free_memory_mib=memory,
            device_throttled=hot,
        ),
        usage_decayed={"all": 0.125, "team": 0.25},
        runtime_ratios=(0.1, 0.5, 1.0),
        reservations=(
            Reservation("r", BEGIN_S, 9000.0, (1, 2), frozenset(["team"]), frozenset(["j"])),
        ),
        throughputs={("lm@team", "a100"): 1.0, ("lm@team", "v100"): 0.4},
        expectations=(Expectation(1.0, 2.0, 1.0, started=True, gang=False),),
        demand_mix=(DemandKind(ReplicaShape(500, 64, 1, 250, 4000), ("v100",), 2.5),),
        pairs={("cv", "lm"): (0.9, 0.4)},
    )
    wishes = job(
        "j", tenant="team", devices=1, milli=500, gpu_memory_mib=8000, replicas=1, replicas_max=2,
        flavors=["v100", "a100"], priority=3, tolerations=["gpu"], min_throughput=0.2,
        submitted_s=1500.0, near="rack", placement="spread", interference="cv",
    )  # fmt: skip
    wishes = replace(wishes, job_class="lm@team", anti_affinity="web", preempted_count=2)
    held = replace(wishes, uid="k", hold="on_hold", not_before_s=1700.0, promised_s=1600.0)
    jobs = (
        SimJob(wishes, 60.0, {"a100": 2.0, "v100": 1.0}, 0.5, 3.0, 20.0, True, 500.0),
        SimJob(replace(held, kind="training", preemptible=False), 60.0),
    )
    past_use = {("team", "a100"): 0.25, ("team", "cpu"): 0.0625}
    return Trace(snapshot, jobs, odd_policy(), past_use)


def odd_policy() -> Policy:
    return Policy(
        strategy="rules",
        budget_s=2.0,
        placement="prices",
        order=PriorityWeights(1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
        objective=ObjectiveWeights(0.1, 0.2, 0.3, 0.4),
        seed=7,
        preemption=PreemptionPolicy(True, False, 1.0, 2.0, 4, 5.0, False),
        qos=QosFactors(0.1, 0.2, 0.3, 0.4),
        backfill_depth=9,
        remedy_depth=8,
        expects_starts=False,
        solver="cbc",
        kinds=(("notebook", "optimising"),),
        shadow="optimising",
        power_cap_w=1000.0,
        patience_s=60.0,
    )


def parts(value: object) -> Iterator[Any]:
    """Give every dataclass within a value, itself included, but for what is of run time only."""
    if is_dataclass(value):
        yield value
        for name in carried(type(value)):
            yield from parts(getattr(value, name))
    elif isinstance(value, Mapping):
        for _, one in sorted(value.items()):
            yield from parts(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from parts(one)


def carried(kind: type) -> list[str]:
    return [f.name for f in fields(kind) if f.name not in RUN_TIME_ONLY.get(kind, {})]


def equal(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray):
        return np.array_equal(a, np.asarray(b))
    return a == b


def default_of(field: "Field[Any]") -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def test_every_field_that_a_decision_looks_at_is_tried() -> None:
    """Whoever adds a field sets it in `rich`, or says in `RUN_TIME_ONLY` why no trace has it."""
    seen: dict[type, list[Any]] = {}
    for part in parts(rich()):
        seen.setdefault(type(part), []).append(part)
    for kind, found in seen.items():
        for field in fields(kind):
            values = [getattr(one, field.name) for one in found]
            same = all(equal(value, default_of(field)) for value in values)
            left_out = field.name in RUN_TIME_ONLY.get(kind, {})
            assert left_out or not same, f"{kind.__name__}.{field.name} is never set"
    assert {Snapshot, Fleet, Policy, SimJob} < seen.keys()


def test_what_is_of_run_time_only_is_there() -> None:
    for kind, names in RUN_TIME_ONLY.items():
        assert names.keys() <= {field.name for field in fields(kind)}


def test_every_field_is_read_back() -> None:
    trace = rich()
    back = read_trace(write_trace(trace), "back")
    mine, theirs = list(parts(trace)), list(parts(back))
    assert [type(one) for one in mine] == [type(one) for one in theirs]
    for one, other in zip(mine, theirs, strict=True):
        for name in carried(type(one)):
            a, b = getattr(one, name), getattr(other, name)
            if not is_dataclass(a) and not list(parts(a)):
                assert equal(a, b), f"{type(one).__name__}.{name}: {a} != {b}"


def test_what_is_read_back_is_decided_alike() -> None:
    trace = rich()
    back = read_trace(write_trace(trace), "back")
    plans = []
    for one in (trace, back):
        assert one.policy is not None
        policy = replace(one.policy, kinds=(), shadow="", expects_starts=True)
        specs = tuple(simulated.spec for simulated in one.jobs)
        asked = replace(one.world, pending=specs, expectations=(), now_s=2000.0)
        plans.append(cycle.decide(asked, policy, now_s=2000.0, budget_s=1.0))
    assert plans[0] == plans[1]
    assert plans[0].starts
