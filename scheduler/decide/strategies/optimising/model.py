"""The mixed-integer program: how many jobs of each class start, on which flavor and node group.

Jobs of a class and nodes of a group are counted, not listed, so the program is a relaxation of
placing each replica; the turns that follow place what it chose, one by one and exactly.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pulp

from scheduler.decide.feasibility import ANY
from scheduler.decide.objective import LOG_FLOOR, Objective, Standing
from scheduler.decide.quota import FlavorTree
from scheduler.decide.session import Session
from scheduler.decide.strategies.optimising.classes import JobClass, NodeGroups
from scheduler.decide.strategies.optimising.tangents import tangents


class Option(NamedTuple):
    """One class on one flavor.

    Attributes:
        kind: the class.
        flavor: index of the flavor.
        jobs: variable, how many start.
        on_group: node group -> variable, how many replicas go there.
    """

    kind: JobClass
    flavor: int
    jobs: Any
    on_group: Mapping[int, Any]

    @property
    def replicas(self) -> Any:
        """Return the expression of all replicas."""
        return pulp.lpSum(self.on_group.values())


@dataclass(slots=True)
class Model:
    """A program and what its variables mean.

    Attributes:
        problem: PuLP's program.
        options: the variables.
        constant: value of the program if nothing starts; its objective minus this is the gain.
    """

    problem: Any
    options: list[Option] = field(default_factory=list)
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
        _add_class(model, c, kind)
    _add_capacity(model, groups)
    for flavor, f in session.tree.flavors.items():
        _add_quota(model, session, flavor, session.tree.trees[f])
    _add_objective(model, objective, standing)
    return model


def _add_class(model: Model, c: int, kind: JobClass) -> None:
    """At most all jobs of the class start, each as a gang within its bounds."""
    job, started = kind.job, []
    for flavor, room in kind.room.items():
        name, members = f"{c}_{flavor + 1}", len(kind.jobs)
        most = min(members, int(room.sum()) // job.replicas_min)
        jobs = pulp.LpVariable(f"x_{name}", 0, most, cat=pulp.LpInteger)
        on_group = {
            g: pulp.LpVariable(f"z_{name}_{g}", 0, min(int(room[g]), members * job.replicas_max))
            for g in room.nonzero()[0].tolist()
        }
        option = Option(kind, flavor, jobs, on_group)
        model.problem += option.replicas >= job.replicas_min * jobs
        model.problem += option.replicas <= job.replicas_max * jobs
        model.options.append(option)
        started.append(jobs)
    if len(started) > 1:
        model.problem += pulp.lpSum(started) <= len(kind.jobs)


def _add_capacity(model: Model, groups: NodeGroups) -> None:
    """No group gives more CPU, memory, thousandths or whole devices than it has."""
    for g in range(groups.count):
        here = [(option, option.on_group[g]) for option in model.options if g in option.on_group]
        if not here:
            continue
        shapes = [(option.kind.job.shape, option.flavor, z) for option, z in here]
        model.problem += _sum((s.cpu_milli / 1000, z) for s, _, z in shapes) <= groups.cpu[g] / 1000
        memory = _sum((s.memory_mib / 1024, z) for s, _, z in shapes)
        model.problem += memory <= groups.memory[g] / 1024
        for flavor in sorted({f for _, f, _ in shapes if f != ANY}):
            on = [(s, z) for s, f, z in shapes if f == flavor]
            milli = _sum((s.device_milli / 1000, z) for s, z in on)
            model.problem += milli <= groups.milli[g, flavor] / 1000
            whole = _sum((s.devices, z) for s, z in on if not s.is_fraction)
            model.problem += whole <= int(groups.whole[g, flavor])


def _sum(terms: Iterable[tuple[float, Any]]) -> Any:
    return pulp.LpAffineExpression([(variable, float(factor)) for factor, variable in terms])


def _add_quota(model: Model, session: Session, flavor: str, tree: FlavorTree) -> None:
    """No tenant on the way up passes what it may hold; what is above its local part moves up.

    Where a quota was cut below use nothing more can start, but nothing has to stop.
    """
    quota, used = session.tree, session.profile.ledger.usage[0, session.tree.flavors[flavor]]
    rising: list[list[Any]] = [[] for _ in quota.slugs]
    for option in model.options:
        for charge in session.charges(option.kind.job, option.flavor, 1):
            if charge.flavor == flavor and charge.amount:
                n = quota.index[option.kind.job.tenant]
                rising[n].append(option.replicas * (charge.amount / 1000))
    for n in range(len(quota.slugs) - 1, -1, -1):
        if not rising[n]:
            continue
        more, now, parent = pulp.lpSum(rising[n]), int(used[n]), quota.parent[n]
        most = tree.subtree[n] if parent < 0 else _limit(tree, n)
        if most is not None:
            model.problem += more <= max(0, most - now) / 1000
        if parent >= 0:
            rising[parent].append(_overflow(model, more, tree.local[n] - now, f"{flavor}_{n}"))


def _limit(tree: FlavorTree, n: int) -> int | None:
    limit = tree.borrowing[n]
    return None if limit is None else tree.subtree[n] + limit


def _overflow(model: Model, more: Any, spare: int, name: str) -> Any:
    """Return what passes the local quota and so becomes the parent's usage."""
    if spare <= 0:
        return more
    above = pulp.LpVariable(f"o_{name}".replace("-", "_"), 0)
    model.problem += above >= more - spare / 1000
    return above


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
    energy = [(-w.energy * g.energy, z) for o, g in gains for z in o.on_group.values()]
    model.problem.setObjective(_sum([*parts, *energy]))


def _log(model: Model, name: str, base: float, rising: Sequence[tuple[Option, float]]) -> Any:
    """Return a variable that is at most the logarithm, up to the tangents' error."""
    low = LOG_FLOOR + base
    total = pulp.LpVariable(f"t_{name}", 0)
    terms = [(each, z) for option, each in rising for z in option.on_group.values()]
    model.problem += total == _sum(terms)
    most = sum(
        each * len(option.kind.jobs) * option.kind.job.replicas_max for option, each in rising
    )
    value = pulp.LpVariable(f"log_{name}")
    for tangent in tangents(low, low + most):
        model.problem += value <= tangent.slope * (total + low) + tangent.intercept
    return value
