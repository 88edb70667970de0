"""What a job used, from samples: of its processes, and of the devices that it held."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from portal.pages.charts.frame import FigureDict, Meta
from portal.pages.charts.job import JobSampleRow, job_metrics_figure
from portal.pages.fleet import step_s
from scheduler.models import Job, Placement
from telemetry.models import Device
from telemetry.selectors import SeriesPoint, device_series, job_series

POINTS = 240
DEVICES_MOST = 16
LEAST_SPAN = timedelta(minutes=2)


def job_figure(job: Job, placement: Placement | None, *, now: datetime) -> FigureDict | None:
    """Return what a job's newest attempt used; None before its first and where nothing is known."""
    if placement is None:
        return None
    since = placement.created_at
    until = max(placement.released_at or now, since + LEAST_SPAN)
    own = job_series(job_uid=job.pk, since=since, until=until, points=POINTS)
    devices = _devices(placement)
    busy = mean_of([_busy(d, since, until) for d in devices[:DEVICES_MOST]])
    rows = [
        JobSampleRow(
            at=point.at.isoformat(),
            at_s=point.at.timestamp(),
            cpu_milli=None if point.utilised_frac is None else point.utilised_frac * 1000,
            memory_mib=point.memory_used_mib,
            device_frac=busy.get(point.at),
        )
        for point in own
    ]
    known = [r for r in rows if (r.cpu_milli, r.memory_mib, r.device_frac) != (None, None, None)]
    if not known:
        return None
    return job_metrics_figure(
        rows, _labels(), _meta(job, known[-1].at), step_s=step_s(own), has_devices=bool(devices)
    )


def _devices(placement: Placement) -> list[Device]:
    return [
        hold.device for replica in placement.replicas.all() for hold in replica.device_holds.all()
    ]


def _busy(device: Device, since: datetime, until: datetime) -> Sequence[SeriesPoint]:
    return device_series(device=device, since=since, until=until, points=POINTS)


def mean_of(series: Sequence[Sequence[SeriesPoint]]) -> dict[datetime, float]:
    """Return time -> mean utilisation over the devices that have a sample there."""
    found: dict[datetime, list[float]] = {}
    for points in series:
        for point in points:
            if point.utilised_frac is not None:
                found.setdefault(point.at, []).append(point.utilised_frac)
    return {at: sum(values) / len(values) for at, values in found.items()}


def _labels() -> dict[str, str]:
    return {
        "cpu": _("CPU"),
        "memory": _("memory"),
        "devices": _("devices"),
        "cpu_axis": _("cores"),
        "memory_axis": _("GiB"),
        "devices_axis": _("utilised"),
    }


def _meta(job: Job, at: str) -> Meta:
    return Meta(
        what=_("CPU and memory of its processes; devices: mean of those that it holds."),
        source=_("Invented by the simulated fleet.") if job.cluster.is_simulated else _("Samples."),
        at=at,
    )
