"""What was held and what was busy, exact, clipped to the window asked for.

Three numbers, always: allocated (held), utilised (seen busy by samples), idle (held, not seen
busy). Closed placements come from the ledger, open ones from their holds.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Sum

from scheduler.core.resources import CPU_FLAVOR
from scheduler.models import DeviceHold, LedgerEntry, Placement, ReplicaHold
from tenants.models import Tenant, Viewer

MICROSECOND = timedelta(microseconds=1)
MILLI_US_PER_DEVICE_HOUR = 1000 * 3_600_000_000


@dataclass(slots=True)
class UsageRow:
    """One tenant's use of one flavor over a window.

    Attributes:
        tenant, flavor: whose, of what.
        allocated_milli_us: thousandths of a device or core, times microseconds held.
        utilised_milli_us: part of it that samples saw busy; of what was measured only.
        unmeasured_milli_us: part of it that no sample covers: open holds, and no telemetry.
        cu_hours: CU-hours held; of known models only.
    """

    tenant: str
    flavor: str
    allocated_milli_us: int = 0
    utilised_milli_us: int = 0
    unmeasured_milli_us: int = 0
    cu_hours: float = 0.0
    unknown_cu: bool = field(default=False)

    @property
    def idle_milli_us(self) -> int:
        """Return what was held, measured, and not busy."""
        return self.allocated_milli_us - self.unmeasured_milli_us - self.utilised_milli_us


def usage_list(
    *, viewer: "Viewer", since: datetime, until: datetime, cluster: str | None = None
) -> list[UsageRow]:
    """Return use per tenant and flavor in [since, until), of the tenants that the viewer sees."""
    rows: dict[tuple[str, str], UsageRow] = {}
    tenants = Tenant.objects.visible_to(viewer)
    closed = LedgerEntry.objects.filter(
        tenant__in=tenants, opened_at__lt=until, closed_at__gt=since
    )
    opened = Placement.objects.filter(
        job__tenant__in=tenants, released_at__isnull=True, created_at__lt=until
    )
    if cluster is not None:
        closed = closed.filter(cluster__slug=cluster)
        opened = opened.filter(cluster__slug=cluster)
    for entry in closed.select_related("tenant"):
        _add_closed(_row(rows, entry.tenant.slug, entry.flavor), entry, since, until)
    for tenant, flavor, milli, units, created_at in _open_lines(opened):
        span = _overlap_us(created_at, until, since, until)
        row = _row(rows, tenant, flavor)
        row.allocated_milli_us += milli * span
        row.unmeasured_milli_us += milli * span
        row.cu_hours += units * span / 3.6e9
    return sorted(rows.values(), key=lambda row: (row.tenant, row.flavor))


def _row(rows: dict[tuple[str, str], UsageRow], tenant: str, flavor: str) -> UsageRow:
    return rows.setdefault((tenant, flavor), UsageRow(tenant, flavor))


def _add_closed(row: UsageRow, entry: LedgerEntry, since: datetime, until: datetime) -> None:
    span = _overlap_us(entry.opened_at, entry.closed_at, since, until)
    allocated = entry.milli * span
    row.allocated_milli_us += allocated
    if entry.utilised_milli_us is None or not entry.allocated_milli_us:
        row.unmeasured_milli_us += allocated
    else:  # spread evenly over the placement, as nothing finer is booked
        row.utilised_milli_us += int(
            allocated * int(entry.utilised_milli_us) // int(entry.allocated_milli_us)
        )
    if entry.compute_units is None:
        row.unknown_cu = row.unknown_cu or entry.flavor != CPU_FLAVOR
    else:
        row.cu_hours += entry.compute_units * span / 3.6e9


def _overlap_us(opened: datetime, closed: datetime, since: datetime, until: datetime) -> int:
    return max(0, (min(closed, until) - max(opened, since)) // MICROSECOND)


def _open_lines(opened: Any) -> list[tuple[str, str, int, float, datetime]]:
    cores = (
        ReplicaHold.objects.filter(placement__in=opened)
        .values_list("placement__job__tenant__slug", "placement__created_at", "placement_id")
        .annotate(milli=Sum("cpu_milli"))
        .order_by("placement_id")
    )
    lines = [(tenant, CPU_FLAVOR, milli, 0.0, at) for tenant, at, _, milli in cores]
    devices: dict[tuple[str, str, datetime], tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    holds = DeviceHold.objects.filter(replica__placement__in=opened).values_list(
        "replica__placement__job__tenant__slug",
        "device__flavor",
        "replica__placement__created_at",
        "gpu_milli",
        F("device__compute_units"),
    )
    for tenant, flavor, at, milli, units in holds:
        total, cu = devices[tenant, flavor, at]
        devices[tenant, flavor, at] = (total + milli, cu + (units or 0.0) * milli / 1000)
    return lines + [
        (tenant, flavor, milli, cu, at) for (tenant, flavor, at), (milli, cu) in devices.items()
    ]
