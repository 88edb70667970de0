"""Is a snapshot fit to be decided on? One pass, typed errors."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from scheduler.core.errors import InvalidPolicyError, InvalidSnapshotError
from scheduler.core.interference import Pairs
from scheduler.core.policy import SOLVERS, Policy
from scheduler.core.resources import WHOLE_MILLI
from scheduler.core.snapshot import (
    DemandKind,
    Fleet,
    Reservation,
    RunningJob,
    Snapshot,
    TenantNode,
)
from scheduler.decide.scoring import SCORES
from scheduler.decide.strategies.base import RULES, STRATEGIES

MOST_QUOTA = 1 << 50
"""Of one line: a sum of a thousand of them still fits 64 bits."""

MOST_QUOTA_SUM = 1 << 60
"""Of one flavor over all tenants: sums of it and a limit still fit 64 bits."""

MOST_JOBS = 200_000
"""More cannot be answered within a cycle; the product reads the first 20,000 of a queue."""

MOST_POWER_W = 1e9
"""A gigawatt: no cluster is larger, and microwatts still fit 64 bits."""

MOST_WEIGHT = 1e9
"""Beyond, a part swallows the digits of the others, and their sum is soon infinite."""


def validate(snapshot: Snapshot) -> None:
    """Check that a snapshot does not contradict itself; O(its size).

    A job that is wrong in itself is no error here: it is answered with `misconfigured`.

    Raises:
        InvalidSnapshotError: shapes disagree, an amount is negative or not a number, an index
            points nowhere, a uid occurs twice, or the tree has a cycle.
    """
    _require(math.isfinite(snapshot.now_s), "now_s is not a finite number")
    jobs = len(snapshot.pending) + len(snapshot.running)
    _require(jobs <= MOST_JOBS, f"{jobs} jobs are more than the {MOST_JOBS} of one decision")
    _check_fleet(snapshot.fleet)
    _check_tree(snapshot.tenants)
    _check_quota_sums(snapshot.tenants)
    _check_running(snapshot.running, snapshot.fleet)
    _check_reservations(snapshot.reservations, len(snapshot.fleet.node_names))
    uids = [job.uid for job in snapshot.pending] + [job.spec.uid for job in snapshot.running]
    _unique(uids, "job uid")
    for tenant, usage in snapshot.usage_decayed.items():
        good = math.isfinite(usage) and usage >= 0
        _require(good, f"usage_decayed of {tenant!r} is {usage}")
    for key, value in snapshot.throughputs.items():
        _require(0 < value <= 1, f"throughput of {key} is {value}")
    _check_pairs(snapshot.pairs)
    _check_mix(snapshot.demand_mix)
    for one in snapshot.expectations:
        good = all(math.isfinite(wait_s) for wait_s in (one.p50_s, one.p90_s, one.waited_s))
        _require(good, f"waits of an expectation are {one.p50_s}, {one.p90_s}, {one.waited_s}")
    ratios = snapshot.runtime_ratios
    _require(all(0 <= ratio <= 1 for ratio in ratios), "runtime_ratios are not in 0..1")
    _require(all(a <= b for a, b in pairwise(ratios)), "runtime_ratios are not ascending")


def validate_times(*, now_s: float, budget_s: float = 0.0) -> None:
    """Check the times that a decision is asked with.

    Raises:
        InvalidSnapshotError: `now_s` is not a finite number.
        InvalidPolicyError: `budget_s` is negative, infinite or not a number.
    """
    _require(math.isfinite(now_s), f"now_s is {now_s}")
    if not 0 <= budget_s < math.inf:
        raise InvalidPolicyError(f"budget_s is {budget_s}")


def _check_pairs(pairs: Pairs) -> None:
    for pair, rates in pairs.items():
        _require(all(pair), f"a class of the pair {pair} has no name")
        good = all(0 <= rate <= 1 for rate in rates)
        _require(good, f"throughputs of the pair {pair} are {rates}")


def _check_mix(mix: Sequence[DemandKind]) -> None:
    for kind in mix:
        shape, good = kind.shape, math.isfinite(kind.count) and kind.count > 0
        _require(good, f"count of a kind in demand_mix is {kind.count}")
        least = min(shape.cpu_milli, shape.memory_mib, shape.devices)
        good = least >= 0 and 0 < shape.gpu_milli <= WHOLE_MILLI
        _require(good, f"a kind in demand_mix asks for {shape}")


def validate_policy(policy: Policy) -> None:
    """Check that a policy can be followed.

    Raises:
        InvalidPolicyError: an unknown strategy or placement, or a weight that is negative, absurd
            or not a number, or a factor that is not in 0..1.
    """
    if policy.placement not in SCORES:
        raise InvalidPolicyError(f"placement {policy.placement!r} is not one of {list(SCORES)}")
    validate_times(now_s=0.0, budget_s=policy.budget_s)
    _check_strategies(policy)
    _check_preemption(policy)
    for weights in (policy.order, policy.objective):
        for name, weight in asdict(weights).items():
            if not 0 <= weight <= MOST_WEIGHT:
                raise InvalidPolicyError(f"weight {name} is {weight}")
    for name in ("backfill_depth", "remedy_depth", "patience_s"):
        if not getattr(policy, name) >= 0:
            raise InvalidPolicyError(f"{name} is {getattr(policy, name)}")
    for kind, factor in asdict(policy.qos).items():
        if not 0 <= factor <= 1:
            raise InvalidPolicyError(f"qos of {kind} is {factor}")


def _check_preemption(policy: Policy) -> None:
    for name, value in asdict(policy.preemption).items():
        if not 0 <= value < math.inf:
            raise InvalidPolicyError(f"{name} of preemption is {value}")


def _check_strategies(policy: Policy) -> None:
    """Check who decides, and under which power cap.

    Beside the rules one strategy may decide, for one plan is made of all kinds of jobs.
    """
    if policy.solver not in SOLVERS:
        raise InvalidPolicyError(f"solver {policy.solver!r} is not one of {list(SOLVERS)}")
    cap_w = policy.power_cap_w
    if cap_w is not None and not 0 <= cap_w <= MOST_POWER_W:
        raise InvalidPolicyError(f"power cap is {cap_w} W")
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
    for name in ("node_cpu_milli", "node_memory_mib", "device_memory_mib"):
        _require((getattr(fleet, name) >= 0).all(), f"{name} holds a negative amount")
    free = fleet.device_free_milli
    _require(((free >= 0) & (free <= WHOLE_MILLI)).all(), "device_free_milli is not in 0..1000")
    at, flavor = fleet.device_node, fleet.device_flavor
    _require(((at >= 0) & (at < nodes)).all(), "device_node points to no node")
    _require((np.diff(at) >= 0).all(), "device_node is not ascending")
    known = (flavor >= 0) & (flavor < len(fleet.flavors))
    _require(known.all(), "device_flavor points to no flavor")
    for spec in fleet.flavors:
        units = spec.compute_units
        good = units is None or (math.isfinite(units) and units > 0)
        _require(good, f"compute_units of flavor {spec.name!r} is {units}")
        watts = spec.power_w
        good = watts is None or 0 <= watts <= MOST_POWER_W
        _require(good, f"power_w of flavor {spec.name!r} is {watts}")


def _check_tree(tenants: Sequence[TenantNode]) -> None:
    _unique([tenant.slug for tenant in tenants], "tenant")
    known = {tenant.slug for tenant in tenants}
    seen: set[str] = set()
    for tenant in tenants:
        slug, parent = tenant.slug, tenant.parent
        _require(parent is None or parent in known, f"parent of tenant {slug!r} is unknown")
        ordered = parent is None or parent in seen
        _require(ordered, f"tenant {slug!r} stands before its parent, or in a cycle")
        seen.add(slug)
        weight = tenant.fair_weight
        _require(math.isfinite(weight) and weight >= 0, f"fair_weight of {slug!r} is {weight}")
        _require(math.isfinite(tenant.created_s), f"created_s of {slug!r} is {tenant.created_s}")
        for flavor, line in tenant.quotas.items():
            amounts = (line.nominal, line.borrowing_limit or 0, line.lending_limit or 0)
            _require(min(amounts) >= 0, f"quota of {slug!r} for {flavor!r} is negative")
            _require(max(amounts) <= MOST_QUOTA, f"quota of {slug!r} for {flavor!r} is absurd")


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
        times = math.isfinite(one.start_s) and math.isfinite(one.end_s)
        good = times and one.start_s < one.end_s
        _require(good, f"reservation {one.id!r} lasts from {one.start_s} to {one.end_s}")
        known = all(0 <= node < nodes for node in one.nodes)
        _require(known, f"reservation {one.id!r} is of no known node")


def _check_running(running: Iterable[RunningJob], fleet: Fleet) -> None:
    nodes, devices = len(fleet.node_names), len(fleet.device_uids)
    held_milli = Counter[int]()
    for job in running:
        uid = job.spec.uid
        _require(math.isfinite(job.started_s), f"started_s of job {uid!r} is {job.started_s}")
        _require(job.spec.time_limit_s > 0, f"time_limit_s of running job {uid!r} is not positive")
        for at_s in (job.checkpointed_s, job.ending_s):
            known = at_s is None or math.isfinite(at_s)
            _require(known, f"job {uid!r} was safe, or ends, at {at_s}")
        kept = not Counter(job.keeps) - Counter(job.replicas)
        _require(kept, f"job {uid!r} keeps replicas that it does not have")
        for replica in job.replicas:
            _require(0 <= replica.node < nodes, f"job {uid!r} runs on no known node")
            for device in replica.devices:
                good = 0 <= device < devices and fleet.device_node[device] == replica.node
                _require(good, f"job {uid!r} holds a device that is not on its node")
            once = len(set(replica.devices)) == len(replica.devices)
            _require(once, f"job {uid!r} holds a device twice in one replica")
            good = not replica.devices or 0 < replica.gpu_milli <= WHOLE_MILLI
            _require(good, f"job {uid!r} holds {replica.gpu_milli} milli of its devices")
            held_milli.update(dict.fromkeys(replica.devices, replica.gpu_milli))
    for device, milli in held_milli.items():
        left = max(0, WHOLE_MILLI - milli)
        free = int(fleet.device_free_milli[device])
        name = fleet.device_uids[device]
        _require(free <= left, f"device {name!r} has {free} milli free, and {milli} are held")
