"""Who holds what on a fleet, as far as the viewer may see; for the live grid."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.db.models import Count, Q

from scheduler.choices import HOLDING_STATES, JobState
from scheduler.models import DeviceHold, Job
from telemetry import selectors as telemetry
from telemetry.models import Cluster

Rows = dict[str, dict[str, Any]]


def fleet_rows(cluster: Cluster) -> Rows:
    """Return the rows of a cluster's live page as an admin would see them.

    Keys are `node:<name>`, `device:<uid>` and `cluster`; holders carry `tenant_id`, which
    `for_viewer` takes out again. A fixed number of queries.
    """
    rows: Rows = telemetry.fleet_state(cluster)
    for (key, node), holders in _holders(cluster).items():
        if key in rows and rows[key]["node"] == node:
            rows[key]["holders"] = holders
    rows["cluster"] = _summary(cluster, rows)
    return rows


def for_viewer(rows: Mapping[str, dict[str, Any]], tenant_ids: frozenset[int] | None) -> Rows:
    """Return the rows with the holders that the viewer may not see made nameless.

    Args:
        rows: as `fleet_rows` gives them; left as they are.
        tenant_ids: of the tenants that the viewer may see; None = all.
    """
    return {
        key: row if not row.get("holders") else {**row, "holders": _seen(row, tenant_ids)}
        for key, row in rows.items()
    }


def _seen(row: Mapping[str, Any], tenant_ids: frozenset[int] | None) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in holder.items() if name != "tenant_id"}
        if tenant_ids is None or holder["tenant_id"] in tenant_ids
        else {"job": None, "name": None, "tenant": None, "gpu_milli": holder["gpu_milli"]}
        for holder in row["holders"]
    ]


def _holders(cluster: Cluster) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return (device key, node) -> holders: a device that moved may be held on both nodes."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    holds = (
        DeviceHold.objects.filter(period__upper_inf=True, device__node__cluster=cluster)
        .values_list(
            "device__uid",
            "device__node__name",
            "gpu_milli",
            "replica__placement__job_id",
            "replica__placement__job__name",
            "replica__placement__job__tenant__slug",
            "replica__placement__job__tenant_id",
        )
        .order_by("device_id", "pk")
    )
    for uid, node, milli, job, name, tenant, tenant_id in holds:
        found[f"device:{uid}", node].append(
            {
                "job": str(job),
                "name": name,
                "tenant": tenant,
                "gpu_milli": milli,
                "tenant_id": tenant_id,
            }
        )
    return found


def _summary(cluster: Cluster, rows: Rows) -> dict[str, Any]:
    now_states = {JobState.QUEUED, *HOLDING_STATES}
    counts = Job.objects.filter(cluster=cluster, state__in=now_states).aggregate(
        running=Count("pk", filter=Q(state__in=HOLDING_STATES)),
        queued=Count("pk", filter=Q(state=JobState.QUEUED)),
    )
    devices = [row for row in rows.values() if row["kind"] == "device"]
    nodes = [row for row in rows.values() if row["kind"] == "node"]
    if devices:
        allocated = sum(d["allocated_milli"] for d in devices) / (1000 * len(devices))
        utilised = _mean([d["utilised_frac"] for d in devices])
    else:  # a fleet without accelerators is as full as its cores
        total = sum(n["cpu_milli"] for n in nodes)
        allocated = sum(n["cpu_allocated_milli"] for n in nodes) / total if total else 0.0
        utilised = _mean([n["cpu_utilised_frac"] for n in nodes])
    return {
        "kind": "cluster",
        "running": counts["running"],
        "queued": counts["queued"],
        "allocated_frac": round(allocated, 4),
        "utilised_frac": None if utilised is None else round(utilised, 4),
        "sampled_at": cluster.sampled_at.isoformat() if cluster.sampled_at else None,
        "sense_error": cluster.sense_error,
    }


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
