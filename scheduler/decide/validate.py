"""Is a snapshot fit to be decided on? One pass, typed errors."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from scheduler.core.errors import EngineError, InvalidPolicyError, InvalidSnapshotError
from scheduler.core.interference import Pairs
from scheduler.core.policy import SOLVERS, Policy
from scheduler.core.resources import CPU_FLAVOR, WHOLE_MILLI
from scheduler.core.snapshot import (
    Fleet,
    ReplicaPlacement,
    Reservation,
    RunningJob,
    Snapshot,
    TenantNode,
)
from scheduler.decide import bounds
from scheduler.decide.bounds import Bound, Bounds, stray
from scheduler.decide.scoring import SCORES
from scheduler.decide.strategies.base import RULES, STRATEGIES

MOST_QUOTA_SUM = 1 << 60
"""Of one flavor over all tenants: sums of it and a limit still fit 64 bits."""

MOST_JOBS = 200_000
"""More cannot be answered within a cycle; the product reads the first 20,000 of a queue.

The time grows in proportion: 100,000 jobs of one tenant, each of a kind of its own, take 20 s.
"""


_OF_WHOLE = {
    "node_cpu_free_milli": "node_cpu_milli",
    "node_memory_free_mib": "node_memory_mib",
    "device_free_memory_mib": "device_memory_mib",
}
"""What is free -> what it is free of."""


def validate(snapshot: Snapshot) -> None:
    """Check that a snapshot does not contradict itself; O(its size).

    A waiting job that is wrong in itself is no error here: it is answered with `misconfigured`.

    Raises:
        InvalidSnapshotError: shapes disagree, a number is out of its `bounds`, an index points
            nowhere, a name is empty or occurs twice, an accelerator flavor is called like that of
            cores, or the tree has a cycle.
    """
    _number("now_s", snapshot.now_s, bounds.TIME)
    jobs = len(snapshot.pending) + len(snapshot.running)
    _require(jobs <= MOST_JOBS, f"{jobs} jobs are more than the {MOST_JOBS} of one decision")
    _check_fleet(snapshot.fleet)
    _check_tree(snapshot.tenants)
    _check_quota_sums(snapshot.tenants)
    _check_running(snapshot.running, snapshot.fleet)
    _check_reservations(snapshot.reservations, len(snapshot.fleet.node_names))
    uids = [job.uid for job in snapshot.pending] + [job.spec.uid for job in snapshot.running]
    _unique(uids, "job uid")
    for uid in uids:
        _named(uid, "a job")
    _check_learnt(snapshot)


def _check_learnt(snapshot: Snapshot) -> None:
    """Check what was measured: use, throughputs, waits, runtimes, and what has arrived."""
    for tenant, usage in snapshot.usage_decayed.items():
        _number(f"usage_decayed of {tenant!r}", usage, bounds.USAGE)
    for key, value in snapshot.throughputs.items():
        _number(f"throughputs of {key}", value, bounds.THROUGHPUT)
    _check_pairs(snapshot.pairs)
    for kind in snapshot.demand_mix:
        _numbers(kind, bounds.DEMAND, "a kind in demand_mix")
        _numbers(kind.shape, bounds.SHAPE, "a kind in demand_mix")
    for one in snapshot.expectations:
        _numbers(one, bounds.EXPECTATION, "an expectation")
    ratios = snapshot.runtime_ratios
    for ratio in ratios:
        _number("one of runtime_ratios", ratio, bounds.PART)
    _require(all(a <= b for a, b in pairwise(ratios)), "runtime_ratios are not ascending")


def validate_times(*, now_s: float, budget_s: float = 0.0) -> None:
    """Check the times that a decision is asked with.

    Raises:
        InvalidSnapshotError: `now_s` is no moment.
        InvalidPolicyError: `budget_s` is negative, or endless.
    """
    _number("now_s", now_s, bounds.TIME)
    _number("budget_s", budget_s, bounds.BUDGET, InvalidPolicyError)


def _number(
    what: str, value: object, bound: Bound, error: type[EngineError] = InvalidSnapshotError
) -> None:
    if not bound.takes(value):
        raise error(f"{what} is {value}")


def _numbers(
    thing: object, of: Bounds, what: str, error: type[EngineError] = InvalidSnapshotError
) -> None:
    wrong = stray(thing, of)
    if wrong:
        raise error(f"{wrong} of {what} is {getattr(thing, wrong)}")


def _check_pairs(pairs: Pairs) -> None:
    for pair, rates in pairs.items():
        _require(all(pair), f"a class of the pair {pair} has no name")
        good = all(bounds.PART.takes(rate) for rate in rates)
        _require(good, f"pairs of {pair} are {rates}")


def validate_policy(policy: Policy) -> None:
    """Check that a policy can be followed.

    Raises:
        InvalidPolicyError: an unknown strategy or placement, or a number out of its `bounds`.
    """
    if policy.placement not in SCORES:
        raise InvalidPolicyError(f"placement {policy.placement!r} is not one of {list(SCORES)}")
    _check_strategies(policy)
    _numbers(policy, bounds.POLICY, "the policy", InvalidPolicyError)
    for name, of in bounds.POLICY_PARTS.items():
        _numbers(getattr(policy, name), of, name, InvalidPolicyError)


def _check_strategies(policy: Policy) -> None:
    """Check who decides.

    Beside the rules one strategy may decide, for one plan is made of all kinds of jobs.
    """
    if policy.solver not in SOLVERS:
        raise InvalidPolicyError(f"solver {policy.solver!r} is not one of {list(SOLVERS)}")
    named = {policy.strategy, *(strategy for _, strategy in policy.kinds)}
    for name in sorted({*named, policy.shadow} - {""}):
        if name not in STRATEGIES:
            raise InvalidPolicyError(f"strategy {name!r} is not one of {list(STRATEGIES)}")
    if len(named - {RULES}) > 1:
        raise InvalidPolicyError(f"more than one strategy beside the rules: {sorted(named)}")
    if len({kind for kind, _ in policy.kinds}) < len(policy.kinds):
        raise InvalidPolicyError("a kind of jobs is named twice")


def _require(condition: bool | np.bool_, message: str) -> None:
    if not condition:
        raise InvalidSnapshotError(message)


def _named(name: str, what: str) -> None:
    """Check a name: the empty one stands for none, or for all."""
    _require(bool(name), f"{what} has no name")


def _unique(values: Sequence[str], what: str) -> None:
    seen: set[str] = set()
    for value in values:
        _require(value not in seen, f"{what} {value!r} occurs twice")
        seen.add(value)


def _check_fleet(fleet: Fleet) -> None:
    nodes, devices = len(fleet.node_names), len(fleet.device_uids)
    _unique(fleet.node_names, "node name")
    _unique(fleet.device_uids, "device uid")
    _unique([flavor.name for flavor in fleet.flavors], "flavor")
    for flavor in fleet.flavors:
        _named(flavor.name, "an accelerator flavor")
        good = flavor.name != CPU_FLAVOR
        _require(good, f"an accelerator flavor is called {CPU_FLAVOR!r}, which stands for cores")
    for name in ("node_cpu_milli", "node_memory_mib", "node_cpu_free_milli"):
        _shape(getattr(fleet, name), nodes, name)
    for name in ("node_memory_free_mib", "node_ready", "node_note", "node_taints", "node_labels"):
        _shape(getattr(fleet, name), nodes, name)
    for name in ("device_node", "device_flavor", "device_free_milli", "device_free_memory_mib"):
        _shape(getattr(fleet, name), devices, name)
    for name in ("device_memory_mib", "device_healthy", "device_link_group"):
        _shape(getattr(fleet, name), devices, name)
    for name in ("device_numa", "device_nic", "device_throttled"):
        if len(getattr(fleet, name)):
            _shape(getattr(fleet, name), devices, name)
    _check_amounts(fleet, nodes)


def _shape(values: Sequence[object] | npt.NDArray[np.generic], size: int, name: str) -> None:
    _require(len(values) == size, f"{name} has {len(values)} entries, expected {size}")
    if isinstance(values, np.ndarray):
        _require(values.ndim == 1, f"{name} is not one-dimensional")
        _require(values.dtype.kind in "iub", f"{name} is not of integers")


def _check_amounts(fleet: Fleet, nodes: int) -> None:
    for name, bound in bounds.FLEET.items():
        values = getattr(fleet, name)
        for worst in (values.min(initial=0), values.max(initial=0)):
            _number(f"an entry of {name}", int(worst), bound)
    for free, whole in _OF_WHOLE.items():
        less = (getattr(fleet, free) <= getattr(fleet, whole)).all()
        _require(less, f"{free} is more than {whole}")
    at, flavor = fleet.device_node, fleet.device_flavor
    _require(((at >= 0) & (at < nodes)).all(), "device_node points to no node")
    _require((np.diff(at) >= 0).all(), "device_node is not ascending")
    known = (flavor >= 0) & (flavor < len(fleet.flavors))
    _require(known.all(), "device_flavor points to no flavor")
    for spec in fleet.flavors:
        _numbers(spec, bounds.FLAVOR, f"flavor {spec.name!r}")


def _check_tree(tenants: Sequence[TenantNode]) -> None:
    _unique([tenant.slug for tenant in tenants], "tenant")
    for tenant in tenants:
        _named(tenant.slug, "a tenant")
    known = {tenant.slug for tenant in tenants}
    seen: set[str] = set()
    for tenant in tenants:
        slug, parent = tenant.slug, tenant.parent
        _require(parent is None or parent in known, f"parent of tenant {slug!r} is unknown")
        ordered = parent is None or parent in seen
        _require(ordered, f"tenant {slug!r} stands before its parent, or in a cycle")
        seen.add(slug)
        _numbers(tenant, bounds.TENANT, repr(slug))
        for flavor, line in tenant.quotas.items():
            _numbers(line, bounds.QUOTA, f"the quota of {slug!r} for {flavor!r}")


def _check_quota_sums(tenants: Sequence[TenantNode]) -> None:
    owned: dict[str, int] = {}
    for tenant in tenants:
        for flavor, line in tenant.quotas.items():
            owned[flavor] = owned.get(flavor, 0) + line.nominal
    for flavor, total in owned.items():
        _require(total <= MOST_QUOTA_SUM, f"quotas for {flavor!r} sum to an absurd {total}")


def _check_reservations(reservations: Sequence[Reservation], nodes: int) -> None:
    _unique([one.id for one in reservations], "reservation")
    for one in reservations:
        _numbers(one, bounds.RESERVATION, f"reservation {one.id!r}")
        good = one.start_s < one.end_s
        _require(good, f"end_s of reservation {one.id!r} is {one.end_s}, from {one.start_s}")
        known = all(_is_index(node, nodes) for node in one.nodes)
        _require(known, f"nodes of reservation {one.id!r} are {one.nodes}, not all known")


def _is_index(value: object, count: int) -> bool:
    return isinstance(value, bounds.WHOLE) and bool(0 <= value < count)


def _check_running(running: Iterable[RunningJob], fleet: Fleet) -> None:
    held_milli = Counter[int]()
    for job in running:
        what = f"running job {job.spec.uid!r}"
        _numbers(job, bounds.RUNNING, what)
        _numbers(job.spec, bounds.JOB, what)
        _numbers(job.spec.shape, bounds.SHAPE, what)
        for replica in job.replicas:
            _check_held(replica, fleet, what)
            held_milli.update(dict.fromkeys(replica.devices, replica.gpu_milli))
        kept = not job.keeps or not Counter(job.keeps) - Counter(job.replicas)
        _require(kept, f"{what} keeps replicas that it does not have")
    _check_sums(held_milli, fleet)


def _check_held(replica: ReplicaPlacement, fleet: Fleet, what: str) -> None:
    """Check what one replica holds."""
    _numbers(replica, bounds.HELD, what)
    known = replica.node < len(fleet.node_names)
    _require(known, f"node of {what} is {replica.node}, which is none")
    for device in replica.devices:
        known = _is_index(device, len(fleet.device_uids))
        good = known and fleet.device_node[device] == replica.node
        _require(good, f"devices of {what} are {replica.devices}, not all on its node")
    once = len(set(replica.devices)) == len(replica.devices)
    _require(once, f"{what} holds a device twice in one replica")
    good = not replica.devices or replica.gpu_milli > 0
    _require(good, f"gpu_milli of {what} is {replica.gpu_milli}")


def _check_sums(held_milli: Mapping[int, int], fleet: Fleet) -> None:
    for device, milli in held_milli.items():
        left = max(0, WHOLE_MILLI - milli)
        free = int(fleet.device_free_milli[device])
        name = fleet.device_uids[device]
        _require(free <= left, f"device {name!r} has {free} milli free, and {milli} are held")
