"""What a simulation says in figures: one summary per run, one row per job."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from scheduler.core.resources import CPU_FLAVOR
from scheduler.core.snapshot import TenantNode
from scheduler.decide.fairness.division import Claim, divide
from scheduler.simulate.metrics import FloatArray, capacity_devices, demand_shares, totals
from scheduler.simulate.result import End, History, Result

STEPS = 200
"""Into so many steps the time is cut to look at shares."""

JOB_COLUMNS = (
    "run",
    "uid",
    "tenant",
    "state",
    "submitted_s",
    "first_start_s",
    "end_s",
    "wait_s",
    "completion_s",
    "waited_s",
    "lasted_s",
    "starts",
    "evictions",
    "losses",
    "resizes",
    "lost_s",
)


def figures(
    result: Result,
    tenants: Sequence[TenantNode],
    *,
    begun: Collection[str] = (),
    until_s: float = math.inf,
) -> dict[str, Any]:
    """Return the figures of one run, JSON-serialisable.

    Args:
        result: of the run.
        tenants: of its world, for what each is owed.
        begun: uids of jobs that ran already when it began; nothing is said of their waits.
        until_s: epoch seconds up to which rates and device hours are worked out (`rates_days`), so
            that runs that end at different times can be compared; inf = its own end. What became of
            jobs is counted to its end.
    """
    window = result.until(until_s)
    seen, known = totals(window), set(begun)
    counted = [job for job in result.jobs if job.uid not in known]
    capacity = max(seen.capacity_device_s, 1e-9)
    return {
        "jobs": {state.value: sum(job.state is state for job in counted) for state in End},
        "unstarted": sum(not job.starts for job in counted),
        "wait_s": _spread([job.wait_s for job in counted]),
        "waited_s": _spread([job.waited_s(result.end_s) for job in counted]),
        "completion_s": _spread([job.completion_s for job in counted]),
        "lasted_s": _spread([job.lasted_s(result.end_s) for job in counted]),
        "allocated_pct": _pct(seen.allocated_device_s / capacity),
        "utilised_pct": _pct(seen.utilised_device_s / capacity),
        "idle_while_waiting_pct": _pct(seen.idle_while_waiting_device_s / capacity),
        "lost_device_h": round(seen.lost_device_s / 3600, 3),
        "evictions": sum(job.evictions for job in result.jobs),
        "losses": sum(job.losses for job in result.jobs),
        "resizes": sum(job.resizes for job in result.jobs),
        "jain": fair_shares_kept(window, tenants),
        "tenants": _of_tenants(window, counted, end_s=result.end_s),
        "rates_days": _days(window),
        "days": _days(result),
        "events": result.events,
        "cycles": result.cycles,
    }


def _days(result: Result) -> float:
    return round((result.end_s - result.begin_s) / 86400, 5)


def _pct(frac: float) -> float:
    return round(100 * frac, 2)


def _spread(values: Sequence[float | None]) -> dict[str, float | None]:
    known = np.array([value for value in values if value is not None])
    if not len(known):
        return {"mean": None, "p50": None, "p90": None, "p99": None, "max": None}
    p50, p90, p99 = np.percentile(known, [50, 90, 99])
    told = {"mean": known.mean(), "p50": p50, "p90": p90, "p99": p99, "max": known.max()}
    return {name: round(float(value), 1) for name, value in told.items()}


def _of_tenants(
    result: Result, counted: Sequence[History], *, end_s: float
) -> dict[str, dict[str, Any]]:
    held: dict[str, float] = {}
    for span in result.spans:
        held_s = max(0.0, min(span.end_s, result.end_s) - span.start_s)
        device_s = held_s * span.device_milli / 1000
        held[span.tenant] = held.get(span.tenant, 0.0) + device_s
    jobs: dict[str, list[History]] = {job.tenant: [] for job in result.jobs}
    for job in counted:
        jobs[job.tenant].append(job)
    return {
        tenant: {
            "jobs": len(mine),
            "wait_s": _spread([job.wait_s for job in mine])["mean"],
            "waited_s": _spread([job.waited_s(end_s) for job in mine])["mean"],
            "device_h": round(held.get(tenant, 0.0) / 3600, 3),
        }
        for tenant, mine in sorted(jobs.items())
    }


def fair_shares_kept(result: Result, tenants: Sequence[TenantNode]) -> float | None:
    """Return Jain's index of what tenants got against their fair share, while there was too little.

    In each step in which all together ask for more devices than there are, the devices are divided
    by KAI's rule (quota first, then by weight, nobody more than it asks for); x is what a tenant
    held as a part of that, 1 at most. The index is the mean of (sum x)^2 / (n sum x^2) over those
    steps, 1 = as fair as can be; None = there always was enough.

    Source: Jain, Chiu, Hawe, DEC-TR-301 (1984).
    """
    step_s = (result.end_s - result.begin_s) / STEPS
    if not step_s > 0:
        return None
    at_s, names, held, asked = demand_shares(result, step_s)
    there = capacity_devices(result).at(at_s)
    rows = {tenant.slug: tenant for tenant in tenants}
    indices = [
        _jain(int(1000 * there[k]), [rows.get(name) for name in names], held[k], asked[k])
        for k in np.flatnonzero(asked.sum(axis=1) > there + 1e-6)
    ]
    known = [index for index in indices if index is not None]
    return round(float(np.mean(known)), 4) if known else None


def _jain(
    milli: int, tenants: Sequence[TenantNode | None], held: FloatArray, asked: FloatArray
) -> float | None:
    claims = [
        Claim(
            str(k),
            deserved=_owned(tenant),
            requested=int(1000 * asked[k]),
            weight=tenant.fair_weight if tenant else 1.0,
        )
        for k, tenant in enumerate(tenants)
        if asked[k] > 0
    ]
    fair = divide(milli, claims)
    parts = [min(1.0, 1000 * held[int(name)] / share) for name, share in fair.items() if share]
    squares = math.fsum(part * part for part in parts)
    return math.fsum(parts) ** 2 / (len(parts) * squares) if squares else None


def _owned(tenant: TenantNode | None) -> int:
    quotas = tenant.quotas.items() if tenant else ()
    return sum(line.nominal for flavor, line in quotas if flavor != CPU_FLAVOR)


def job_rows(run: str, result: Result) -> Iterator[Mapping[str, object]]:
    """Give one row per job with the columns of `JOB_COLUMNS`."""
    for job in result.jobs:
        yield {
            "run": run,
            "uid": job.uid,
            "tenant": job.tenant,
            "state": job.state.value,
            "submitted_s": job.submitted_s,
            "first_start_s": job.starts[0] if job.starts else None,
            "end_s": job.end_s,
            "wait_s": job.wait_s,
            "completion_s": job.completion_s,
            "waited_s": job.waited_s(result.end_s),
            "lasted_s": job.lasted_s(result.end_s),
            "starts": len(job.starts),
            "evictions": job.evictions,
            "losses": job.losses,
            "resizes": job.resizes,
            "lost_s": job.lost_s,
        }
