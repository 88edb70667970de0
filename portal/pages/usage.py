"""What was held and what was busy, by tenant and flavor, over a period; also as CSV."""

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from portal.flavor_names import flavor_label
from portal.pages import clock
from portal.pages.charts.frame import FigureDict, Meta
from portal.pages.charts.usage import UsageRow as UsageBar
from portal.pages.charts.usage import usage_figure
from portal.pages.signed_in import SignedInRequest, cluster_or_404
from scheduler.core.resources import CPU_FLAVOR
from scheduler.selectors.usage import MILLI_US_PER_DEVICE_HOUR, UsageRow, usage_list
from telemetry.selectors import cluster_list
from tenants.selectors import tenant_list

PERIODS: dict[str, timedelta] = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
}
DEFAULT_PERIOD = "7d"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True, slots=True)
class Window:
    """The period that the address asks for.

    Attributes:
        since, until: its ends.
        name: of one of `PERIODS`; "" where two dates were given.
        problem: what is wrong with the dates, if anything is.
    """

    since: datetime
    until: datetime
    name: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table: hours of a device, or of a core."""

    tenant: str
    name: str
    flavor: str
    label: str
    allocated_h: float
    utilised_h: float
    idle_h: float
    unmeasured_h: float
    cu_hours: float
    unknown_cu: bool


@require_safe
def usage(request: SignedInRequest) -> HttpResponse:
    """Show the use of the tenants that the viewer sees."""
    window = asked_window(request)
    lines = _lines(request, window)
    devices = [line for line in lines if line.flavor != CPU_FLAVOR]
    cores = [line for line in lines if line.flavor == CPU_FLAVOR]
    context: dict[str, Any] = {
        "window": window,
        "periods": list(PERIODS),
        "lines": lines,
        "clusters": list(cluster_list()),
        "cluster": request.GET.get("cluster", ""),
        "query": request.GET.urlencode(),
        "devices_figure": _figure(devices, _("device-hours"), window) if devices else None,
        "cores_figure": _figure(cores, _("core-hours"), window) if cores else None,
    }
    return render(request, "pages/usage.html", context)


@require_safe
def usage_csv(request: SignedInRequest) -> StreamingHttpResponse:
    """Send the same as CSV, row by row."""
    window = asked_window(request)
    lines = _lines(request, window)
    name = f"kilter-usage-{window.since:%Y%m%d}-{window.until:%Y%m%d}.csv"
    return StreamingHttpResponse(
        csv_rows(lines, window),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def asked_window(request: SignedInRequest) -> Window:
    """Return the period of the address: two dates (UTC, the last one included), or a name."""
    now = clock.now()
    name = request.GET.get("period", DEFAULT_PERIOD)
    name = name if name in PERIODS else DEFAULT_PERIOD
    named = Window(since=now - PERIODS[name], until=now, name=name)
    first, last = request.GET.get("since", ""), request.GET.get("until", "")
    if not first and not last:
        return named
    since, until = _day(first), _day(last)
    if since is None or until is None or since > until:
        problem = _("Give two dates, the first not after the last; shown is the usual period.")
        return Window(named.since, named.until, name, problem)
    return Window(since=since, until=min(until + timedelta(days=1), now), name="")


def _day(text: str) -> datetime | None:
    try:
        day = parse_date(text) if text.isascii() else None
    except ValueError:
        return None
    if day is None or not 2000 <= day.year <= 9000:  # noqa: PLR2004 - room for one day more
        return None
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def _lines(request: SignedInRequest, window: Window) -> list[Line]:
    slug = request.GET.get("cluster", "")
    cluster = cluster_or_404(request, slug).slug if slug else None
    names = {tenant.slug: tenant.name for tenant in tenant_list(viewer=request.user)}
    rows = usage_list(viewer=request.user, since=window.since, until=window.until, cluster=cluster)
    return [_line(row, names.get(row.tenant, row.tenant)) for row in rows]


def _line(row: UsageRow, name: str) -> Line:
    return Line(
        tenant=row.tenant,
        name=name,
        flavor=row.flavor,
        label=flavor_label(row.flavor),
        allocated_h=row.allocated_milli_us / MILLI_US_PER_DEVICE_HOUR,
        utilised_h=row.utilised_milli_us / MILLI_US_PER_DEVICE_HOUR,
        idle_h=row.idle_milli_us / MILLI_US_PER_DEVICE_HOUR,
        unmeasured_h=row.unmeasured_milli_us / MILLI_US_PER_DEVICE_HOUR,
        cu_hours=row.cu_hours,
        unknown_cu=row.unknown_cu,
    )


def _figure(lines: list[Line], axis: str, window: Window) -> FigureDict:
    """Return a bar for what was measured of each tenant, and one more for what was not."""
    held: dict[str, tuple[float, float, float]] = {}
    for line in lines:
        measured, busy, dark = held.get(line.name, (0.0, 0.0, 0.0))
        held[line.name] = (
            measured + line.utilised_h + line.idle_h,
            busy + line.utilised_h,
            dark + line.unmeasured_h,
        )
    bars = []
    for name, (measured, busy, dark) in sorted(held.items()):
        if measured:
            bars.append(UsageBar(tenant=name, allocated=measured, utilised=busy))
        if dark:
            text = _("%(tenant)s, not measured") % {"tenant": name}
            bars.append(UsageBar(tenant=text, allocated=dark, utilised=None))
    labels = {
        "utilised": _("utilised"),
        "idle": _("idle"),
        "unmeasured": _("not measured"),
        "axis": axis,
    }
    meta = Meta(
        what=_("The whole bar was allocated; idle is held and measured, but not busy."),
        source=_("Ledger and open placements."),
        at=window.until.isoformat(),
    )
    return usage_figure(bars, labels, meta)


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


def csv_rows(lines: Iterable[Line], window: Window) -> Iterator[str]:
    """Return the lines as CSV, harmless to spreadsheets that take text for formulas."""
    writer = csv.writer(_Echo())
    columns = ("allocated_h", "utilised_h", "idle_h", "unmeasured_h", "cu_hours")
    yield writer.writerow(("since", "until", "tenant", "flavor", *columns))
    ends = (window.since.isoformat(), window.until.isoformat())
    for line in lines:
        amounts = [f"{getattr(line, name):.6f}" for name in columns]
        yield writer.writerow((*ends, harmless(line.tenant), harmless(line.flavor), *amounts))


def harmless(text: str) -> str:
    """Return a cell that no spreadsheet takes for a formula.

    Source: OWASP, CSV Injection: an apostrophe before =, +, -, @, tab and line ends.
    """
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
