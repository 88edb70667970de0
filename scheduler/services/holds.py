"""Ends a placement: what it held is free, and booked to the microsecond."""

from datetime import datetime, timedelta
from decimal import Decimal

from django.db import connection
from django.db.models import Sum

from scheduler.core.resources import CPU_FLAVOR
from scheduler.models import DeviceHold, LedgerEntry, Placement, ReplicaHold
from telemetry import selectors as telemetry

MICROSECOND = timedelta(microseconds=1)

_CLOSE_DEVICE_HOLDS = """
UPDATE scheduler_devicehold hold
SET period = tstzrange(lower(hold.period), GREATEST(
    %s, lower(hold.period) + interval '1 microsecond'))
FROM scheduler_replicahold replica
WHERE replica.id = hold.replica_id AND replica.placement_id = %s AND upper_inf(hold.period)
"""


def placement_release(*, placement: Placement, now: datetime) -> bool:
    """Free what a placement holds and book it; call inside a transaction.

    Returns:
        Whether it was this call that did it; a released placement is left as it is.
    """
    closed_at = max(now, placement.created_at)  # the clock may have stepped back
    released = Placement.objects.filter(pk=placement.pk, released_at__isnull=True).update(
        released_at=closed_at
    )
    if released != 1:
        return False
    placement.released_at = closed_at
    with connection.cursor() as cursor:
        cursor.execute(_CLOSE_DEVICE_HOLDS, [closed_at, placement.pk])
    ReplicaHold.objects.filter(placement=placement, released=False).update(released=True)
    _book(placement, closed_at)
    return True


def _book(placement: Placement, closed_at: datetime) -> None:
    held_us = (closed_at - placement.created_at) // MICROSECOND
    for flavor, milli, units, utilised in _lines(placement, closed_at):
        if milli:
            allocated = milli * held_us
            LedgerEntry.objects.create(
                placement=placement,
                tenant_id=placement.job.tenant_id,
                cluster_id=placement.cluster_id,
                owner_id=placement.job.owner_id,
                flavor=flavor,
                milli=milli,
                compute_units=units,
                opened_at=placement.created_at,
                closed_at=closed_at,
                allocated_milli_us=Decimal(allocated),
                utilised_milli_us=_part(allocated, utilised),
            )


def _lines(
    placement: Placement, closed_at: datetime
) -> list[tuple[str, int, float | None, float | None]]:
    cpu = ReplicaHold.objects.filter(placement=placement).aggregate(sum=Sum("cpu_milli"))["sum"]
    cores = telemetry.job_cores_mean(
        job_uid=placement.job_id, since=placement.created_at, until=closed_at
    )
    busy = None if cores is None or not cpu else min(1.0, cores * 1000 / cpu)
    lines: list[tuple[str, int, float | None, float | None]] = [(CPU_FLAVOR, cpu or 0, None, busy)]
    holds = list(DeviceHold.objects.filter(replica__placement=placement).select_related("device"))
    if holds:
        utilised = telemetry.devices_utilised_mean(
            device_ids=[hold.device_id for hold in holds],
            since=placement.created_at,
            until=closed_at,
        )
        milli = sum(hold.gpu_milli for hold in holds)
        lines.append((placement.flavor, milli, _units(holds), utilised))
    return lines


def _units(holds: list[DeviceHold]) -> float | None:
    """Return the CU of the holds; None where one model is unknown, for a part is no sum."""
    known = [
        hold.device.compute_units * hold.gpu_milli / 1000
        for hold in holds
        if hold.device.compute_units is not None
    ]
    return sum(known) if len(known) == len(holds) else None


def _part(allocated: int, utilised: float | None) -> Decimal | None:
    """Return the busy part of what was allocated, never more than all of it."""
    if utilised is None:
        return None
    return Decimal(min(allocated, round(allocated * min(1.0, max(0.0, utilised)))))
