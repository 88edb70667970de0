"""What would become of a job that is not yet submitted: the very code that decides, asked early."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from scheduler import snapshots
from scheduler.core.errors import InvalidSnapshotError
from scheduler.core.plan import Start
from scheduler.core.reasons import NEVER, Pending, WaitReason
from scheduler.core.snapshot import Fleet, JobSpec, Snapshot
from scheduler.decide import cycle
from scheduler.decide.quota import charges_of
from scheduler.decide.standing import QuotaStanding, quota_ledger, standing
from scheduler.models import Job
from scheduler.services.plans import pending_json
from scheduler.services.validation import JobRequest
from scheduler.snapshots import Frozen
from telemetry import units
from telemetry.models import Device

logger = logging.getLogger(__name__)

ESTIMATE_UID = UUID(int=2**128 - 1)
"""The last of all keys: an estimate stands behind every job that is equal to it."""

PATIENCE_S = 1.0
"""Whoever asks waits for the answer: advice is tried for no longer, whatever a cycle may take."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The answer to "what if I submitted this now?".

    Attributes:
        verdict: now, wait or never.
        pending: why it waits, as stored with a job; None for `now`.
        placement: where each replica would go: {node, devices, flavor}; empty unless `now`.
        quota: what the tenant has of each flavor that the job is charged to.
        compute_units: CU of all that the job would hold; None where the model is unknown.
        cu_hours: CU times the time limit.
    """

    verdict: str
    pending: dict[str, Any] | None
    placement: tuple[dict[str, Any], ...]
    quota: tuple[QuotaStanding, ...]
    compute_units: float | None
    cu_hours: float | None


def job_estimate(*, request: JobRequest, now: datetime) -> Estimate:
    """Return what the engine says of a request; nothing is written."""
    frozen = snapshots.take(cluster=request.cluster, now=now)
    snapshot = frozen.snapshot
    (spec,) = snapshots.classed([_spec(request, now)], snapshot.throughputs)
    answer = _answer(frozen, spec)
    start = answer if isinstance(answer, Start) else None
    pending = None if isinstance(answer, Start) else answer
    flavor = start.flavor if start else _likely_flavor(spec, snapshot.fleet, pending)
    units_held = _compute_units(spec, flavor, snapshot.fleet)
    return Estimate(
        verdict="now" if pending is None else "never" if pending.code in NEVER else "wait",
        pending=None if pending is None else pending_json(pending),
        placement=() if start is None else _where(start, frozen),
        quota=_quota(snapshot, spec, flavor),
        compute_units=units_held,
        cu_hours=units.cu_hours(units_held, float(request.time_limit_s)),
    )


def _spec(request: JobRequest, now: datetime) -> JobSpec:
    columns: Mapping[str, Any] = {
        name: getattr(request, name) for name in JobRequest.__dataclass_fields__
    }
    return snapshots.job_spec(Job(uid=ESTIMATE_UID, submitted_at=now, **columns), now)


def _likely_flavor(spec: JobSpec, fleet: Fleet, pending: Pending | None) -> str:
    """Return the flavor that a waiting job is counted under.

    The one that its waiting reason names, so that both speak of the same; else its first choice;
    else the fleet's first.
    """
    if not spec.shape.devices:
        return ""
    names = [flavor.name for flavor in fleet.flavors]
    blamed = pending.evidence.get("flavor") if pending else None
    if blamed in names:
        return str(blamed)
    return next((f for f in spec.flavors if f in names), names[0] if names else "")


def _compute_units(spec: JobSpec, flavor: str, fleet: Fleet) -> float | None:
    if not spec.shape.devices:
        return 0.0
    tflops = next((f.compute_units for f in fleet.flavors if f.name == flavor), None)
    return units.compute_units(tflops, spec.shape.device_milli * spec.replicas_max)


def _answer(frozen: Frozen, spec: JobSpec) -> Start | Pending:
    """Ask the engine; where the state contradicts itself, nothing is known and nothing refused."""
    snapshot, policy = frozen.snapshot, frozen.policy
    try:
        return cycle.estimate(
            snapshot,
            policy,
            spec,
            now_s=snapshot.now_s,
            budget_s=min(policy.budget_s, PATIENCE_S),
            clock=time.monotonic,
        )
    except InvalidSnapshotError:
        logger.exception("snapshot refused cluster=%s", snapshot.cluster)
        return Pending(spec.uid, WaitReason.PENDING_EVALUATION)


def _where(start: Start, frozen: Frozen) -> tuple[dict[str, Any], ...]:
    keys = [frozen.keys.devices[device] for r in start.replicas for device in r.devices]
    index = dict(Device.objects.filter(pk__in=keys).values_list("pk", "index"))
    return tuple(
        {
            "node": frozen.snapshot.fleet.node_names[replica.node],
            "devices": [index[frozen.keys.devices[device]] for device in replica.devices],
            "flavor": start.flavor,
            "gpu_milli": replica.gpu_milli,
        }
        for replica in start.replicas
    )


def _quota(snapshot: Snapshot, spec: JobSpec, flavor: str) -> tuple[QuotaStanding, ...]:
    ledger = quota_ledger(snapshot)
    lines = next(t.quotas for t in snapshot.tenants if t.slug == spec.tenant)
    return tuple(
        standing(
            ledger,
            tenant=spec.tenant,
            flavor=charge.flavor,
            nominal=lines[charge.flavor].nominal if charge.flavor in lines else 0,
            asked=charge.amount,
        )
        for charge in charges_of(spec, spec.replicas_max, flavor)
        if charge.flavor
    )
