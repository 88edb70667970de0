"""Every number of a snapshot and a policy, made absurd: refused by name, or planned all the same.

The numbers are found by the dataclasses' own fields, so that a new one is tried by itself.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from scheduler.core.errors import EngineError
from scheduler.core.plan import FAILED
from scheduler.core.policy import Policy
from scheduler.core.resources import ReplicaShape
from scheduler.core.snapshot import (
    DemandKind,
    Expectation,
    JobSpec,
    QuotaLine,
    Reservation,
    Snapshot,
    TenantNode,
)
from scheduler.core.verify import verify
from scheduler.decide.cycle import decide
from tests.builders import NOW_S, FleetBuilder, job, running, tenant, world

ABSURD = (math.nan, math.inf, -math.inf, -1, 1 << 70, 1e308, 5e-324)
"""Tried in the place of every number; where it is one that is right there, a plan is right too."""

QUICK_S = 5.0
"""Of one decision on a world of three nodes, once all is compiled; it takes a hundredth of that."""

Put = Callable[[Any], Any]
"""Puts a value into one place of a thing and returns the thing."""


def numbers(thing: Any, path: str) -> Iterator[tuple[str, Put]]:
    """Give every number of a thing: where it is, and what puts another in its place."""
    assert thing is not None or path.endswith(".parent"), f"{path} is None: nothing is tried there"
    if isinstance(thing, int | float | np.integer) and not isinstance(thing, bool):
        yield path, _itself
    for name, inner, change in _parts(thing, path):
        for at, put in numbers(inner, f"{path}{name}"):
            yield at, partial(_within, change, put)


def _itself(value: Any) -> Any:
    return value


def _within(change: Put, put: Put, value: Any) -> Any:
    return change(put(value))


def _parts(thing: Any, path: str) -> Iterator[tuple[str, Any, Put]]:
    """Give the parts of a thing, of many alike the first: name, part, and what exchanges it."""
    if is_dataclass(thing):
        for field in fields(thing):
            yield f".{field.name}", getattr(thing, field.name), partial(_with, thing, field.name)
    elif isinstance(thing, tuple | np.ndarray | Mapping):
        assert len(thing), f"{path} is empty: nothing is tried there"
        if isinstance(thing, Mapping):
            key = next(iter(thing))
            yield f"[{key!r}]", thing[key], partial(_with_key, thing, key)
        else:
            yield "[0]", thing[0], partial(_with_first, thing)


def _with(thing: Any, name: str, value: Any) -> Any:
    return replace(thing, **{name: value})


def _with_key(thing: Mapping[Any, Any], key: object, value: Any) -> Any:
    return {**thing, key: value}


def _with_first(values: Any, first: Any) -> Any:
    if isinstance(values, tuple):
        return (first, *values[1:])
    fits = isinstance(first, int) and abs(first) < 1 << 63
    changed = values.astype(values.dtype if fits else float)
    changed[0] = first
    return changed


SHARE = ReplicaShape(4000, 8000, devices=1, gpu_milli=500, gpu_memory_mib=20_000)
POLICY = Policy(
    strategy="rules", placement="prices", power_cap_w=10_000.0, kinds=(("batch", "rules"),)
)


def full() -> Snapshot:
    """A world in which every number stands somewhere, and is looked at.

    An elastic job was told to shrink, others run in the tenants' way, and a fraction, a gang and
    a job without devices wait, of a tenant that owns what the others hold.
    """
    fleet = FleetBuilder().flavor("a100").flavor("t4", cu=10.0)
    fleet.node("n1", devices=4, rack="r1", block="b1", taints=["x"], numa=[0, 0, 1, 1])
    fleet.node("n2", devices=4, rack="r1", block="b1", groups=[0, 0, 1, 1], nics=[0, 0, 1, 1])
    fleet.node("n3", cpu=16, devices=2, flavor="t4", rack="r2", block="b1")
    wide = replace(
        _everything("wide", shape=SHARE), tenant="b", replicas_max=2, tolerations=frozenset("x")
    )
    shrinks = running(wide, 0, [0], started_s=NOW_S - 5000, gpu_memory_mib=20_000)
    held = (*shrinks.replicas, replace(shrinks.replicas[0], devices=(1,)))
    shrinks = replace(shrinks, replicas=held, keeps=held[:1], ending_s=NOW_S + 10)
    lost = running(job("lost", tenant="b", devices=4), 1, range(4, 8), started_s=NOW_S - 5000)
    fleets = world(
        fleet,
        [_everything("part", shape=SHARE), *_others()],
        running=[replace(shrinks, checkpointed_s=NOW_S - 9), lost],
        tenants=_tenants(),
    )
    throttled = np.zeros(len(fleets.fleet.device_uids), dtype=np.bool_)
    return replace(
        fleets,
        fleet=replace(fleets.fleet, device_throttled=throttled),
        usage_decayed={"a": 0.1, "b": 0.5},
        runtime_ratios=(0.2, 0.5, 0.5, 1.0),
        reservations=(Reservation("r", NOW_S + 900.0, NOW_S + 9000.0, (2,)),),
        throughputs={("lm", "t4"): 0.2, ("lm", "a100"): 1.0},
        expectations=(Expectation(9.0, 90.0, 30.0, started=True, gang=False, told_p90_s=80.0),)
        * 30,
        demand_mix=(DemandKind(SHARE, ("a100",), 3.0), DemandKind(ReplicaShape(1, 1, 8), (), 1.0)),
        pairs={("lm", "lm"): (0.9, 0.9), ("lm", "cv"): (0.4, 0.8)},
    )


def _everything(uid: str, **changes: Any) -> JobSpec:
    spec = job(uid, tenant="a", flavors=["a100"], near="rack", submitted_s=NOW_S - 5000)
    spec = replace(spec, job_class="lm", interference="lm", anti_affinity="g")
    return replace(spec, promised_s=NOW_S - 5.0, **changes)


def _others() -> list[JobSpec]:
    return [
        job("gang", tenant="a", devices=2, replicas=2, submitted_s=NOW_S - 4000),
        job("plain", tenant="a", cpu=2, submitted_s=NOW_S - 3000),
        job("more", tenant="b", devices=1, submitted_s=NOW_S - 2000, min_throughput=0.5),
    ]


def _tenants() -> list[TenantNode]:
    lines = {name: QuotaLine(4000, 4000, 4000) for name in ("a100", "t4", "cpu")}
    root = replace(tenant("all"), quotas=lines)
    owner = tenant("a", under="all", a100=4, t4=1, cpu=64)
    return [root, owner, tenant("b", under="all", a100=1, t4=1, cpu=64)]


def decided(
    snapshot: Snapshot, policy: Policy, *, now_s: float = NOW_S, budget_s: float = 1.0
) -> str:
    """Return what came of it: "planned", or the error that refused it."""
    began_s = perf_counter()
    try:
        plan = decide(snapshot, policy, now_s=now_s, budget_s=budget_s)
    except EngineError as refused:
        return str(refused)
    finally:
        assert perf_counter() - began_s < QUICK_S
    assert plan.solver.status not in FAILED, plan.solver.note
    verify(snapshot, plan, policy, now_s=now_s)
    return "planned"


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    decide(full(), POLICY, now_s=NOW_S, budget_s=1.0)


def test_the_world_is_planned_as_it_is() -> None:
    assert decided(full(), POLICY) == "planned"


@pytest.mark.parametrize("strategy", ["rules", "optimising"])
@pytest.mark.parametrize("path", [path for path, _ in numbers(full(), "snapshot")])
def test_an_absurd_number_of_a_snapshot_is_refused_by_name_or_planned_with(
    path: str, strategy: str
) -> None:
    """What is wrong in a waiting job is its own; elsewhere the field and the value are named."""
    policy = replace(POLICY, strategy=strategy, kinds=(("batch", strategy),))
    put = dict(numbers(full(), "snapshot"))[path]
    for value in ABSURD:
        said = decided(put(value), policy)
        field = path.rpartition(".")[2].partition("[")[0]
        assert said == "planned" or field in said or "keeps" in said, (value, said)


@pytest.mark.parametrize("strategy", ["rules", "optimising"])
@pytest.mark.parametrize("path", [path for path, _ in numbers(POLICY, "policy")])
def test_an_absurd_number_of_a_policy_is_refused_by_name_or_obeyed(
    path: str, strategy: str
) -> None:
    policy = replace(POLICY, strategy=strategy, kinds=(("batch", strategy),))
    put = dict(numbers(policy, "policy"))[path]
    for value in ABSURD:
        said = decided(full(), put(value))
        assert said == "planned" or path.rpartition(".")[2] in said, (value, said)


@pytest.mark.parametrize("name", ["now_s", "budget_s"])
def test_an_absurd_time_of_a_decision_is_refused_by_name_or_planned_with(name: str) -> None:
    for value in ABSURD:
        said = decided(full(), POLICY, **{name: value})
        assert said == "planned" or said.startswith(f"{name} is "), (value, said)
