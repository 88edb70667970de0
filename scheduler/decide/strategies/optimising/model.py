"""The mixed-integer program: how many jobs of each class start, on which flavor and node group.

Jobs of a class and nodes of a group are counted, not listed, and replicas of equal shape share
their variables on the node groups, so the program is a relaxation of placing each replica; the
turns that follow place what it chose, one by one and exactly.

Source: the rows are our own: equal things counted, as Gilmore and Gomory count equal pieces (1961);
quota as in `decide/quota.py` (Kueue's resource_node.go), where only what passes a tenant's local
part moves up; the objective of `decide/objective.py`. For its logarithms see `tangents`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pulp

from scheduler.decide.feasibility import ANY, Demand
from scheduler.decide.objective import LOG_FLOOR, Objective, Standing
from scheduler.decide.quota import FlavorTree
from scheduler.decide.session import Session
from scheduler.decide.strategies.optimising.classes import JobClass, NodeGroups
from scheduler.decide.strategies.optimising.tangents import tangents

KILO_UW = 1e9
"""Microwatts of a kilowatt: keeps the coefficients near one."""


class Option(NamedTuple):
    """One class on one flavor.

    Attributes:
        kind: the class.
        flavor: index of the flavor.
        jobs: variable, how many start.
        replicas: variable, how many replicas they have together.
    """

    kind: JobClass
    flavor: int
    jobs: Any
    replicas: Any


@dataclass(slots=True)
class Pool:
    """Replicas of one shape on one flavor, whoever owns them.

    Attributes:
        demand: the shape and flavor.
        on_group: node group -> variable, how many replicas go there.
        members: the replica variables that these places are for.
    """

    demand: Demand
    on_group: Mapping[int, Any]
    members: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class Model:
    """A program and what its variables mean.

    Attributes:
        problem: PuLP's program.
        options: what is chosen.
        pools: where it goes, by demand, rows of the time profile and closed nodes.
        constant: value of the program if nothing starts; its objective minus this is the gain.
    """

    problem: Any
    options: list[Option] = field(default_factory=list)
    pools: dict[tuple[Demand, int, tuple[int, ...]], Pool] = field(default_factory=dict)
    constant: float = 0.0


def build(
    session: Session,
    objective: Objective,
    standing: Standing,
    classes: Sequence[JobClass],
    groups: NodeGroups,
) -> Model:
    """Return the program that starts jobs of these classes on top of a standing."""
    model = Model(pulp.LpProblem("plan", pulp.LpMaximize))
    for c, kind in enumerate(classes):
        _add_class(model, session, c, kind)
    for pool in model.pools.values():
        model.problem += _sum((1, z) for z in pool.on_group.values()) == _sum(
            (1, replicas) for replicas in pool.members
        )
    _add_capacity(model, groups)
    for flavor, f in session.tree.flavors.items():
        _add_quota(model, session, flavor, session.tree.trees[f])
    _add_power(model, session)
    _add_objective(model, objective, standing)
    return model


def _add_class(model: Model, session: Session, c: int, kind: JobClass) -> None:
    """At most all jobs of the class start, each as a gang within its bounds."""
    job, started = kind.job, []
    for flavor, room in kind.room.items():
        name, members = f"{c}_{flavor + 1}", len(kind.jobs)
        most = min(members, int(room.sum()) // job.replicas_min)
        jobs = model.problem.add_variable(f"x_{name}", 0, most, cat=pulp.LpInteger)
        replicas = model.problem.add_variable(f"y_{name}", 0, most * job.replicas_max)
        model.problem += _sum([(1, replicas), (-job.replicas_min, jobs)]) >= 0
        model.problem += _sum([(1, replicas), (-job.replicas_max, jobs)]) <= 0
        model.options.append(Option(kind, flavor, jobs, replicas))
        _pool(model, session.demand(job, flavor), kind, flavor).members.append(replicas)
        started.append(jobs)
    if len(started) > 1:
        model.problem += _sum((1, jobs) for jobs in started) <= len(kind.jobs)


def _pool(model: Model, demand: Demand, kind: JobClass, flavor: int) -> Pool:
    """Return the pool of a demand; what fits is the same for every class that shares it."""
    key = (demand, kind.rows, kind.closed)
    if key not in model.pools:
        room, name = kind.room[flavor], f"z_{len(model.pools)}"
        add = model.problem.add_variable
        on_group = {g: add(f"{name}_{g}", 0, int(room[g])) for g in room.nonzero()[0].tolist()}
        model.pools[key] = Pool(demand, on_group)
    return model.pools[key]


def _add_capacity(model: Model, groups: NodeGroups) -> None:
    """No group gives more CPU, memory, thousandths or whole devices than it has."""
    for g in range(groups.count):
        here = [
            (pool.demand.shape, pool.demand.flavor, pool.on_group[g])
            for pool in model.pools.values()
            if g in pool.on_group
        ]
        if not here:
            continue
        cpu = _sum((s.cpu_milli / 1000, z) for s, _, z in here)
        memory = _sum((s.memory_mib / 1024, z) for s, _, z in here)
        model.problem += cpu <= float(groups.cpu[g]) / 1000
        model.problem += memory <= float(groups.memory[g]) / 1024
        for flavor in sorted({f for _, f, _ in here if f != ANY}):
            on = [(s, z) for s, f, z in here if f == flavor]
            milli = _sum((s.device_milli / 1000, z) for s, z in on)
            model.problem += milli <= float(groups.milli[g, flavor]) / 1000
            if any(s.is_fraction for s, _ in on):
                whole = _sum((s.devices, z) for s, z in on if not s.is_fraction)
                model.problem += whole <= int(groups.whole[g, flavor])


def _sum(terms: Iterable[tuple[float, Any]]) -> Any:
    return pulp.lpSum(float(factor) * variable for factor, variable in terms)


def _add_quota(model: Model, session: Session, flavor: str, tree: FlavorTree) -> None:
    """No tenant on the way up passes what it may hold; what is above its local part moves up.

    Where a quota was cut below use nothing more can start, but nothing has to stop.
    """
    quota, used = session.tree, session.profile.ledger.usage[0, session.tree.flavors[flavor]]
    rising: list[list[tuple[float, Any]]] = [[] for _ in quota.slugs]
    for option in model.options:
        for charge in session.charges(option.kind.job, option.flavor, 1):
            if charge.flavor == flavor and charge.amount:
                n = quota.index[option.kind.job.tenant]
                rising[n].append((charge.amount / 1000, option.replicas))
    for n in range(len(quota.slugs) - 1, -1, -1):
        if not rising[n]:
            continue
        now, parent = int(used[n]), quota.parent[n]
        most = tree.subtree[n] if parent < 0 else _limit(tree, n)
        if most is not None:
            model.problem += _sum(rising[n]) <= max(0, most - now) / 1000
        if parent >= 0:
            name = f"o_{session.tree.flavors[flavor]}_{n}"
            rising[parent] += _overflow(model, rising[n], tree.local[n] - now, name)


def _add_power(model: Model, session: Session) -> None:
    """What starts adds no more board power than the cap leaves, in kilowatts."""
    left_uw = session.allowance.power_left_uw(0, 1)
    if left_uw is None:
        return
    terms = [
        (session.power.needs_uw(option.kind.job, option.flavor, 1) / KILO_UW, option.replicas)
        for option in model.options
    ]
    needed = [term for term in terms if term[0]]
    if needed:
        model.problem += _sum(needed) <= max(0, left_uw) / KILO_UW


def _limit(tree: FlavorTree, n: int) -> int | None:
    limit = tree.borrowing[n]
    return None if limit is None else tree.subtree[n] + limit


def _overflow(
    model: Model, more: list[tuple[float, Any]], spare: int, name: str
) -> list[tuple[float, Any]]:
    """Return the terms that pass the local quota and so become the parent's usage."""
    if spare <= 0:
        return more
    above = model.problem.add_variable(name, 0)
    model.problem += _sum([(1, above), *((-factor, v) for factor, v in more)]) >= -spare / 1000
    return [(1.0, above)]


def _add_objective(model: Model, objective: Objective, standing: Standing) -> None:
    w = objective.weights
    gains = [(option, objective.gain(option.kind.job, option.flavor)) for option in model.options]
    parts: list[tuple[float, Any]] = []
    named = [
        ("u", w.utilisation, standing.utilisation, [(o, g.utilisation) for o, g in gains]),
        ("p", w.performance, standing.performance, [(o, g.performance) for o, g in gains]),
    ]
    for t, (tenant, weight) in enumerate(objective.tenant_weights.items()):
        own = [(o, g.share) for o, g in gains if o.kind.job.tenant == tenant]
        named.append((f"s{t}", w.fairness * weight, standing.shares[tenant], own))
    for name, weight, base, rising in named:
        if weight > 0 and rising:
            parts.append((weight, _log(model, name, base, rising)))
            model.constant += weight * math.log(LOG_FLOOR + base)
    energy = [(-w.energy * gain.energy, option.replicas) for option, gain in gains]
    model.problem.setObjective(_sum([*parts, *energy]))


def _log(model: Model, name: str, base: float, rising: Sequence[tuple[Option, float]]) -> Any:
    """Return a variable that is at most the logarithm, up to the tangents' error."""
    low = LOG_FLOOR + base
    total = model.problem.add_variable(f"t_{name}", 0)
    terms = [(-each, option.replicas) for option, each in rising]
    model.problem += _sum([(1, total), *terms]) == 0
    most = sum(
        each * len(option.kind.jobs) * option.kind.job.replicas_max for option, each in rising
    )
    value = model.problem.add_variable(f"log_{name}")
    for tangent in tangents(low, low + most):
        line = _sum([(1, value), (-tangent.slope, total)])
        model.problem += line <= tangent.slope * low + tangent.intercept
    return value
