"""What was held and what was busy, exact, clipped to the window asked for.

Three numbers, always: allocated (held), utilised (seen busy by samples), idle (held, not seen
busy). Closed placements come from the ledger, open ones from their holds. PostgreSQL sums them in
exact integers, so windows that split a placement add up to the whole.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from scheduler.core.resources import CPU_FLAVOR
from tenants import selectors as tenants
from tenants.models import Viewer

MILLI_US_PER_DEVICE_HOUR = 1000 * 3_600_000_000


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One tenant's use of one flavor over a window.

    Attributes:
        tenant, flavor: whose, of what.
        allocated_milli_us: thousandths of a device or core, times microseconds held.
        utilised_milli_us: part of it that samples saw busy; of what was measured only.
        unmeasured_milli_us: part of it that no sample covers: open holds, and no telemetry.
        cu_hours: CU-hours held; of known models only.
        unknown_cu: whether some of it was held of models whose CU are unknown.
    """

    tenant: str
    flavor: str
    allocated_milli_us: int
    utilised_milli_us: int
    unmeasured_milli_us: int
    cu_hours: float
    unknown_cu: bool

    @property
    def idle_milli_us(self) -> int:
        """Return what was held, measured, and not busy."""
        return self.allocated_milli_us - self.unmeasured_milli_us - self.utilised_milli_us


# Busy time is spread evenly over a placement, as nothing finer is booked. It is the difference of
# two roundings at the window's edges, so that adjoining windows leave nothing out.
_USAGE = """
WITH held AS (
    SELECT entry.tenant_id, entry.cluster_id, entry.flavor, entry.milli,
        entry.compute_units AS units, entry.opened_at, entry.closed_at,
        CASE WHEN entry.allocated_milli_us > 0 THEN entry.utilised_milli_us END AS utilised,
        entry.allocated_milli_us AS allocated
    FROM scheduler_ledgerentry entry
    WHERE entry.opened_at < %(until)s AND entry.closed_at > %(since)s
        AND entry.tenant_id = ANY(%(tenants)s)
  UNION ALL
    SELECT job.tenant_id, placement.cluster_id, %(cpu)s, replica.cpu_milli, NULL,
        placement.created_at, %(until)s, NULL, NULL
    FROM scheduler_placement placement
    JOIN scheduler_job job ON job.uid = placement.job_id
    JOIN scheduler_replicahold replica ON replica.placement_id = placement.id
    WHERE placement.released_at IS NULL AND placement.created_at < %(until)s
        AND job.tenant_id = ANY(%(tenants)s)
  UNION ALL
    SELECT job.tenant_id, placement.cluster_id, device.flavor, hold.gpu_milli,
        device.compute_units * hold.gpu_milli / 1000, placement.created_at, %(until)s, NULL, NULL
    FROM scheduler_placement placement
    JOIN scheduler_job job ON job.uid = placement.job_id
    JOIN scheduler_replicahold replica ON replica.placement_id = placement.id
    JOIN scheduler_devicehold hold ON hold.replica_id = replica.id
    JOIN telemetry_device device ON device.id = hold.device_id
    WHERE placement.released_at IS NULL AND placement.created_at < %(until)s
        AND job.tenant_id = ANY(%(tenants)s)
), clipped AS (
    SELECT held.*,
        (EXTRACT(epoch FROM GREATEST(opened_at, %(since)s) - opened_at) * 1000000)::numeric AS a,
        (EXTRACT(epoch FROM LEAST(closed_at, %(until)s) - opened_at) * 1000000)::numeric AS b
    FROM held
)
SELECT tenant.slug, clipped.flavor,
    SUM(milli * (b - a)),
    COALESCE(SUM(div(utilised * milli * b, allocated) - div(utilised * milli * a, allocated)), 0),
    COALESCE(SUM(milli * (b - a)) FILTER (WHERE utilised IS NULL), 0),
    COALESCE(SUM(units * (b - a)::float8) / 3.6e9, 0),
    bool_or(units IS NULL AND clipped.flavor <> %(cpu)s)
FROM clipped JOIN tenants_tenant tenant ON tenant.id = tenant_id
WHERE %(cluster)s::text IS NULL
    OR cluster_id = (SELECT id FROM telemetry_cluster WHERE slug = %(cluster)s)
GROUP BY tenant.slug, clipped.flavor
"""


def usage_list(
    *, viewer: Viewer, since: datetime, until: datetime, cluster: str | None = None
) -> list[UsageRow]:
    """Return use per tenant and flavor in [since, until), of the tenants that the viewer sees.

    Args:
        viewer: who looks.
        since: start of the window.
        until: its end; what is held now counts up to there, so it must not lie ahead.
        cluster: slug; None = all.
    """
    asked: dict[str, Any] = {
        "since": since,
        "until": until,
        "tenants": sorted(tenants.tenant_ids_visible(viewer=viewer)),
        "cluster": cluster,
        "cpu": CPU_FLAVOR,
    }
    if since >= until:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_USAGE, asked)
        rows = cursor.fetchall()
    found = [
        UsageRow(tenant, flavor, int(allocated), int(utilised), int(unmeasured), cu_hours, unknown)
        for tenant, flavor, allocated, utilised, unmeasured, cu_hours, unknown in rows
    ]
    return sorted(found, key=lambda row: (row.tenant, row.flavor))
